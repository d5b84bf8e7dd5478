package sse

import "bytes"

// Frame is one event with the bytes that it was made of.
type Frame struct {
	// Raw are the bytes of the frame, the blank line included.
	Raw []byte
	// Event is the value of the last "event" field, nil if there is none.
	Event []byte
	// Data are the values of all "data" fields, joined by LF. It is nil if there is no
	// such field, and empty but not nil if there is one without a value.
	Data []byte
	// Comment says that the frame holds no field at all: comments or blank lines only,
	// as keep-alives are.
	Comment bool
}

// mark is the byte order mark that a stream may begin with.
var mark = [...]byte{0xEF, 0xBB, 0xBF}

// Parse reads the fields of one raw frame. Event and Data point into raw, except that
// several data lines are joined in new memory. First says that the frame is the first
// of its stream, where a byte order mark is no part of a name. The blank line at the
// end may be missing.
func Parse(raw []byte, first bool) Frame {
	f := Frame{Raw: raw, Comment: true}
	rest := raw
	if first {
		rest = bytes.TrimPrefix(rest, mark[:])
	}
	lines := 0
	for len(rest) > 0 {
		var line []byte
		line, rest = cutLine(rest)
		if len(line) == 0 || line[0] == ':' {
			continue
		}
		f.Comment = false
		name, value, _ := bytes.Cut(line, colon[:])
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		switch string(name) {
		case "event":
			f.Event = value
		case "data":
			lines++
			f.Data = join(f.Data, value, lines)
		}
	}
	return f
}

var colon = [...]byte{':'}

// join adds the n-th data line. The first is borrowed, and the others are copied
// behind a copy of it, so that raw never changes.
func join(data, value []byte, n int) []byte {
	switch n {
	case 1:
		if value == nil {
			return []byte{}
		}
		return value[:len(value):len(value)]
	case 2:
		data = append(make([]byte, 0, 2*(len(data)+len(value)+1)), data...)
	}
	return append(append(data, '\n'), value...)
}

// cutLine splits b behind its first line end. The line has none.
func cutLine(b []byte) (line, rest []byte) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		end = len(b)
	}
	if cr := bytes.IndexByte(b[:end], '\r'); cr >= 0 {
		if cr+1 < len(b) && b[cr+1] == '\n' {
			return b[:cr], b[cr+2:]
		}
		return b[:cr], b[cr+1:]
	}
	if end == len(b) {
		return b, nil
	}
	return b[:end], b[end+1:]
}
