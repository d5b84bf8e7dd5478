package sim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// start serves a simulator on a real socket until the test ends.
func start(t testing.TB, o Options) *Sim {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// script parses a script that must be right.
func script(t testing.TB, text string) []Fault {
	t.Helper()
	faults, err := ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

func dial(t testing.TB, s *Sim) *net.TCPConn {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	// A broken simulator must not hang the test.
	if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return nc.(*net.TCPConn)
}

// patience bounds every wait of a test that is about to fail anyway.
func patience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// post writes one request as a client would.
func post(t testing.TB, w io.Writer, path, body string, headers ...string) {
	t.Helper()
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: sim\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, len(body))
	for _, h := range headers {
		head += h + "\r\n"
	}
	if _, err := io.WriteString(w, head+"\r\n"+body); err != nil {
		t.Fatal(err)
	}
}

// readAll reads to the end of the connection and names that end.
func readAll(t testing.TB, r io.Reader) (bytes, end string) {
	t.Helper()
	got, err := io.ReadAll(r)
	switch {
	case err == nil:
		return string(got), "FIN"
	case errors.Is(err, syscall.ECONNRESET):
		return string(got), "RST"
	}
	t.Fatalf("read %q: %v", got, err)
	return "", ""
}

// readUntil reads to a text that must come.
func readUntil(t testing.TB, r *bufio.Reader, text string) string {
	t.Helper()
	var got strings.Builder
	for !strings.HasSuffix(got.String(), text) {
		b, err := r.ReadByte()
		if err != nil {
			t.Fatalf("read %q, then %v; want %q", got.String(), err, text)
		}
		got.WriteByte(b)
	}
	return got.String()
}

// The requests that tests send.
const (
	chatWhole    = `{"model":"gpt-4o-2024-08-06","messages":[{"role":"user","content":"Hi"}]}`
	chatStream   = `{"model":"gpt-4o-2024-08-06","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hi"}]}`
	claudeWhole  = `{"model":"claude-sonnet-4-5-20250929","max_tokens":64,"messages":[{"role":"user","content":"Hi"}]}`
	claudeStream = `{"model":"claude-sonnet-4-5-20250929","max_tokens":64,"stream":true,"messages":[{"role":"user","content":"Hi"}]}`
)
