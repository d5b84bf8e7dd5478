package strictjson

import "unicode/utf8"

// MaxDepth is how deep objects and arrays may be nested. It is far above what any API
// takes, and keeps the recursion here and behind the proxy within the stack.
const MaxDepth = 512

// Code says what is wrong with a text.
type Code uint8

// The faults of a text.
const (
	Syntax    Code = iota + 1 // not JSON
	Truncated                 // the beginning of JSON
	TooDeep
	Duplicate // two members of one object have the same name
	NotUTF8
	Trailing // more than white space behind the value
)

// Fault is the first thing that is wrong with a text.
type Fault struct {
	Code   Code
	Offset int // in bytes, from 0
}

// Kind is the first byte of a value: one of { [ " t f n, 0 for a number, and 0xFF for
// none.
type Kind byte

// The kinds of values.
const (
	Object Kind = '{'
	Array  Kind = '['
	String Kind = '"'
	True   Kind = 't'
	False  Kind = 'f'
	Null   Kind = 'n'
	Number Kind = '0'
	None   Kind = 0xFF
)

// Scanner reads one text. After a fault its methods do nothing and return zero values.
// One goroutine uses it at a time.
type Scanner struct {
	b     []byte
	i     int
	depth int
	fault Fault
	names *names // nil: not strict
}

// New returns a scanner of b, which must not change meanwhile. With strict set, two
// members of one name and bytes that are no UTF-8 are faults: that is for what is
// forwarded on the strength of what was read, and costs one allocation. Without it the
// grammar alone counts.
func New(b []byte, strict bool) Scanner {
	s := Scanner{b: b}
	if strict {
		s.names = new(names)
	}
	return s
}

// Offset returns how far the scanner has come, in bytes.
func (s *Scanner) Offset() int { return s.i }

// Failed says whether a fault was found.
func (s *Scanner) Failed() bool { return s.fault.Code != 0 }

// End ends the reading: it returns the fault, one of which may be that something is
// left, or nil.
func (s *Scanner) End() *Fault {
	if !s.Failed() {
		s.space()
		if s.i < len(s.b) {
			s.fail(Trailing, s.i)
		}
	}
	if s.Failed() {
		f := s.fault
		return &f
	}
	return nil
}

// Peek moves to the next value and returns its kind.
func (s *Scanner) Peek() Kind {
	if s.Failed() {
		return None
	}
	s.space()
	if s.i == len(s.b) {
		return None
	}
	switch c := s.b[s.i]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return Kind(c)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return Number
	}
	return None
}

// Object reads an object and calls each for its members, in order. What each leaves
// alone is skipped. A value of another kind is skipped, and Object returns false.
func (s *Scanner) Object(each func(key Text)) bool {
	if s.Peek() != Object {
		s.Skip()
		return false
	}
	if !s.enter() {
		return false
	}
	base := s.open()
	for n := 0; s.more('}', n); n++ {
		key := s.name(base)
		if s.Failed() {
			return false
		}
		before := s.i
		each(key)
		if s.i == before {
			s.Skip()
		}
	}
	s.leave(base)
	return !s.Failed()
}

// Array reads an array and calls each for its elements, in order. What each leaves
// alone is skipped. A value of another kind is skipped, and Array returns false.
func (s *Scanner) Array(each func()) bool {
	if s.Peek() != Array {
		s.Skip()
		return false
	}
	if !s.enter() {
		return false
	}
	for n := 0; s.more(']', n); n++ {
		s.space()
		before := s.i
		each()
		if s.i == before {
			s.Skip()
		}
	}
	s.depth--
	return !s.Failed()
}

