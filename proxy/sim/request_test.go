package sim

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

func FuzzReadRequest(f *testing.F) {
	for _, seed := range []string{
		"POST /a/v1/messages HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
		"POST /a/v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\n{}\r\n0\r\nT: t\r\n\r\n",
		"GET /a/v1/models HTTP/1.1\nExpect: 100-continue\n\n",
		"GET /a HTTP/1.0\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := readRequest(bufio.NewReaderSize(strings.NewReader(raw), readBuffer), func() error { return nil })
		var bad *badRequest
		switch {
		case err == nil:
			if !strings.HasPrefix(r.target, "/") || len(r.body) > len(raw) {
				t.Fatalf("%q was read as %+v", raw, r)
			}
			var q query
			_, path := splitTarget(r.target)
			q.read(path, "", r.body)
		case errors.As(err, &bad):
			if bad.status < 400 || bad.status > 599 {
				t.Fatalf("%q is answered with %d", raw, bad.status)
			}
		case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			t.Fatalf("%q: %v", raw, err)
		}
	})
}
