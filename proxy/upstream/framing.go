package upstream

import (
	"bytes"
	"io"
)

// Bounds of a chunked body's own lines. A chunk's size line with its extensions, and each
// trailer line, must fit in half of a connection's buffer.
const (
	maxLine     = bufferSize / 2
	maxTrailers = 64
)

const (
	errChunkSize = malformed("a chunk's size is not a plain hexadecimal number")
	errChunkEnd  = malformed("a chunk does not end in CR LF")
	errChunkLine = malformed("a line between chunks is too long")
	errTrailers  = malformed("the trailer section is too long or has a control character")
)

type bodyState uint8

const (
	stateData    bodyState = iota // left more bytes are data
	stateSize                     // at a chunk's size line
	stateDataEnd                  // at the CR LF after a chunk's data
	stateTrailer                  // after the last chunk
	stateClose                    // all that comes is data
	stateDone
)

// framing finds the data within the bytes of a response body. It does no I/O.
type framing struct {
	state    bodyState
	chunked  bool
	trailers uint8
	left     int64
}

func newFraming(length int64) framing {
	switch {
	case length == lengthChunked:
		return framing{state: stateSize, chunked: true}
	case length == lengthClose:
		return framing{state: stateClose}
	case length == 0:
		return framing{state: stateDone}
	}
	return framing{state: stateData, left: length}
}

// next moves data from src to dst until src is used up as far as it can be, dst is full,
// the body is done or it is malformed. It returns how many bytes of src it is done with
// and how many it has put in dst. It is called again with what is left of src and more.
func (f *framing) next(dst, src []byte) (used, put int, err error) {
	for {
		rest := src[used:]
		switch f.state {
		case stateDone:
			return used, put, nil
		case stateClose:
			n := copy(dst[put:], rest)
			return used + n, put + n, nil
		case stateData:
			if int64(len(rest)) > f.left {
				rest = rest[:f.left]
			}
			n := copy(dst[put:], rest)
			used, put = used+n, put+n
			f.took(n)
			if f.state == stateData {
				return used, put, nil
			}
		case stateDataEnd:
			if len(rest) > 0 && rest[0] != '\r' || len(rest) > 1 && rest[1] != '\n' {
				return used, put, errChunkEnd
			}
			if len(rest) < 2 {
				return used, put, nil
			}
			used += 2
			f.state = stateSize
		case stateSize, stateTrailer:
			end := bytes.IndexByte(rest, '\n')
			if end >= maxLine || end < 0 && len(rest) >= maxLine {
				return used, put, errChunkLine
			}
			if end < 0 {
				return used, put, nil
			}
			if end == 0 || rest[end-1] != '\r' {
				return used, put, errLine
			}
			if err := f.line(rest[:end-1]); err != nil {
				return used, put, err
			}
			used += end + 1
		}
	}
}

// direct says how many bytes the caller's slice of size bytes can take straight from the
// connection, once next has used up the buffer: 0 if reading through the buffer is
// better, as it may bring the next chunk's size line along.
func (f *framing) direct(size int) int {
	switch {
	case f.state == stateClose && size >= bufferSize:
		return size
	case f.state == stateData && !f.chunked && (size >= bufferSize || int64(size) >= f.left):
		return int(min(int64(size), f.left))
	case f.state == stateData && f.chunked && size >= bufferSize && f.left >= bufferSize:
		return int(min(int64(size), f.left))
	}
	return 0
}

// took records that n bytes of data were taken without next, straight from the
// connection.
func (f *framing) took(n int) {
	if f.state != stateData {
		return
	}
	if f.left -= int64(n); f.left == 0 {
		f.state = stateDone
		if f.chunked {
			f.state = stateDataEnd
		}
	}
}

// line reads one line between chunks, without its CR LF.
func (f *framing) line(line []byte) error {
	if f.state == stateTrailer {
		if len(line) == 0 {
			f.state = stateDone
			return nil
		}
		if f.trailers++; f.trailers > maxTrailers || !cleanValue(line) {
			return errTrailers
		}
		return nil
	}
	size, err := chunkSize(line)
	if err != nil {
		return err
	}
	f.left, f.state = size, stateData
	if size == 0 {
		f.state = stateTrailer
	}
	return nil
}

// ended says what the end of the connection's bytes means at this place.
func (f *framing) ended() error {
	switch f.state {
	case stateClose:
		f.state = stateDone
		return io.EOF
	case stateDone:
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}

// chunkSize reads a size line: 1 to 15 hexadecimal digits, which can't overflow, then
// perhaps extensions, which mean nothing to us (RFC 9112, section 7.1.1).
func chunkSize(line []byte) (size int64, err error) {
	digits := 0
	for digits < len(line) {
		var d byte
		switch c := line[digits]; {
		case c >= '0' && c <= '9':
			d = c - '0'
		case c >= 'a' && c <= 'f':
			d = c - 'a' + 10
		case c >= 'A' && c <= 'F':
			d = c - 'A' + 10
		default:
			d = 0xff
		}
		if d == 0xff {
			break
		}
		size = size<<4 | int64(d)
		if digits++; digits > 15 {
			return 0, errChunkSize
		}
	}
	rest := bytes.TrimLeft(line[digits:], " \t")
	if digits == 0 || len(rest) > 0 && rest[0] != ';' || !cleanValue(rest) {
		return 0, errChunkSize
	}
	return size, nil
}
