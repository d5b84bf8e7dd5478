package sim

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The bounds of a request: beyond them the connection is closed with a 400 or a 413.
const (
	readBuffer = 16 << 10 // and so the longest header line
	maxFields  = 256
	maxReqBody = 64 << 20
)

// request is one request as it came.
type request struct {
	method, target string
	fields         []Field
	body           []byte
	close          bool // the peer asked for the connection to be closed
}

// badRequest is a request that can't be answered by a script.
type badRequest struct {
	status int
	why    string
}

func (b *badRequest) Error() string { return b.why }

// get returns the first value of a header field.
func (q *request) get(name string) string { return get(q.fields, name) }

func get(fields []Field, name string) string {
	for i := range fields {
		if strings.EqualFold(fields[i].Name, name) {
			return fields[i].Value
		}
	}
	return ""
}

// readRequest reads one request. proceed is called if the peer waits for a 100 before
// it sends the body. The error is a *badRequest if bytes came that are no request, and
// the connection's own if it ended; the request is nil unless its head was whole.
func readRequest(r *bufio.Reader, proceed func() error) (*request, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	q := &request{}
	var version string
	var ok bool
	if q.method, q.target, ok = strings.Cut(line, " "); ok {
		q.target, version, ok = strings.Cut(q.target, " ")
	}
	if !ok || !strings.HasPrefix(q.target, "/") {
		return nil, &badRequest{400, "the request line is none"}
	}
	if version != "HTTP/1.1" {
		return nil, &badRequest{505, "only HTTP/1.1 is spoken here"}
	}
	for {
		if line, err = readLine(r); err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || len(q.fields) == maxFields {
			return nil, &badRequest{400, "a header line is none, or there are too many"}
		}
		q.fields = append(q.fields, Field{name, strings.TrimSpace(value)})
	}
	q.close = strings.EqualFold(q.get("Connection"), "close")
	if strings.EqualFold(q.get("Expect"), "100-continue") {
		if err := proceed(); err != nil {
			return q, err
		}
	}
	return q, q.readBody(r)
}

func (q *request) readBody(r *bufio.Reader) error {
	if strings.EqualFold(q.get("Transfer-Encoding"), "chunked") {
		return q.readChunks(r)
	}
	length := q.get("Content-Length")
	if length == "" {
		return nil
	}
	n, err := strconv.ParseUint(length, 10, 63)
	if err != nil {
		return &badRequest{400, "Content-Length is no number"}
	}
	if n > maxReqBody {
		return &badRequest{413, fmt.Sprintf("the body has more than %d bytes", maxReqBody)}
	}
	q.body = make([]byte, n)
	_, err = io.ReadFull(r, q.body)
	return err
}

func (q *request) readChunks(r *bufio.Reader) error {
	var body bytes.Buffer
	for {
		line, err := readLine(r)
		if err != nil {
			return err
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 31)
		if err != nil {
			return &badRequest{400, "a chunk size is none"}
		}
		if body.Len()+int(n) > maxReqBody {
			return &badRequest{413, fmt.Sprintf("the body has more than %d bytes", maxReqBody)}
		}
		if _, err := io.CopyN(&body, r, int64(n)); err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if line, err := readLine(r); err != nil || line != "" {
			return errors.Join(err, &badRequest{400, "a chunk is longer than it said"})
		}
	}
	for trailer := 0; trailer < maxFields; trailer++ {
		line, err := readLine(r)
		if err != nil || line == "" {
			q.body = body.Bytes()
			return err
		}
	}
	return &badRequest{400, "there are too many trailers"}
}

// readLine returns the next line without its end.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case err == nil:
		return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
	case errors.Is(err, bufio.ErrBufferFull):
		return "", &badRequest{400, "a line is too long"}
	}
	return "", err
}
