package gate

import (
	"bytes"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
)

// anthropicMessages reads messages. A stream is a fixed sequence of typed events, and
// the type stands in the data too: servers that leave the event line out are common.
type anthropicMessages struct{}

// messageParts are what was found in one event, whatever its type.
type messageParts struct {
	message message
	block   bool // the content block has output
	delta   bool // the delta has output, if it is a content block's
	stop    bool // the delta has a stop reason
	tally   tally
}

// message is what was found in a message, whole or just begun.
type message struct {
	model   string
	tally   tally
	kind    strictjson.Text
	content bool // there is a list of content
	said    bool // it has output
	stop    bool
	failed  bool // an error in one of the known places
	loose   bool // a member that errors have without an envelope
	foreign bool // a member that only other protocols have
}

// messageEvents are the events of a stream and what each says. Read only. Events that
// aren't here decide nothing, since the API may add some at any time.
var messageEvents = [...]struct {
	kind string
	read func(p *messageParts) reading
}{
	{"message_start", messageStart},
	{"content_block_start", func(p *messageParts) reading { return outputIf(p.block) }},
	{"content_block_delta", func(p *messageParts) reading { return outputIf(p.delta) }},
	{"content_block_stop", func(*messageParts) reading { return reading{} }},
	{"message_delta", messageDelta},
	{"message_stop", func(*messageParts) reading { return reading{sign: ended, done: true, last: true} }},
	{"ping", func(*messageParts) reading { return reading{} }},
	{"error", func(*messageParts) reading { return reading{sign: failure} }},
}

// foreignToMessages are members that only answers of other protocols have. Read only.
var foreignToMessages = [...]string{"choices", "candidates", "output", "response"}

func (anthropicMessages) endMark() string { return "" }

func (anthropicMessages) frame(event []byte, s *strictjson.Scanner) reading {
	var p messageParts
	var failed, foreign bool
	var kind []byte
	s.Object(func(key strictjson.Text) {
		switch name := key.Bytes(); string(name) {
		case "type":
			kind = s.Text().Bytes()
		case "error":
			failed = truthy(s) || failed
		case "message":
			p.message = readMessage(s)
		case "content_block":
			p.block = said(s)
		case "delta":
			p.delta, p.stop = messagePart(s)
		case "usage":
			p.tally = messageUsage(s)
		default:
			foreign = foreign || named(name, foreignToMessages[:])
		}
	})
	if failed || string(event) == "error" {
		return reading{sign: failure}
	}
	if len(kind) == 0 {
		kind = event
	}
	for _, e := range messageEvents {
		if string(kind) == e.kind {
			return e.read(&p)
		}
	}
	switch {
	case foreign:
		return reading{sign: invalid, reason: "wrong_protocol"}
	case len(kind) == 0:
		return reading{sign: strange}
	}
	return reading{}
}

func messageStart(p *messageParts) reading {
	r := outputIf(p.message.said)
	r.model, r.tally = p.message.model, p.message.tally
	// What was put out so far is a placeholder here; message_delta has the count.
	r.tally.output = engine.Tokens{}
	return r
}

func messageDelta(p *messageParts) reading {
	r := outputIf(p.stop)
	r.tally = p.tally
	return r
}

func outputIf(said bool) reading {
	if said {
		return reading{sign: output}
	}
	return reading{}
}

// messagePart reads a delta: whether it has output, if it is that of a content block,
// and whether it has a stop reason, if it is that of a message.
func messagePart(s *strictjson.Scanner) (spoke, stop bool) {
	s.Object(func(key strictjson.Text) {
		switch {
		case key.Is("stop_reason"):
			stop = len(s.Text().Raw) > 0
		case !label(key):
			spoke = said(s) || spoke
		}
	})
	return spoke, stop
}

func readMessage(s *strictjson.Scanner) message {
	var m message
	s.Object(func(key strictjson.Text) {
		switch name := key.Bytes(); string(name) {
		case "type":
			m.kind = s.Text()
			m.failed = m.failed || m.kind.Is("error")
		case "model":
			m.model = s.Text().String()
		case "usage":
			m.tally = messageUsage(s)
		case "content":
			m.content = s.Array(func() { m.said = said(s) || m.said })
		case "stop_reason":
			m.stop = len(s.Text().Raw) > 0
		case "error":
			m.failed = truthy(s) || m.failed
		case "success":
			m.failed = s.Peek() == strictjson.False || m.failed
		case "base_resp": // MiniMax
			inside(s, "status_code", func() { m.failed = truthy(s) || m.failed })
		default:
			m.foreign = m.foreign || named(name, foreignToMessages[:])
			if named(name, errorMembers[:]) {
				m.loose = truthy(s) || m.loose
			}
		}
	})
	return m
}

func messageUsage(s *strictjson.Scanner) tally {
	t := tally{apart: true}
	s.Object(func(key strictjson.Text) {
		switch string(key.Raw) {
		case "input_tokens":
			t.input = tokens(s)
		case "output_tokens":
			t.output = tokens(s)
		case "cache_read_input_tokens":
			t.cacheRead = tokens(s)
		case "cache_creation_input_tokens":
			t.cacheWrite = tokens(s)
		}
	})
	return t
}

func (anthropicMessages) whole(s *strictjson.Scanner) reading {
	m := readMessage(s)
	r := reading{model: m.model, tally: m.tally}
	switch {
	case m.failed:
		r.sign = failure
	case m.foreign:
		r.sign, r.reason = invalid, "wrong_protocol"
	case m.content && (m.said || m.stop):
		r.sign = output
	case m.content:
		r.sign = ended
	case m.loose && !m.kind.Is("message"):
		r.sign = failure
	default:
		r.sign, r.reason = invalid, "missing_fields"
	}
	return r
}

func (anthropicMessages) glance(raw []byte) glance {
	const block, event, data = `content_block_`, `event: ` + `content_block_`, `data: {"type":"` + `content_block_`
	switch {
	case bytes.HasPrefix(raw, []byte(event)), bytes.HasPrefix(raw, []byte(data)):
		return pass
	// Other spellings; in a text these quotes would be escaped.
	case bytes.Contains(raw, []byte(`"`+block+`delta"`)):
		return pass
	}
	return look
}
