package upstream

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// inTime runs a script as the upstream of one connection, in virtual time.
func inTime(t *testing.T, limits engine.Limits, deadline time.Duration, script func(p *peer), call func(a *Attempt)) {
	t.Helper()
	inTimeAt(t, "http://upstream.invalid", limits, deadline, script, call)
}

func inTimeAt(t *testing.T, base string, limits engine.Limits, deadline time.Duration, script func(p *peer), call func(a *Attempt)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		c := New(Options{MaxIdle: 1, IdleFor: time.Minute, Dial: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer close(done)
				script(&peer{Conn: far, t: t, in: bufio.NewReader(far), n: 1})
				_ = far.Close()
			}()
			return near, nil
		}})
		a := c.Start(target(t, base), post("x"), limits, time.Now().Add(deadline))
		call(a)
		a.Close()
		c.Close()
		<-done
	})
}

// drain is gone without its deadline, which would be virtual time, too.
func (p *peer) drain() { _, _ = io.Copy(io.Discard, p.in) }

func TestIdleCountsFromTheLastBytes(t *testing.T) {
	limits := engine.Limits{Headers: time.Hour, Idle: 10 * time.Second}
	inTime(t, limits, 24*time.Hour, func(p *peer) {
		p.request()
		time.Sleep(time.Minute) // no matter of the idle limit
		p.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
		for range 20 {
			time.Sleep(9 * time.Second)
			p.send("a")
		}
		p.drain()
	}, func(a *Attempt) {
		if err := a.Open(); err != nil {
			t.Fatal(err)
		}
		a.Bound(time.Time{})
		buf := make([]byte, 10)
		for range 20 {
			if n, err := a.Read(buf); n != 1 || err != nil {
				t.Fatalf("Read: %d, %v", n, err)
			}
		}
		start := time.Now()
		_, err := a.Read(buf)
		wantError(t, err, engine.NetIdleTimeout, engine.OpReadBody, false)
		if waited := time.Since(start); waited != limits.Idle {
			t.Errorf("the idle limit came after %v, want %v", waited, limits.Idle)
		}
	})
}

func TestHeaderLimitIsNotProlongedByInterimHeads(t *testing.T) {
	inTime(t, engine.Limits{Headers: 10 * time.Second}, time.Hour, func(p *peer) {
		p.request()
		for range 3 {
			time.Sleep(4 * time.Second)
			p.send("HTTP/1.1 103 Early Hints\r\n\r\n")
		}
		p.drain()
	}, func(a *Attempt) {
		start := time.Now()
		openError(t, a, engine.NetHeaderTimeout, engine.OpReadHeaders, false)
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("the limit came after %v", waited)
		}
	})
}

func TestPhaseLimits(t *testing.T) {
	f := func(name, base string, limits engine.Limits, deadline, after time.Duration, kind engine.NetKind, op engine.NetOp) {
		t.Run(name, func(t *testing.T) {
			inTimeAt(t, base, limits, deadline, func(p *peer) {
				if strings.HasPrefix(base, "http:") {
					p.request()
					p.send("HTTP/1.1 200 O")
				}
				p.drain()
			}, func(a *Attempt) {
				start := time.Now()
				openError(t, a, kind, op, op == engine.OpTLS)
				if waited := time.Since(start); waited != after {
					t.Errorf("the limit came after %v, want %v", waited, after)
				}
			})
		})
	}
	limits := engine.Limits{Connect: time.Second, Headers: time.Minute}
	f("handshake", "https://upstream.invalid", limits, time.Hour, time.Second, engine.NetTLSTimeout, engine.OpTLS)
	own := engine.Limits{Connect: time.Hour, TLS: 2 * time.Second, Headers: time.Hour}
	f("handshake with a limit of its own", "https://upstream.invalid", own, time.Hour, 2*time.Second, engine.NetTLSTimeout, engine.OpTLS)
	f("deadline in the handshake", "https://upstream.invalid", limits, time.Millisecond, time.Millisecond, engine.NetDeadlineExceeded, engine.OpTLS)
	f("headers", "http://upstream.invalid", limits, time.Hour, time.Minute, engine.NetHeaderTimeout, engine.OpReadHeaders)
	f("deadline before headers", "http://upstream.invalid", limits, time.Second, time.Second, engine.NetDeadlineExceeded, engine.OpReadHeaders)
	f("deadline alone", "http://upstream.invalid", engine.Limits{}, time.Second, time.Second, engine.NetDeadlineExceeded, engine.OpReadHeaders)
}

func TestDeadlineIsTheFirstBound(t *testing.T) {
	inTime(t, engine.Limits{Headers: time.Hour, Idle: time.Hour}, 10*time.Second, func(p *peer) {
		p.request()
		p.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
		p.drain()
	}, func(a *Attempt) {
		if err := a.Open(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := a.Read(make([]byte, 1))
		wantError(t, err, engine.NetDeadlineExceeded, engine.OpReadBody, false)
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("the bound came after %v", waited)
		}
	})
}

func TestStreamOutlivesTheDeadlineOnceUnbound(t *testing.T) {
	inTime(t, engine.Limits{Headers: time.Hour, Idle: time.Minute}, 10*time.Second, func(p *peer) {
		p.request()
		p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range 10 {
			time.Sleep(9 * time.Second)
			p.send("1\r\na\r\n")
		}
		p.send("0\r\n\r\n")
	}, func(a *Attempt) {
		if err := a.Open(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		if _, err := a.Read(buf); err != nil {
			t.Fatal(err)
		}
		_, err := a.Read(buf)
		wantError(t, err, engine.NetDeadlineExceeded, engine.OpReadBody, false)
		a.Bound(time.Time{})
		if rest, err := io.ReadAll(a); string(rest) != "aaaaaaaaa" || err != nil {
			t.Errorf("after the bound: %q, %v", rest, err)
		}
	})
}

func TestUpstreamThatReadsNoFurther(t *testing.T) {
	f := func(name string, limits engine.Limits, answer string, check func(t *testing.T, a *Attempt)) {
		t.Run(name, func(t *testing.T) {
			inTime(t, limits, time.Hour, func(p *peer) {
				_, _ = p.Read(make([]byte, 1))
				p.send(answer)
				time.Sleep(2 * time.Hour)
			}, func(a *Attempt) { check(t, a) })
		})
	}
	f("and says nothing", engine.Limits{Headers: time.Minute}, "", func(t *testing.T, a *Attempt) {
		openError(t, a, engine.NetHeaderTimeout, engine.OpWrite, false)
	})
	f("and answers", engine.Limits{Headers: time.Minute}, "HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n", func(t *testing.T, a *Attempt) {
		if err := a.Open(); err != nil || a.Status() != 413 {
			t.Errorf("status %d, error %v", a.Status(), err)
		}
	})
}

func TestSilentStreamHoldsOneSmallBuffer(t *testing.T) {
	t.Parallel()
	base := serve(t, func(p *peer) {
		p.request()
		p.send("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 20_000) + "\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
		p.gone()
	})
	a := open(t, newClient(t, Options{}), base, post())
	defer a.Close()
	buf := make([]byte, 10)
	if _, err := a.Read(buf); err != nil {
		t.Fatal(err)
	}
	a.Bound(time.Now().Add(time.Millisecond))
	_, err := a.Read(buf)
	wantError(t, err, engine.NetDeadlineExceeded, engine.OpReadBody, false)
	if got := len(a.conn.buf); got != bufferSize {
		t.Errorf("the buffer has %d bytes, want %d", got, bufferSize)
	}
}
