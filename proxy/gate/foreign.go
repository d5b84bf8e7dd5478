package gate

import "bytes"

// begin looks at the first bytes that are no white space, until they tell what follows.
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
	switch first := start[0]; {
	case first == '[' && s.array:
		s.event = true
	case first == '{', first == '[', first == '<':
		// No field of an event begins like this; a body or a page does.
		s.foreign, s.page = true, first == '<'
	case s.array:
		s.foreign, s.plain = true, true
	default:
		switch line(start) {
		case field:
		case perhapsField:
			s.begun = false
		case strangeField:
			s.doubtful = true
		case noField:
			s.foreign, s.plain = true, true
		}
	}
}

// lineKind is what the first line of a stream is.
type lineKind uint8

const (
	field        lineKind = iota // of an event, or a comment
	perhapsField                 // too short to tell
	strangeField                 // a name that events don't have: readers skip it
	noField                      // text
)

// line looks at a line's beginning.
func line(start []byte) lineKind {
	name := start
	end := bytes.IndexAny(start, ":\r\n")
	if end >= 0 {
		name = start[:end]
	}
	for _, known := range [...]string{"", "data", "event", "id", "retry"} {
		switch {
		case end >= 0 && string(name) == known:
			return field
		case end < 0 && len(name) <= len(known) && known[:len(name)] == string(name):
			return perhapsField
		}
	}
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return noField
		}
	}
	switch {
	case end >= 0 && start[end] == ':':
		return strangeField
	case end < 0 && len(name) < maxStrangeName:
		return perhapsField
	}
	return noField
}

// maxStrangeName bounds the name of a field that nobody knows.
const maxStrangeName = 64

// feedForeign waits for the whole body or page, so that the classifier has something
// to read. The bytes from that place on are new.
func (s *Stream) feedForeign(from int) Verdict {
	switch {
	case s.plain:
		// Text has no end that could be seen.
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
	if s.body = body; s.plain {
		s.finding = schemaInvalid("wrong_content_type")
		return
	}
	body = bytes.TrimRight(body, " \t\r\n")
	s.body = body
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte(byteOrderMark)))
	r, bad := readBody(s.proto, "", body)
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
		if b.step(c) {
			return i + 1
		}
	}
	return 0
}

// step goes over one byte and says whether it closes the outermost value.
func (b *brackets) step(c byte) bool {
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
		return b.depth <= 0
	}
	return false
}
