package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/proxy/sim"
)

// The ways in which a caller leaves: with the farewell of TLS, without it, and by a reset.
var departures = []struct {
	name  string
	leave func(secure *tls.Conn, socket *net.TCPConn) error
}{
	{"close_notify", func(secure *tls.Conn, _ *net.TCPConn) error { return secure.Close() }},
	// A close with bytes unread, such as a session ticket, would be a reset.
	{"FIN", func(_ *tls.Conn, socket *net.TCPConn) error { return socket.CloseWrite() }},
	{"RST", func(_ *tls.Conn, socket *net.TCPConn) error { return errors.Join(socket.SetLinger(0), socket.Close()) }},
}

// visit sends a streaming request over TLS and leaves: once it has arrived at channel a, or
// once two pieces of content were read. It returns when the caller left.
func (s *secured) visit(tb testing.TB, ctx context.Context, id string, n int, midStream bool, leave func(*tls.Conn, *net.TCPConn) error) time.Time {
	tb.Helper()
	socket, err := net.Dial("tcp", s.addr)
	if err != nil {
		tb.Fatal(err)
	}
	defer socket.Close()
	_ = socket.SetDeadline(time.Now().Add(waitLimit))
	secure := tls.Client(socket, s.trusts())
	body := chat("model-1", true)
	if _, err := fmt.Fprintf(secure, "POST /v1/chat/completions HTTP/1.1\r\nHost: proxy.test\r\nX-Request-Id: %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", id, len(body), body); err != nil {
		tb.Fatal(err)
	}
	if err := s.sim.WaitArrived(ctx, "a", n); err != nil {
		tb.Fatal(err)
	}
	if midStream {
		in := bufio.NewReader(secure)
		for pieces := 0; pieces < 2; {
			line, err := in.ReadString('\n')
			if err != nil {
				tb.Fatalf("the stream ended with %v", err)
			}
			if strings.Contains(line, `"content":"`) {
				pieces++
			}
		}
	}
	left := time.Now()
	if err := leave(secure, socket.(*net.TCPConn)); err != nil {
		tb.Fatal(err)
	}
	if err := s.sim.WaitGone(ctx, "a", n); err != nil {
		tb.Fatalf("the upstream's connection was not closed: %v", err)
	}
	_, _ = io.Copy(io.Discard, socket) // the proxy closes it, whatever it says before
	return left
}

// A caller that leaves over TLS closes the upstream's connection, by TLS too, wherever the
// answer is. No time limit of the proxy is within reach: it can only be the leaving.
func TestCallerLeavesOverTLS(t *testing.T) {
	t.Parallel()
	s := newSecured(t, "upstream.test")
	r := s.ledgered(t)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	n := 0
	for _, where := range []struct{ name, fault, story string }{
		{"before headers", "stall before-headers", "a cancelled/caller_cancelled before_headers: cancelled"},
		{"in the gate", "stall before-output", "a cancelled/caller_cancelled before_output: cancelled"},
		{"mid-stream", "stall after=2", "a cancelled/caller_cancelled after_output: cancelled"},
	} {
		for _, how := range departures {
			n++
			r.script("a", where.fault)
			id := fmt.Sprint("leaves-", n)
			left := s.visit(t, ctx, id, n, where.name == "mid-stream", how.leave)
			t.Logf("%s, %s: the upstream's connection was closed after %v", where.name, how.name, s.sim.Requests("a")[n-1].GoneAt.Sub(left))
			story := storyOf(r.record(id))
			if where.name == "in the gate" && strings.Contains(story, " before_headers: ") {
				continue // nothing tells from outside that the proxy has read the head already
			}
			if story != where.story {
				t.Errorf("%s, %s: the ledger says %q, want %q", where.name, how.name, story, where.story)
			}
		}
	}
	if calls := r.calls(); calls != fmt.Sprintf("a=%d b=0", n) {
		t.Errorf("the upstreams were called %s, want each request once", calls)
	}
}

// BenchmarkCallerLeavesOverTLS is the time from a caller's leaving to the end of the
// upstream's connection, with TLS on both sides and both in this process.
func BenchmarkCallerLeavesOverTLS(b *testing.B) {
	for _, fault := range []string{"stall before-headers", "stall after=2"} {
		for _, how := range departures {
			b.Run(fault+", "+how.name, func(b *testing.B) {
				s := newSecured(b, "upstream.test")
				faults, err := sim.ParseScript(fault)
				if err != nil {
					b.Fatal(err)
				}
				var took []time.Duration
				for b.Loop() {
					n := len(took) + 1
					if n > 1000 {
						b.Fatal("the simulator remembers no more than 1000 requests; give a lower -benchtime")
					}
					s.sim.Channel("a").Script(faults...)
					left := s.visit(b, b.Context(), fmt.Sprint("b-", n), n, fault == "stall after=2", how.leave)
					took = append(took, s.sim.Requests("a")[n-1].GoneAt.Sub(left))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			})
		}
	}
}