// Skip reads a value of any kind without looking into it.
func (s *Scanner) Skip() {
	switch s.Peek() {
	case String:
		s.text()
	case Object:
		if !s.enter() {
			return
		}
		base := s.open()
		for n := 0; s.more('}', n); n++ {
			s.name(base)
			s.Skip()
		}
		s.leave(base)
	case Array:
		if !s.enter() {
			return
		}
		for n := 0; s.more(']', n); n++ {
			s.Skip()
		}
		s.depth--
	case Number:
		s.number()
	case True:
		s.literal("true")
	case False:
		s.literal("false")
	case Null:
		s.literal("null")
	default:
		s.unexpected()
	}
}

// Text reads a string. A value of another kind is skipped, and gives an empty text.
func (s *Scanner) Text() Text {
	if s.Peek() != String {
		s.Skip()
		return Text{}
	}
	return s.text()
}

// Raw reads a value of any kind and returns its bytes, a part of the text.
func (s *Scanner) Raw() []byte {
	s.Peek()
	start := s.i
	s.Skip()
	return s.b[start:s.i]
}

// open returns how many names the open objects have.
func (s *Scanner) open() int {
	if s.names == nil {
		return 0
	}
	return s.names.n
}

func (s *Scanner) fail(c Code, at int) {
	if s.fault.Code == 0 {
		s.fault = Fault{c, at}
	}
}

// unexpected fails at the byte where the scanner stands.
func (s *Scanner) unexpected() {
	if s.i >= len(s.b) {
		s.fail(Truncated, len(s.b))
		return
	}
	s.fail(Syntax, s.i)
}

func (s *Scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return
		}
	}
}

// enter goes into the container that the scanner stands at.
func (s *Scanner) enter() bool {
	if s.depth == MaxDepth {
		s.fail(TooDeep, s.i)
		return false
	}
	s.depth++
	s.i++
	return true
}

// more goes to the n-th member or element, or behind the end of the container.
func (s *Scanner) more(end byte, n int) bool {
	if s.Failed() {
		return false
	}
	s.space()
	switch {
	case s.i == len(s.b):
	case s.b[s.i] == end:
		s.i++
		return false
	case n == 0:
		return true
	case s.b[s.i] == ',':
		s.i++
		return true // what follows must be a value: an end is none
	}
	s.unexpected()
	return false
}

// name reads a member's name and the colon behind it.
func (s *Scanner) name(base int) Text {
	if s.Peek() != String {
		s.unexpected()
		return Text{}
	}
	start := s.i
	key := s.text()
	s.space()
	if !s.Failed() && (s.i == len(s.b) || s.b[s.i] != ':') {
		s.unexpected()
	}
	if s.Failed() {
		return Text{}
	}
	s.i++
	if s.names != nil {
		s.remember(key, start, base)
	}
	s.space()
	return key
}

// text reads the string that the scanner stands at.
func (s *Scanner) text() Text {
	s.i++
	start := s.i
	escaped, high := false, false
	for {
		var wide bool
		s.i, wide = plain(s.b, s.i)
		high = high || wide
		if s.i >= len(s.b) {
			s.fail(Truncated, len(s.b))
			return Text{}
		}
		switch s.b[s.i] {
		case '"':
			raw := s.b[start:s.i]
			if high && s.names != nil && !utf8.Valid(raw) {
				s.fail(NotUTF8, start+firstInvalid(raw))
				return Text{}
			}
			s.i++
			return Text{raw, escaped}
		case '\\':
			escaped = true
			if !s.escape() {
				return Text{}
			}
		default:
			s.fail(Syntax, s.i)
			return Text{}
		}
	}
}

// escape reads the escape sequence that the scanner stands at.
func (s *Scanner) escape() bool {
	s.i++
	if s.i < len(s.b) {
		switch s.b[s.i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.i++
			return true
		case 'u':
			s.i++
			for range 4 {
				if s.i == len(s.b) || hex(s.b[s.i]) < 0 {
					s.unexpected()
					return false
				}
				s.i++
			}
			return true
		}
	}
	s.unexpected()
	return false
}

func firstInvalid(b []byte) int {
	at := 0
	for {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n <= 1 {
			return at
		}
		at += n
	}
}
