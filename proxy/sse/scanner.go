package sse

import (
	"bytes"
	"errors"
)

// MaxFrame bounds one frame, blank line included. It is far above any event that a
// provider sends, except for images in a data URL.
const MaxFrame = 1 << 20

// ErrFrameTooLong says that a frame did not end within [MaxFrame] bytes.
var ErrFrameTooLong = errors.New("cannot read event stream: a frame is longer than 1 MiB")

// place is where the scanner stands within a line.
type place uint8

const (
	lineStart place = iota // nothing of this line was seen
	inLine
	afterCR // a line ended with CR; an LF that follows belongs to it
	blankCR // a blank line ended with CR among CRLF lines: its LF is to come
)

// Scanner cuts a stream into frames. Its zero value is ready. It may be used by one
// goroutine at a time.
//
// A frame that lies in one chunk is a part of that chunk; one that spans chunks is
// put together in memory of the scanner's own, at most [MaxFrame] bytes.
type Scanner struct {
	chunk []byte // fed and not yet scanned, borrowed from the caller
	lf    int    // distance from chunk's start to its next LF; negative: unknown
	buf   []byte // the open frame's bytes from earlier chunks
	used  bool   // buf was given out as a frame and starts anew with the next byte
	at    place
	crlf  bool // the line before this one ended with CRLF
	open  bool // the open frame has more than line ends
	begun bool // a frame was given out
	skip  bool // the open frame was given up
	err   error
}

// Feed hands the scanner the next bytes of the stream. The scanner borrows chunk
// until Next has returned false, and keeps a copy of what it still needs then. Call
// Next until it returns false before the next Feed.
func (s *Scanner) Feed(chunk []byte) {
	s.chunk, s.lf = chunk, -1
}

// Next returns the next whole frame. It returns false when more bytes are needed, or
// when [Scanner.Err] is set. The frame is valid until the next call of Next or Feed,
// as long as the chunk that it lies in.
func (s *Scanner) Next() (Frame, bool) {
	first := !s.begun
	raw, ok := s.NextRaw()
	if !ok {
		return Frame{}, false
	}
	return Parse(raw, first), true
}

// NextRaw is [Scanner.Next] for those who rarely need to know what is in a frame:
// [Parse] reads it.
func (s *Scanner) NextRaw() ([]byte, bool) {
	if s.err != nil {
		return nil, false
	}
	if s.used {
		s.buf, s.used = s.buf[:0], false
	}
	for {
		n, whole := s.scan()
		part := s.chunk[:n]
		if s.skip {
			s.take(n)
			if !whole {
				return nil, false
			}
			s.skip, s.open = false, false
			continue
		}
		if len(s.buf)+n > MaxFrame {
			s.take(n)
			s.buf = nil
			s.err = ErrFrameTooLong
			// A frame that has ended meanwhile needs no skipping.
			s.begun, s.skip, s.open = true, !whole, false
			return nil, false
		}
		s.take(n)
		if !whole {
			s.buf = append(s.buf, part...)
			return nil, false
		}
		s.begun, s.open = true, false
		if len(s.buf) == 0 {
			return part, true
		}
		s.buf, s.used = append(s.buf, part...), true
		return s.buf, true
	}
}

// Left returns how many bytes of the chunk that was fed last are not in a frame that was
// given out, nor kept as the beginning of one.
func (s *Scanner) Left() int { return len(s.chunk) }

// Skip gives up the frame that was too long: scanning goes on behind its end, and
// its bytes are held no more.
func (s *Scanner) Skip() { s.err = nil }

// Err returns [ErrFrameTooLong] or nil.
func (s *Scanner) Err() error { return s.err }

// Rest returns the bytes behind the last whole frame: valid until the next Feed.
func (s *Scanner) Rest() []byte {
	if s.used {
		return nil
	}
	return s.buf
}

// Open says whether the stream stands within a frame: some of an event was seen, and
// not yet the blank line that ends it.
func (s *Scanner) Open() bool { return s.open || s.skip }

// take moves the chunk's start forward.
func (s *Scanner) take(n int) {
	s.chunk = s.chunk[n:]
	s.lf -= n
}

// scan returns how many bytes of the chunk belong to the open frame, and whether it
// ends with them.
//
// Where a blank line ends with CR, an LF may follow that belongs to it. The scanner
// waits for it if the line before ended with CRLF. Otherwise the frame ends with the
// CR, since in a stream of CR lines nothing may follow for long; should an LF come all
// the same, it goes to the next frame as half a line end. The bytes alone decide,
// never how they were cut.
func (s *Scanner) scan() (n int, whole bool) {
	c := s.chunk
	for n < len(c) {
		switch s.at {
		case blankCR:
			s.at = lineStart
			if c[n] == '\n' {
				n++
			}
			return n, true
		case afterCR:
			s.at = lineStart
			if s.crlf = c[n] == '\n'; s.crlf {
				n++
			}
		case inLine:
			n = s.lineEnd(n)
			if n == len(c) {
				return n, false
			}
			s.crlf = false
			s.at = lineStart
			if c[n] == '\r' {
				s.at = afterCR
			}
			n++
		case lineStart:
			switch c[n] {
			case '\n':
				return n + 1, true
			case '\r':
				n++
				if !s.crlf {
					s.at = afterCR
					return n, true
				}
				s.at = blankCR
			default:
				s.at, s.open = inLine, true
			}
		}
	}
	return n, false
}

// lineEnd returns where the line that goes on at n ends: at a CR or LF, or with the
// chunk. The place of the next LF is remembered, so that a chunk is searched once
// even if all its lines end with CR.
func (s *Scanner) lineEnd(n int) int {
	if s.lf < n {
		if s.lf = bytes.IndexByte(s.chunk[n:], '\n'); s.lf < 0 {
			s.lf = len(s.chunk)
		} else {
			s.lf += n
		}
	}
	if cr := bytes.IndexByte(s.chunk[n:s.lf], '\r'); cr >= 0 {
		return n + cr
	}
	return s.lf
}
