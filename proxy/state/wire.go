package state

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
)

// The bounds of one message from the backend.
const (
	maxLine     = 4 << 10           // of a simple string or an error
	maxBulk     = maxRatesBytes + 1 // of a string: that is read of one that is too long
	maxElements = 4 * maxFacts      // of a message altogether
	maxMessage  = 8 << 20           // bytes, altogether
	maxDepth    = 8                 // of arrays in arrays
	maxDigits   = 18                // of a length, so that none overflows
)

// guardedConn checks what the backend sends before the client library reads it. The
// library trusts its server: a length that is none, an answer to no question or a push of
// an unknown shape panics in a goroutine of its own, which would end the process. So a
// backend that breaks these rules loses its connection instead:
//
//   - a message is of the kinds of RESP3 that Redis and Valkey 7 and later send, within
//     the bounds above;
//   - it answers a command that was sent, or it is an invalidation.
type guardedConn struct {
	net.Conn
	in, out scanner
	owed    atomic.Int64  // answers to commands that were sent
	lost    chan struct{} // closed when the connection can't be used any more
	ended   atomic.Bool
}

func guard(c net.Conn) *guardedConn {
	g := &guardedConn{Conn: c, lost: make(chan struct{})}
	g.out.message = func(byte) error {
		g.owed.Add(1)
		return nil
	}
	g.in.message = func(kind byte) error {
		if kind != '>' && g.owed.Add(-1) < 0 {
			return errors.New("an answer to no question")
		}
		return nil
	}
	return g
}

// Write notes the commands that go out before they do.
func (g *guardedConn) Write(p []byte) (int, error) {
	if err := g.out.scan(p); err != nil {
		return 0, g.fail(fmt.Errorf("BUG: the client sends what is no command: %w", err))
	}
	n, err := g.Conn.Write(p)
	return n, g.fail(err)
}

// Read passes on what is in order.
func (g *guardedConn) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if bad := g.in.scan(p[:n]); bad != nil {
		// Nothing of these bytes is passed on. What was passed on before them may be the
		// beginning of a message, which then ends with this error.
		return 0, g.fail(fmt.Errorf("the backend sends what is not its protocol: %w", bad))
	}
	return n, g.fail(err)
}

func (g *guardedConn) Close() error {
	g.fail(net.ErrClosed)
	return g.Conn.Close()
}

// fail notes that the connection has ended. Deadlines end it, too: the library sets them
// for whole exchanges only.
func (g *guardedConn) fail(err error) error {
	if err != nil && g.ended.CompareAndSwap(false, true) {
		close(g.lost)
	}
	return err
}

// scanner reads RESP3 byte by byte and keeps nothing of it but where it is.
type scanner struct {
	message func(kind byte) error // called at the end of each whole message

	line     []byte // of the header under way
	bulk     int    // bytes of a string that are to come, its line end included
	bulkSize int
	inBulk   bool
	word     []byte // the first word of a push
	stack    [maxDepth]aggregate
	depth    int
	elements int
	size     int
}

// aggregate is an array, a map, a set or a push of which elements are to come.
type aggregate struct {
	kind byte
	left int
	seen int
}

const pushed = "invalidate"

func (s *scanner) scan(p []byte) error {
	for len(p) > 0 {
		n, err := s.step(p)
		if err != nil {
			return err
		}
		if s.size += n; s.size > maxMessage {
			return errors.New("a message that is too long")
		}
		p = p[n:]
		if s.depth == 0 && !s.inBulk && len(s.line) == 0 {
			s.size, s.elements = 0, 0
		}
	}
	return nil
}

