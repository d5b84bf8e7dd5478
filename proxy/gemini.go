package proxy

import "strconv"

// geminiShape is `{"error":{"code","message","status"}}`.
type geminiShape struct{}

func (geminiShape) appendError(dst []byte, p *problem, id string) []byte {
	dst = append(dst, `{"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(p.status), 10)
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, p.text(id))
	dst = append(dst, `,"status":`...)
	dst = appendQuoted(dst, geminiStatus(p.status))
	return append(dst, `}}`...)
}

// appendEvent writes a bare data line: with an event line, Google's JavaScript SDK
// drops the error silently.
func (s geminiShape) appendEvent(dst []byte, p *problem, id string, at streamPlace) []byte {
	dst = append(at.separate(dst), "data: "...)
	dst = s.appendError(dst, p, id)
	return append(dst, "\n\n"...)
}

// geminiArrayShape is for streams in a JSON array, whose last element it adds. An element
// that was cut can't be mended: a reader of JSON fails at it.
type geminiArrayShape struct{ geminiShape }

func (s geminiArrayShape) appendEvent(dst []byte, p *problem, id string, at streamPlace) []byte {
	switch {
	case at.open:
		dst = append(dst, "\n,"...)
	case at.events > 0:
		dst = append(dst, ",\n"...)
	default:
		dst = append(dst, '[')
	}
	dst = s.appendError(dst, p, id)
	return append(dst, "]\n"...)
}

func geminiStatus(status int) string {
	switch status {
	case 401:
		return "UNAUTHENTICATED"
	case 403:
		return "PERMISSION_DENIED"
	case 404, 405:
		return "NOT_FOUND"
	case 402, 429:
		return "RESOURCE_EXHAUSTED"
	case 409:
		return "ABORTED"
	case 500:
		return "INTERNAL"
	case 504:
		return "DEADLINE_EXCEEDED"
	}
	if status < 500 {
		return "INVALID_ARGUMENT"
	}
	return "UNAVAILABLE"
}
