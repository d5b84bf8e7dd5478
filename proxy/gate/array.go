package gate

import (
	"bytes"
	"errors"

	"github.com/fourgate-dev/fourgate/proxy/sse"
)

var errElementTooLong = errors.New("cannot read stream: an element of its array is longer than 1 MiB")

// splitter cuts a stream into frames: an [sse.Scanner], or an [arrayScanner].
type splitter interface {
	Feed(chunk []byte)
	NextRaw() (raw []byte, ok bool)
	Left() int // bytes of the chunk that were not scanned yet
	Rest() []byte
	Open() bool
	Err() error
	Skip()
}

// arrayScanner cuts a stream in a JSON array into its elements, as [sse.Scanner] cuts one
// of events. A frame is one element with all that stands before it, and last what closes
// the array. Its zero value is ready.
type arrayScanner struct {
	chunk   []byte // fed and not yet scanned, borrowed
	buf     []byte // the open frame's bytes from earlier chunks
	used    bool   // buf was given out
	in      brackets
	element bool // the open frame has some of an element
	closed  bool // the array has ended
	skip    bool // the open frame was given up
	err     error
}

func (a *arrayScanner) Feed(chunk []byte) { a.chunk = chunk }

func (a *arrayScanner) Left() int { return len(a.chunk) }

func (a *arrayScanner) Err() error { return a.err }

func (a *arrayScanner) Skip() { a.err = nil }

func (a *arrayScanner) Open() bool { return a.element }

func (a *arrayScanner) Rest() []byte {
	if a.used {
		return nil
	}
	return a.buf
}

func (a *arrayScanner) NextRaw() ([]byte, bool) {
	if a.err != nil {
		return nil, false
	}
	if a.used {
		a.buf, a.used = a.buf[:0], false
	}
	if a.closed { // white space follows, or what nobody reads
		a.chunk, a.buf = nil, nil
		return nil, false
	}
	n, whole := a.scan()
	part := a.chunk[:n]
	a.chunk = a.chunk[n:]
	if whole && a.skip {
		a.skip, a.buf = false, nil
		return a.NextRaw()
	}
	if a.skip {
		return nil, false
	}
	if len(a.buf)+n > sse.MaxFrame {
		a.buf, a.skip, a.err = nil, !whole, errElementTooLong
		return nil, false
	}
	if !whole {
		a.buf = append(a.buf, part...)
		return nil, false
	}
	if len(a.buf) == 0 {
		return part, true
	}
	a.buf, a.used = append(a.buf, part...), true
	return a.buf, true
}

// scan returns how many bytes of the chunk belong to the open frame, and whether it ends
// with them.
func (a *arrayScanner) scan() (n int, whole bool) {
	for i, c := range a.chunk {
		if a.element || a.in.depth == 0 {
			a.in.step(c)
			if a.in.depth == 1 && a.element && !a.in.text {
				a.element = false
				return i + 1, true
			}
			continue
		}
		switch c {
		case ' ', '\t', '\r', '\n', ',':
		case ']':
			a.closed = true
			return i + 1, true
		default:
			a.in.step(c)
			// A number or a word has no bracket that ends it: it ends the frame at once.
			if a.element = a.in.depth > 1 || a.in.text; !a.element {
				return i + 1, true
			}
		}
	}
	return len(a.chunk), false
}

// elementOf is the element in a frame of an array, empty if it has none.
func elementOf(raw []byte) []byte {
	raw = bytes.TrimLeft(bytes.TrimPrefix(raw, []byte(byteOrderMark)), " \t\r\n,")
	if len(raw) > 0 && raw[0] == '[' {
		raw = bytes.TrimLeft(raw[1:], " \t\r\n,")
	}
	if string(raw) == "]" {
		return nil
	}
	return raw
}