// step reads some of p: within a string all that is there, otherwise one byte.
func (s *scanner) step(p []byte) (int, error) {
	if s.inBulk {
		n := min(len(p), s.bulk)
		for i := range n {
			at := s.bulkSize + 2 - s.bulk + i // from the beginning of the string
			if at == s.bulkSize && p[i] != '\r' || at == s.bulkSize+1 && p[i] != '\n' {
				return 0, errors.New("a string without an end")
			}
			if at < s.bulkSize && len(s.word) < len(pushed) {
				s.word = append(s.word, p[i])
			}
		}
		if s.bulk -= n; s.bulk == 0 {
			s.inBulk = false
			return n, s.value('$', s.word, s.bulkSize)
		}
		return n, nil
	}
	s.line = append(s.line, p[0])
	if p[0] != '\n' {
		if len(s.line) > maxLine {
			return 0, errors.New("a line that is too long")
		}
		return 1, nil
	}
	line := s.line
	s.line = s.line[:0]
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return 0, errors.New("a line without an end")
	}
	return 1, s.header(line[0], line[1:len(line)-2])
}

// header takes the first line of a value.
func (s *scanner) header(kind byte, text []byte) error {
	if s.elements++; s.elements > maxElements {
		return errors.New("a message of too many values")
	}
	switch kind {
	case '+', '-', ',', '(':
		return s.value(kind, text, len(text))
	case '_':
		if len(text) != 0 {
			return errors.New("a null with something in it")
		}
		return s.value('_', nil, 0)
	case '#':
		if string(text) != "t" && string(text) != "f" {
			return errors.New("a truth value that is neither true nor false")
		}
		return s.value(kind, nil, 0)
	case ':':
		// One that overflows is read as some number or other, which is a lie like any other.
		if digits := bytes.TrimPrefix(text, []byte("-")); len(digits) == 0 || len(bytes.Trim(digits, "0123456789")) > 0 {
			return errors.New("a number that is none")
		}
		return s.value(kind, nil, 0)
	case '$', '!', '=':
		n, ok := number(text)
		if kind == '$' && ok && n == -1 {
			return s.value('_', nil, 0)
		}
		if !ok || n < 0 || n > maxBulk {
			return errors.New("a string of an impossible length")
		}
		s.inBulk, s.bulk, s.bulkSize, s.word = true, n+2, n, s.word[:0]
		return nil
	case '*', '%', '~', '>':
		return s.open(kind, text)
	}
	return errors.New("a value of an unknown kind")
}

func (s *scanner) open(kind byte, text []byte) error {
	n, ok := number(text)
	if kind == '*' && ok && n == -1 {
		return s.value('_', nil, 0)
	}
	if !ok || n < 0 || n > maxElements {
		return errors.New("an array of an impossible length")
	}
	if kind == '%' {
		n *= 2
	}
	if kind == '>' && (s.depth > 0 || n != 2) {
		return errors.New("a push that is no invalidation")
	}
	if err := s.fitsPush(kind, nil); err != nil {
		return err
	}
	if n == 0 {
		return s.done(kind)
	}
	if s.depth == maxDepth {
		return errors.New("arrays in arrays in arrays")
	}
	s.stack[s.depth] = aggregate{kind: kind, left: n}
	s.depth++
	return nil
}

// value takes a value that has no others in it.
func (s *scanner) value(kind byte, text []byte, size int) error {
	if len(text) < size {
		text = nil // longer than any word
	}
	if err := s.fitsPush(kind, text); err != nil {
		return err
	}
	return s.done(kind)
}

// fitsPush lets one push pass: the word "invalidate" and an array of strings, or null.
func (s *scanner) fitsPush(kind byte, text []byte) error {
	if s.depth == 0 || s.stack[0].kind != '>' {
		return nil
	}
	fits := false
	switch {
	case s.depth == 1 && s.stack[0].seen == 0:
		fits = (kind == '$' || kind == '+') && string(text) == pushed
	case s.depth == 1:
		fits = kind == '*' || kind == '_'
	case s.depth == 2:
		fits = kind == '$'
	}
	if !fits {
		return errors.New("a push that is no invalidation")
	}
	return nil
}

// done closes a value and the aggregates that it was the last of.
func (s *scanner) done(kind byte) error {
	for s.depth > 0 {
		a := &s.stack[s.depth-1]
		a.seen++
		if a.left--; a.left > 0 {
			return nil
		}
		s.depth--
		kind = a.kind
	}
	return s.message(kind)
}

// number reads a length as the client library does.
func number(text []byte) (int, bool) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > maxDigits {
		return 0, false
	}
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, true
}
