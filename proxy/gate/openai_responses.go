package gate

import (
	"bytes"

	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
)

// openAIResponses reads responses. A stream is a sequence of typed events; each that
// speaks of the whole response carries it in one member.
type openAIResponses struct{}

// responseEvents are the events that decide by their type. Read only. Of the others,
// those with output in a delta decide, and the rest, which tell of progress, don't.
var responseEvents = [...]struct {
	kind string
	read func(p *responseParts) reading
}{
	{"error", func(*responseParts) reading { return reading{sign: failure} }},
	{"response.failed", func(*responseParts) reading { return reading{sign: failure} }},
	{"response.cancelled", func(*responseParts) reading { return reading{sign: failure} }},
	{"response.completed", func(p *responseParts) reading { return p.last(ended) }},
	// Cut short by a limit or a filter: a normal end, even with nothing before it.
	{"response.incomplete", func(p *responseParts) reading { return p.last(output) }},
}

// itemOutput are the members of an output item that hold output. Read only.
var itemOutput = [...]string{
	"content", "summary", "encrypted_content", // messages and reasoning
	"name", "arguments", "input", "code", "output", "result", // tools and what they gave
}

// eventOutput are the members of an event that hold output. Read only.
var eventOutput = [...]string{"delta", "text", "refusal", "arguments", "input", "transcript", "code", "partial_image_b64"}

// responseParts are what was found in one event.
type responseParts struct {
	response response
	said     bool // one of the event's own members, or its item, has output
}

// last is the reading of a terminal event, which says empty if nothing was put out.
func (p *responseParts) last(empty sign) reading {
	r := reading{sign: empty, done: true, last: true}
	if p.response.said {
		r.sign = output
	}
	return r
}

// response is what was found in a response object.
type response struct {
	model, status          string
	tally                  tally
	items                  bool // there is a list of output
	said                   bool // it has output
	failed, loose, foreign bool
}

func (openAIResponses) endMark() string { return "[DONE]" }

func (openAIResponses) frame(event []byte, s *strictjson.Scanner) reading {
	var p responseParts
	var kind []byte
	var failed, foreign bool
	s.Object(func(key strictjson.Text) {
		switch name := key.Bytes(); string(name) {
		case "type":
			kind = s.Text().Bytes()
		case "error":
			failed = truthy(s) || failed
		case "response":
			p.response = readResponse(s)
		case "item":
			p.said = readItem(s) || p.said
		case "choices", "candidates":
			foreign = true
		default:
			if named(name, eventOutput[:]) {
				p.said = said(s) || p.said
			}
		}
	})
	if len(kind) == 0 {
		kind = event
	}
	var r reading
	known := false
	for _, e := range responseEvents {
		if known = string(kind) == e.kind; known {
			r = e.read(&p)
			break
		}
	}
	switch {
	case failed, string(event) == "error", p.response.failed:
		r.sign = failure
	case known:
	case foreign, bytes.HasPrefix(kind, []byte("message_")), bytes.HasPrefix(kind, []byte("content_block_")):
		r.sign, r.reason = invalid, "wrong_protocol"
	case p.said:
		r.sign = output
	case len(kind) == 0:
		r.sign = strange
	}
	r.model, r.tally = p.response.model, p.response.tally
	return r
}

// readItem reads an item of the output and says whether it has some. A call of a tool
// is output even while nothing but its type is known.
func readItem(s *strictjson.Scanner) (spoke bool) {
	s.Object(func(key strictjson.Text) {
		switch name := key.Bytes(); {
		case string(name) == "type":
			spoke = bytes.HasSuffix(s.Text().Raw, []byte("_call")) || spoke
		case named(name, itemOutput[:]):
			spoke = said(s) || spoke
		}
	})
	return spoke
}

func readResponse(s *strictjson.Scanner) response {
	var r response
	s.Object(func(key strictjson.Text) {
		switch name := key.Bytes(); string(name) {
		case "model":
			r.model = s.Text().String()
		case "status":
			r.status = s.Text().String()
			r.failed = r.failed || r.status == "failed" || r.status == "cancelled"
		case "error":
			r.failed = truthy(s) || r.failed
		case "usage":
			r.tally = responseUsage(s)
		case "output":
			r.items = s.Array(func() { r.said = readItem(s) || r.said })
		case "choices", "candidates", "stop_reason":
			r.foreign = true
		case "type":
			r.failed = s.Text().Is("error") || r.failed
		default:
			if named(name, errorMembers[:]) {
				r.loose = truthy(s) || r.loose
			}
		}
	})
	return r
}

func responseUsage(s *strictjson.Scanner) tally {
	var t tally
	s.Object(func(key strictjson.Text) {
		switch string(key.Raw) {
		case "input_tokens":
			t.input = tokens(s)
		case "output_tokens":
			t.output = tokens(s)
		case "input_tokens_details":
			inside(s, "cached_tokens", func() { t.cacheRead = tokens(s) })
		}
	})
	return t
}

func (openAIResponses) whole(s *strictjson.Scanner) reading {
	v := readResponse(s)
	r := reading{model: v.model, tally: v.tally}
	switch {
	case v.failed:
		r.sign = failure
	case v.foreign && !v.items:
		r.sign, r.reason = invalid, "wrong_protocol"
	// A background response has its output later.
	case v.items && (v.said || v.status != "" && v.status != "completed"):
		r.sign = output
	case v.items:
		r.sign = ended
	case v.loose:
		r.sign = failure
	default:
		r.sign, r.reason = invalid, "missing_fields"
	}
	return r
}

func (openAIResponses) glance(raw []byte) glance {
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	if bytes.HasPrefix(line, []byte("event: response.")) && bytes.HasSuffix(line, []byte(".delta")) {
		return pass
	}
	// In a text this quote would be escaped.
	if bytes.Contains(raw, []byte(`.delta"`)) {
		return pass
	}
	return look
}
