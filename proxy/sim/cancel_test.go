package sim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A peer that leaves is seen while the simulator is silent, whether it says so with a
// FIN or with a RST, before the headers, before the output and in the middle of it.
func TestPeerLeaves(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	f := func(name, faults, seenBefore string, reset bool) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.Channel(name).Script(script(t, faults)...)
			nc := dial(t, s)
			post(t, nc, "/"+name+"/v1/chat/completions", chatStream)
			if seenBefore != "" {
				readUntil(t, bufio.NewReader(nc), seenBefore)
			}
			if err := s.WaitArrived(patience(t), name, 1); err != nil {
				t.Fatal(err)
			}
			if r := s.Requests(name)[0]; r.Gone || r.Done {
				t.Errorf("before the peer left: gone %v, done %v", r.Gone, r.Done)
			}
			if reset {
				if err := nc.SetLinger(0); err != nil {
					t.Fatal(err)
				}
			}
			nc.Close()
			if err := s.WaitGone(patience(t), name, 1); err != nil {
				t.Fatal(err)
			}
			if r := s.Requests(name)[0]; r.Done || r.GoneAt.Before(r.At) {
				t.Errorf("done %v, arrived %v, gone %v", r.Done, r.At, r.GoneAt)
			}
		})
	}
	for _, reset := range []bool{false, true} {
		f(fmt.Sprintf("headers-%v", reset), "stall before-headers", "", reset)
		f(fmt.Sprintf("output-%v", reset), "stall before-output", `"content":""`, reset)
		f(fmt.Sprintf("middle-%v", reset), "stall after=2", `"content":"answer "`, reset)
		f(fmt.Sprintf("slow-first-%v", reset), "slow first=1h", `"content":""`, reset)
		f(fmt.Sprintf("slow-gap-%v", reset), "slow gap=1h", `"content":"This "`, reset)
		f(fmt.Sprintf("slow-headers-%v", reset), "slow headers=1h", "", reset)
	}
}

// pipes is a listener of in-memory connections: in a bubble they wait in virtual time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// bubble runs a test against a simulator in virtual time. talk gets a connection.
func bubble(t *testing.T, faults string, talk func(t *testing.T, s *Sim, nc net.Conn)) {
	t.Helper()
	steps := script(t, faults)
	synctest.Test(t, func(t *testing.T) {
		s, p := New(Options{}), &pipes{make(chan net.Conn), make(chan struct{})}
		s.Channel("a").Script(steps...)
		served := make(chan error, 1)
		go func() { served <- s.Serve(p) }()
		ours, theirs := net.Pipe()
		p.conns <- theirs
		talk(t, s, ours)
		ours.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// The pauses stand exactly where the script puts them.
func TestPauses(t *testing.T) {
	t.Parallel()
	f := func(name, body, faults string, want map[string]time.Duration) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			bubble(t, faults, func(t *testing.T, s *Sim, nc net.Conn) {
				begun := time.Now()
				post(t, nc, "/a/v1/chat/completions", body)
				r := bufio.NewReader(nc)
				var got strings.Builder
				found := map[string]time.Duration{}
				for len(found) < len(want) {
					b, err := r.ReadByte()
					if err != nil {
						t.Fatalf("%v after %q", err, got.String())
					}
					got.WriteByte(b)
					for text := range want {
						if _, ok := found[text]; !ok && strings.HasSuffix(got.String(), text) {
							found[text] = time.Since(begun)
						}
					}
				}
				for text, at := range want {
					if found[text] != at {
						t.Errorf("%q came after %v, want %v", text, found[text], at)
					}
				}
			})
		})
	}
	f("stream", chatStream, "slow headers=1s first=2s gap=20ms chunks=3", map[string]time.Duration{
		"HTTP/1.1": time.Second, `"content":""`: time.Second,
		`"content":"This "`: 3 * time.Second, `"content":"answer "`: 3*time.Second + 20*time.Millisecond,
		`"content":"comes "`: 3*time.Second + 40*time.Millisecond, "[DONE]": 3*time.Second + 40*time.Millisecond,
	})
	f("whole", chatWhole, "slow headers=1s first=2s", map[string]time.Duration{
		"HTTP/1.1": 3 * time.Second, "fp_sim": 3 * time.Second,
	})
	f("error", chatWhole, "status=503 headers=1s", map[string]time.Duration{"HTTP/1.1 503": time.Second})
}

// A stall has no end but the peer's: after an hour there is still not one byte.
func TestStallIsSilent(t *testing.T) {
	t.Parallel()
	bubble(t, "stall after=1", func(t *testing.T, s *Sim, nc net.Conn) {
		post(t, nc, "/a/v1/chat/completions", chatStream)
		readUntil(t, bufio.NewReader(nc), `"content":"This "},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n\r\n")
		if err := nc.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if n, err := nc.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) {
			t.Errorf("read %d, %v; want silence", n, err)
		}
		nc.Close()
		if err := s.WaitGone(t.Context(), "a", 1); err != nil {
			t.Error(err)
		}
		if r := s.Requests("a")[0]; r.GoneAt.Sub(r.At) != time.Hour {
			t.Errorf("gone after %v, want 1h", r.GoneAt.Sub(r.At))
		}
	})
}

// A date in Retry-After is read against the Date beside it.
func TestRetryAfterDate(t *testing.T) {
	t.Parallel()
	bubble(t, "status=429 retry-after-date=90s", func(t *testing.T, _ *Sim, nc net.Conn) {
		time.Sleep(time.Hour) // the bubble's clock: the timeline is made when the request comes
		post(t, nc, "/a/v1/chat/completions", chatWhole)
		got := readUntil(t, bufio.NewReader(nc), "rate_limit_exceeded\"}}")
		for _, want := range []string{"Date: Sat, 01 Jan 2000 01:00:00 GMT\r\n", "retry-after: Sat, 01 Jan 2000 01:01:30 GMT\r\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
	})
}

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.WaitArrived(ctx, "nobody", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}
