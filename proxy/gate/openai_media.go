package gate

import (
	"bytes"

	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
)

// openAIMedia reads embeddings, images and what is heard or spoken: a body with the answer
// in one member, or a stream of typed events. Sound and pictures in bytes are not read.
type openAIMedia struct {
	answer string // the member of a whole body that holds it
	list   bool   // it is a list, and an empty one is no answer
}

func (openAIMedia) endMark() string { return "[DONE]" }

// mediaEnds are how the types of events end that end a stream: image_generation.completed,
// transcript.text.done. Read only.
var mediaEnds = [...]string{".completed", ".done"}

func (m openAIMedia) frame(event []byte, s *strictjson.Scanner) reading {
	v := m.read(s)
	kind := v.kind
	if len(kind) == 0 {
		kind = event
	}
	r := reading{model: v.model, tally: v.tally}
	for _, end := range mediaEnds {
		r.last = r.last || bytes.HasSuffix(kind, []byte(end))
	}
	r.done = r.last
	switch {
	case v.failed, string(event) == "error":
		r.sign = failure
	case v.foreign:
		r.sign, r.reason = invalid, "wrong_protocol"
	case v.said || r.last:
		r.sign = output
	case len(kind) == 0:
		r.sign = strange
	}
	return r
}

func (m openAIMedia) whole(s *strictjson.Scanner) reading {
	v := m.read(s)
	r := reading{model: v.model, tally: v.tally, sign: output}
	switch {
	case v.failed, v.loose && !v.answered:
		r.sign = failure
	case v.foreign && !v.answered:
		r.sign, r.reason = invalid, "wrong_protocol"
	case !v.answered:
		r.sign, r.reason = invalid, "missing_fields"
	case m.list && !v.some:
		r.sign = ended
	}
	return r
}

// media is what was found in a body or an event.
type media struct {
	model                  string
	kind                   []byte
	tally                  tally
	answered, some         bool // the answer's member is there; it has an element
	said                   bool // something of an event's answer
	failed, loose, foreign bool
}

// mediaOutput are the members of events that hold output. Read only.
var mediaOutput = [...]string{"delta", "text", "audio", "b64_json"}

func (m openAIMedia) read(s *strictjson.Scanner) media {
	var v media
	s.Object(func(key strictjson.Text) {
		switch name := key.Bytes(); {
		case string(name) == m.answer && m.list:
			v.answered = s.Array(func() { v.some = true; s.Skip() })
		case string(name) == "error":
			v.failed = truthy(s) || v.failed
		case string(name) == "type":
			v.kind = s.Text().Bytes()
			v.failed = v.failed || string(v.kind) == "error"
		case string(name) == "model":
			v.model = s.Text().String()
		case string(name) == "usage":
			v.tally.merge(mediaUsage(s))
		case string(name) == m.answer:
			v.answered = s.Peek() == strictjson.String
			v.said = said(s) || v.said
		case named(name, mediaOutput[:]):
			v.said = said(s) || v.said
		case named(name, foreignToMedia[:]):
			v.foreign = true
		case named(name, errorMembers[:]):
			v.loose = truthy(s) || v.loose
		}
	})
	return v
}

// foreignToMedia are members that only answers of other protocols have. Read only.
var foreignToMedia = [...]string{"choices", "candidates", "output", "response", "stop_reason"}

// mediaUsage reads both spellings: embeddings count as chat does, the others as responses.
func mediaUsage(s *strictjson.Scanner) tally {
	var t tally
	s.Object(func(key strictjson.Text) {
		switch string(key.Raw) {
		case "prompt_tokens", "input_tokens":
			t.input = tokens(s)
		case "completion_tokens", "output_tokens":
			t.output = tokens(s)
		case "prompt_tokens_details", "input_tokens_details":
			inside(s, "cached_tokens", func() { t.cacheRead = tokens(s) })
		}
	})
	return t
}

func (openAIMedia) glance(raw []byte) glance {
	for _, part := range [...]string{`.delta"`, `.partial_image"`} {
		if bytes.Contains(raw, []byte(part)) {
			return pass
		}
	}
	return look
}
