package proxy_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// BenchmarkCallerLeaves reports how long after a caller's close the upstream's read
// returns, or the record is closed where no upstream call runs: p50-us and p99-us. The
// upstream has a connection of its own for each request, as the caller has.
//
//	go test -run '^$' -bench CallerLeaves -benchtime 300x ./proxy
func BenchmarkCallerLeaves(b *testing.B) {
	for _, c := range []struct{ name, request, upstream, seen string }{
		{"before_headers", wholeRequest, "", ""},
		{"in_the_gate", streamRequest, streamHead + chunk(roleFrame), ""},
		{"mid_stream", streamRequest, streamHead + chunk(textFrame), textFrame},
		{"in_backoff", wholeRequest, "HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\n{}", ""},
	} {
		for _, how := range []string{"FIN", "RST"} {
			b.Run(c.name+"/"+how, func(b *testing.B) {
				benchmarkLeave(b, c.request, c.upstream, c.seen, how == "RST", c.name == "in_backoff")
			})
		}
	}
}

func benchmarkLeave(b *testing.B, request, upstream, seen string, reset, backoff bool) {
	reached, left := make(chan struct{}, 1), make(chan time.Time, 1)
	p := newProvider(b, func(conn net.Conn, n int) bool {
		ok := hang(upstream)(conn, n)
		if !backoff {
			reached <- struct{}{}
			_, _ = conn.Read(make([]byte, 1))
			left <- time.Now()
			return false
		}
		return ok
	})
	s := setup{providers: []*provider{p}, policy: func(*engine.Question) engine.Decision {
		reached <- struct{}{}
		return engine.Decision{Action: engine.Retry, Gates: passAll, Delay: engine.WaitOf(20 * time.Second)}
	}}
	g := s.start(b)
	var times []float64
	for b.Loop() {
		caller, err := net.Dial("tcp", g.addr)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.WriteString(caller, rawPost("/v1/chat/completions", request)); err != nil {
			b.Fatal(err)
		}
		<-reached
		if seen != "" {
			if err := (&pastReader{c: caller}).past(`"content":"Hel"`); err != nil {
				b.Fatal(err)
			}
		}
		if reset {
			_ = caller.(*net.TCPConn).SetLinger(0)
		}
		begin := time.Now()
		caller.Close()
		if backoff {
			<-g.ledger.closed
			left <- time.Now()
		}
		times = append(times, float64((<-left).Sub(begin).Nanoseconds())/1000)
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "p50-us")
	b.ReportMetric(times[len(times)*99/100], "p99-us")
	b.ReportMetric(0, "ns/op")
}
