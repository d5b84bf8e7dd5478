package gate

import (
	"bytes"

	"github.com/fourgate-dev/fourgate/engine"
)

// begin looks at the first byte that is no white space.
func (s *Stream) begin() {
	start := s.held
	if bytes.HasPrefix([]byte(byteOrderMark), start) {
		return
	}
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte(byteOrderMark)), " \t\r\n")
	if len(start) == 0 {
		return
	}
	s.begun = true
	switch start[0] {
	case '{', '[', '<':
		// No field of an event begins like this; a body or a page does. One protocol
		// also streams as a JSON array.
		if start[0] == '[' && s.endpoint == engine.GeminiGenerate {
			s.proto = nil
			return
		}
		s.foreign, s.page = true, start[0] == '<'
	}
}

// feedForeign waits for the whole body or page, so that the classifier has something
// to read. The bytes from that place on are new.
func (s *Stream) feedForeign(from int) Verdict {
	switch {
	case s.page:
		const end = "</html>"
		tail := bytes.TrimRight(s.held, " \t\r\n")
		if len(tail) >= len(end) && bytes.EqualFold(tail[len(tail)-len(end):], []byte(end)) {
			return s.End()
		}
	default:
		if n := s.json.feed(s.held[from:]); n > 0 {
			s.verdict, s.atEnd = Discard, true
			s.endForeign(s.held[:from+n])
			return s.verdict
		}
	}
	if len(s.held) >= MaxHeld {
		return s.End()
	}
	return Wait
}

// endForeign says what is wrong with a body where a stream was asked for.
func (s *Stream) endForeign(body []byte) {
	body = bytes.TrimRight(body, " \t\r\n")
	s.body = body
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte(byteOrderMark)))
	r, bad := readBody(s.proto, "", body, true)
	switch {
	case bad != "":
		s.finding = schemaInvalid(bad)
	case r.sign != failure:
		s.finding = schemaInvalid("wrong_content_type")
	}
}

// brackets follows the nesting of a JSON text over any number of pieces.
type brackets struct {
	depth         int
	text, escaped bool
}

// feed goes over the next piece. It stops behind the bracket that closes the outermost
// value and says how far it has come, or 0 if there is no such bracket.
func (b *brackets) feed(p []byte) int {
	for i, c := range p {
		switch {
		case b.escaped:
			b.escaped = false
		case b.text:
			b.text = c != '"'
			b.escaped = c == '\\'
		case c == '"':
			b.text = true
		case c == '{' || c == '[':
			b.depth++
		case c == '}' || c == ']':
			b.depth--
			if b.depth <= 0 {
				return i + 1
			}
		}
	}
	return 0
}
