package upstream

import (
	"bytes"
	"io"
	"net/http/httputil"
	"strings"
	"testing"
)

// A head is read the same however it arrives, and what is accepted can't be read in
// another way: each field's line is there as it was written.
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhello",
		"HTTP/1.1 429\r\n\r\n",
		"HTTP/1.0 200 OK\r\nConnection: close, x-a\r\nX-A: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA : b\r\n c\r\n\r\n",
		"HTTP/1.1 200 OK\nA: b\n\n",
	} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		end, _, lines, err := headEnd(in, 0, 0)
		if step > 0 {
			at, from, n := 0, 0, 0
			var bad error
			for size := step; bad == nil && at == 0; size += step {
				at, from, n, bad = headEnd(in[:min(size, len(in))], from, n)
				if size >= len(in) {
					break
				}
			}
			if at != end || (bad != nil) != (err != nil) || end > 0 && n != lines {
				t.Fatalf("in steps of %d: end %d, %d lines, %v; at once %d, %d, %v", step, at, n, bad, end, lines, err)
			}
		}
		if end == 0 {
			return
		}
		block := in[:end]
		h, err := parseHead(block, lines, false)
		if err != nil {
			return
		}
		if h.status < 100 || h.length < lengthClose || len(h.fields) > maxFields {
			t.Fatalf("accepted %+v", h)
		}
		for _, field := range h.fields {
			if !bytes.Contains(block, []byte("\r\n"+field.Name+":")) || strings.ContainsAny(field.Name+field.Value, "\r\n\x00") {
				t.Fatalf("field %q: %q is not in %q", field.Name, field.Value, block)
			}
		}
		lower := bytes.ToLower(block)
		if bytes.Contains(lower, []byte("\r\ncontent-length:")) && bytes.Contains(lower, []byte("\r\ntransfer-encoding:")) {
			t.Fatalf("accepted two framings: %q", block)
		}
	})
}

// A chunked body gives the same bytes and the same end however it is cut into reads, and
// what is accepted is what the standard library's reader makes of it.
func FuzzFraming(f *testing.F) {
	for _, s := range []string{
		"1\r\na\r\n00a;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
		"3\r\nabc\r\n0\r\n\r\nsurplus",
		"3\r\nabcd\r\n", "-1\r\n", "fffffffffffffffff\r\n", "0x1\r\n", "1 ;\t\r\n", "1\n", "\r\n",
	} {
		f.Add([]byte(s), 1, 1)
		f.Add([]byte(s), 5, 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, in1, out1 int) {
		body, used, done, err := unframe(in, len(in)+1, len(in)+1)
		if in1 > 0 && out1 > 0 {
			b, u, d, e := unframe(in, in1, out1)
			if !bytes.Equal(b, body) || d != done || (e == nil) != (err == nil) || done && u != used {
				t.Fatalf("in pieces: %q, %d, %v, %v; at once: %q, %d, %v, %v", b, u, d, e, body, used, done, err)
			}
		}
		if !done {
			return
		}
		want, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(in)))
		if err == nil && !bytes.Equal(want, body) {
			t.Fatalf("read %q, the standard library %q", body, want)
		}
	})
}

// unframe reads a chunked body that arrives in pieces of step bytes with slices of size
// bytes.
func unframe(in []byte, step, size int) (body []byte, used int, done bool, err error) {
	fr := newFraming(lengthChunked)
	dst := make([]byte, min(size, 64))
	have := 0
	for {
		n, put, err := fr.next(dst, in[used:have])
		used += n
		body = append(body, dst[:put]...)
		switch {
		case err != nil:
			return body, used, false, err
		case fr.state == stateDone:
			return body, used, true, nil
		case put > 0 || n > 0:
			continue
		case have == len(in):
			return body, used, false, nil
		}
		have = min(have+min(step, len(in)), len(in))
	}
}
