package upstream

import (
	"bytes"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// Bounds of a response head. 6 kB heads are normal behind some gateways; 64 KiB is what
// the proxy's own side accepts, too.
const (
	maxHead    = 64 << 10
	maxFields  = 256
	maxInterim = 8 // heads with a 1xx status before the final one
)

// The lengths of a body that has no length in its head.
const (
	lengthChunked = -1
	lengthClose   = -2 // ends when the upstream closes
)

const (
	errStatusLine  = malformed("the status line is not one of HTTP/1.0 or HTTP/1.1")
	errLine        = malformed("a line does not end in CR LF")
	errHeadSize    = malformed("the response head is over 64 KiB")
	errFieldCount  = malformed("the response head has over 256 fields")
	errFieldName   = malformed("a header name is not a token right before its colon")
	errFieldValue  = malformed("a header value has a control character")
	errLength      = malformed("Content-Length is not one plain number")
	errEncoding    = malformed("Transfer-Encoding is not exactly chunked")
	errBothLengths = malformed("both Content-Length and Transfer-Encoding are given")
	errUpgrade     = malformed("the protocol was switched without being asked")
	errInterim     = malformed("there are over 8 interim responses")
)

// head is a parsed response head.
type head struct {
	status int
	length int64 // of the body; lengthChunked or lengthClose
	close  bool  // the connection can't be used again
	fields engine.Headers
}

// headEnd looks for the empty line that ends a head. from is where the last incomplete
// line of b starts, as an earlier call returned it; lines counts the whole ones so far.
// end is 0 while there is no empty line.
func headEnd(b []byte, from, lines int) (end, next, count int, err error) {
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0, from, lines, nil
		}
		if i == 0 || b[from+i-1] != '\r' {
			return 0, 0, 0, errLine
		}
		if i == 1 {
			return from + 2, 0, lines, nil
		}
		if lines++; lines > maxFields+1 {
			return 0, 0, 0, errFieldCount
		}
		from += i + 1
	}
}

// statusPrefix says whether b can be the start of a status line, so that a peer that
// speaks something else is found out at its first bytes.
func statusPrefix(b []byte) bool {
	const want = "HTTP/1."
	n := min(len(b), len(want))
	return string(b[:n]) == want[:n]
}

// parseStatus reads the status line at the start of b.
func parseStatus(b []byte) (status int, http10 bool, err error) {
	const line = len("HTTP/1.1 200")
	if len(b) < line+2 || !statusPrefix(b) || b[7] != '0' && b[7] != '1' || b[8] != ' ' {
		return 0, false, errStatusLine
	}
	for _, c := range b[9:line] {
		if c < '0' || c > '9' {
			return 0, false, errStatusLine
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 || b[line] != ' ' && b[line] != '\r' {
		return 0, false, errStatusLine
	}
	return status, b[7] == '0', nil
}

// parseHead reads a whole final head, its empty line included, with lines lines as
// [headEnd] counted them. toHead says that the request's method was HEAD. The fields
// point into one copy of block.
func parseHead(block []byte, lines int, toHead bool) (head, error) {
	status, http10, err := parseStatus(block)
	if err != nil {
		return head{}, err
	}
	h := head{status: status, length: lengthClose, close: http10, fields: make(engine.Headers, 0, max(lines-1, 0))}
	text := string(block[:len(block)-2])
	first := strings.IndexByte(text, '\n')
	if first < 1 || !cleanValue(text[:first-1]) {
		return head{}, errStatusLine
	}
	var dropped []string // names in Connection
	chunked, sized := false, false
	for text = text[first+1:]; text != ""; {
		end := strings.IndexByte(text, '\n')
		if end < 1 {
			return head{}, errLine
		}
		line := text[:end-1]
		text = text[end+1:]
		colon := tokenLen(line)
		if colon == 0 || colon == len(line) || line[colon] != ':' {
			return head{}, errFieldName
		}
		name, value := line[:colon], trimSpace(line[colon+1:])
		if !cleanValue(value) {
			return head{}, errFieldValue
		}
		switch hop(name) {
		case endToEnd:
			h.fields = append(h.fields, engine.Header{Name: name, Value: value})
		case contentLength:
			n, ok := parseLength(value)
			if !ok || sized {
				return head{}, errLength
			}
			sized, h.length = true, n
			h.fields = append(h.fields, engine.Header{Name: name, Value: value})
		case transferEncoding:
			if chunked || http10 || !strings.EqualFold(value, "chunked") {
				return head{}, errEncoding
			}
			chunked = true
		case connection:
			for option := range strings.SplitSeq(value, ",") {
				option = trimSpace(option)
				if strings.EqualFold(option, "close") {
					h.close = true
				} else if hop(option) == endToEnd && option != "" {
					dropped = append(dropped, option)
				}
			}
		case hopByHop:
		}
	}
	if chunked {
		if sized {
			return head{}, errBothLengths
		}
		h.length = lengthChunked
	}
	for _, name := range dropped {
		h.fields = without(h.fields, name)
	}
	if toHead || status == 204 || status == 304 {
		h.length = 0
	}
	h.close = h.close || h.length == lengthClose
	return h, nil
}

// The kinds of header fields that the transport tells apart.
type fieldKind uint8

const (
	endToEnd fieldKind = iota
	contentLength
	transferEncoding
	connection
	hopByHop
)

// hop tells a field's kind by its name. The hop-by-hop names are those of RFC 9110,
// section 7.6.1, and Proxy-Authenticate, which speaks to us and not to the caller.
func hop(name string) fieldKind {
	switch len(name) {
	case 2:
		if strings.EqualFold(name, "TE") {
			return hopByHop
		}
	case 7:
		if strings.EqualFold(name, "Trailer") || strings.EqualFold(name, "Upgrade") {
			return hopByHop
		}
	case 10:
		if strings.EqualFold(name, "Connection") {
			return connection
		}
		if strings.EqualFold(name, "Keep-Alive") {
			return hopByHop
		}
	case 14:
		if strings.EqualFold(name, "Content-Length") {
			return contentLength
		}
	case 16:
		if strings.EqualFold(name, "Proxy-Connection") {
			return hopByHop
		}
	case 17:
		if strings.EqualFold(name, "Transfer-Encoding") {
			return transferEncoding
		}
	case 18:
		if strings.EqualFold(name, "Proxy-Authenticate") {
			return hopByHop
		}
	case 19:
		if strings.EqualFold(name, "Proxy-Authorization") {
			return hopByHop
		}
	}
	return endToEnd
}

func without(fields engine.Headers, name string) engine.Headers {
	kept := fields[:0]
	for _, f := range fields {
		if !strings.EqualFold(f.Name, name) {
			kept = append(kept, f)
		}
	}
	return kept
}

// parseLength reads 1 to 18 digits, which can't overflow.
func parseLength(s string) (n int64, ok bool) {
	if len(s) == 0 || len(s) > 18 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

// tokenLen returns how many bytes at the start of s are token characters of RFC 9110,
// section 5.6.2.
func tokenLen(s string) int {
	for i := range len(s) {
		if !tokenChars[s[i]] {
			return i
		}
	}
	return len(s)
}

var tokenChars = func() (t [256]bool) {
	for c := byte('0'); c <= '9'; c++ {
		t[c] = true
	}
	for c := byte('a'); c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = true, true
	}
	for _, c := range []byte("!#$%&'*+-.^_`|~") {
		t[c] = true
	}
	return t
}()

// cleanValue says whether s has no control character but tabs.
func cleanValue[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func trimSpace(s string) string { return strings.Trim(s, " \t") }
