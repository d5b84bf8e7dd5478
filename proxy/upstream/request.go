package upstream

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/fourgate-dev/fourgate/engine"
)

// Request is what to send. It and all that it points to must not change until
// [Attempt.Open] has returned.
type Request struct {
	Method string
	// Path is appended to the target's base path as it is: it starts with a slash, is
	// percent-encoded and may have a query.
	Path string
	// Header is sent in this order. Fields that belong to the connection (Host,
	// Content-Length, Connection and the other hop-by-hop ones) are the transport's own
	// and skipped here.
	Header []engine.Header
	// Body is sent as the concatenation of its slices, so that a changed model name
	// needs no copy of the rest.
	Body [][]byte
}

func (r *Request) bodyLen() int64 {
	var n int64
	for _, b := range r.Body {
		n += int64(len(b))
	}
	return n
}

var (
	errMethod = errors.New("the method is no token")
	errPath   = errors.New("the path does not start with a slash or is not percent-encoded")
)

// appendHead appends the request's head to b. It refuses whatever could make the upstream
// see another request than the one that is meant; its errors name a header and never
// repeat a value.
func appendHead(b []byte, t *Target, r *Request) ([]byte, error) {
	if r.Method == "" || tokenLen(r.Method) != len(r.Method) {
		return b, errMethod
	}
	if r.Path != "" && r.Path[0] != '/' || !plain(r.Path) {
		return b, errPath
	}
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, t.base...)
	b = append(b, r.Path...)
	if t.base == "" && r.Path == "" {
		b = append(b, '/')
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, t.host...)
	b = append(b, "\r\n"...)
	for i := range r.Header {
		f := &r.Header[i]
		if hop(f.Name) != endToEnd || isHost(f.Name) {
			continue
		}
		if f.Name == "" || tokenLen(f.Name) != len(f.Name) {
			return b, errors.New("a header name is no token")
		}
		if !cleanValue(f.Value) {
			return b, fmt.Errorf("the value of header %s has a control character", f.Name)
		}
		b = append(b, f.Name...)
		b = append(b, ": "...)
		b = append(b, f.Value...)
		b = append(b, "\r\n"...)
	}
	if n := r.bodyLen(); n > 0 || r.Method != "GET" && r.Method != "HEAD" {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, n, 10)
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...), nil
}

func isHost(name string) bool {
	return len(name) == 4 && name[0]|0x20 == 'h' && name[1]|0x20 == 'o' && name[2]|0x20 == 's' && name[3]|0x20 == 't'
}

// write sends a request's head and body with as few system calls as there can be, and
// says how many bytes the connection has accepted. The head is built in the read buffer:
// nothing can be read yet. late gives the time limit; it is asked for only if the write
// may block.
func (c *conn) write(head []byte, body [][]byte, late func() error) (int64, error) {
	first := 0 // slice of body that is not wholly in head
	for first < len(body) && len(head)+len(body[first]) <= cap(head) {
		head = append(head, body[first]...)
		first++
	}
	whole := first == len(body)
	// An empty socket buffer takes a few kilobytes without blocking.
	if !whole || c.probe == nil {
		if err := late(); err != nil {
			return 0, err
		}
	}
	if whole {
		n, err := c.rw.Write(head)
		return int64(n), err
	}
	if c.secure {
		// Records are filled best when the head isn't alone in one.
		n := copy(head[len(head):cap(head)], body[first])
		head = head[:len(head)+n]
		sent, err := c.rw.Write(head)
		if err != nil {
			return int64(sent), err
		}
		rest := append(net.Buffers{body[first][n:]}, body[first+1:]...)
		more, err := rest.WriteTo(c.rw)
		return int64(sent) + more, err
	}
	c.vec = append(append(c.vec[:0], head), body[first:]...)
	bufs := c.vec
	n, err := c.vec.WriteTo(c.rw)
	clear(bufs)
	c.vec = bufs[:0]
	return n, err
}
