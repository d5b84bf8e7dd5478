package upstream

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

func call(t *testing.T, c *Client, base string, body string) *Attempt {
	t.Helper()
	a := open(t, c, base, post(body))
	if _, err := io.ReadAll(a); err != nil {
		t.Fatalf("Read: %v", err)
	}
	a.Close()
	return a
}

const okOne = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"

func TestClosedIdleConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	f := func(name string, end func(p *peer)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			idle, ended := make(chan struct{}), make(chan struct{})
			base := serve(t, func(p *peer) {
				p.request()
				requests.Add(1)
				p.send(okOne)
				if p.n == 1 {
					<-idle
					end(p)
					close(ended)
				}
				p.gone()
			})
			c := newClient(t, Options{})
			call(t, c, base, "one")
			close(idle)
			waitFor(t, ended, "the end of the idle connection")
			if a := call(t, c, base, "two"); a.Reused() || requests.Load() != 2 {
				t.Errorf("reused %v, %d requests came; want a fresh connection and 2", a.Reused(), requests.Load())
			}
		})
	}
	f("FIN", func(p *peer) { _ = p.Close() })
	f("RST", func(p *peer) { p.reset() })
	f("unasked bytes", func(p *peer) { p.send("HTTP/1.1 408 Request Timeout\r\n\r\n") })
}

// failing is a connection without a descriptor to look at, whose write fails on demand.
type failing struct {
	net.Conn
	accept int // bytes that the failing write still takes
	fail   *atomic.Bool
}

func (f failing) Write(p []byte) (int, error) {
	if f.fail.CompareAndSwap(true, false) {
		n, _ := f.Conn.Write(p[:f.accept])
		return n, &net.OpError{Op: "write", Err: syscall.EPIPE}
	}
	return f.Conn.Write(p)
}

func TestRedoOnlyIfNoByteWasAccepted(t *testing.T) {
	t.Parallel()
	for _, accept := range []int{0, 1} {
		var dials, requests atomic.Int32
		var fail atomic.Bool
		base := serve(t, func(p *peer) {
			for p.request() != "" {
				requests.Add(1)
				p.send(okOne)
			}
		})
		c := newClient(t, Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return failing{conn, accept, &fail}, err
		}, MaxIdle: 1})
		call(t, c, base, "one")
		fail.Store(true)
		if accept == 0 {
			if a := call(t, c, base, "two"); a.Reused() || dials.Load() != 2 || requests.Load() != 2 {
				t.Errorf("reused %v, %d dials, %d requests; want one redo on a fresh connection", a.Reused(), dials.Load(), requests.Load())
			}
			continue
		}
		a := c.Start(target(t, base), post("two"), long, time.Time{})
		openError(t, a, engine.NetConnReset, engine.OpWrite, false)
		if dials.Load() != 1 {
			t.Errorf("%d dials; a request that may have arrived was redone", dials.Load())
		}
	}
}

func TestNoRedoOfAFreshConnection(t *testing.T) {
	t.Parallel()
	var dials atomic.Int32
	c := newClient(t, Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		near, far := net.Pipe()
		_ = far.Close()
		return near, nil
	}})
	a := c.Start(target(t, "http://127.0.0.1:1"), post("x"), long, time.Time{})
	openError(t, a, engine.NetConnReset, engine.OpWrite, true)
	if dials.Load() != 1 {
		t.Errorf("%d dials, want 1", dials.Load())
	}
}

func TestNoRedoOnceTheRequestIsSent(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	base := serve(t, func(p *peer) {
		for p.request() != "" {
			if requests.Add(1) == 2 {
				return
			}
			p.send(okOne)
		}
	})
	c := newClient(t, Options{})
	call(t, c, base, "one")
	a := c.Start(target(t, base), post("two"), long, time.Time{})
	openError(t, a, engine.NetEOF, engine.OpReadHeaders, false)
	if !a.Reused() || requests.Load() != 2 {
		t.Errorf("reused %v, %d requests; want one on the old connection and no redo", a.Reused(), requests.Load())
	}
}

func TestPoolBounds(t *testing.T) {
	t.Parallel()
	var open atomic.Int32
	base := serve(t, func(p *peer) {
		open.Add(1)
		defer open.Add(-1)
		for p.request() != "" {
			p.send(okOne)
		}
	})
	three := func(c *Client) {
		var as []*Attempt
		for range 3 {
			a := c.Start(target(t, base), post(), long, time.Time{})
			if err := a.Open(); err != nil {
				t.Fatal(err)
			}
			as = append(as, a)
		}
		for _, a := range as {
			_, _ = io.ReadAll(a)
			a.Close()
		}
	}
	settle := func(want int32) {
		t.Helper()
		for start := time.Now(); open.Load() != want; time.Sleep(time.Millisecond) {
			if time.Since(start) > patience {
				t.Fatalf("%d connections are open, want %d", open.Load(), want)
			}
		}
	}
	c := New(Options{MaxIdle: 2})
	three(c)
	settle(2)
	c.Close()
	settle(0)
	c.Close()

	old := New(Options{MaxIdle: 3, IdleFor: 30 * time.Millisecond})
	three(old)
	settle(0) // without another call
	old.Close()
	three(old) // a closed client still calls, but keeps nothing
	settle(0)
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, addr, host, base, err string }{
		{"https://api.example.com/v1/", "api.example.com:443", "api.example.com", "/v1", ""},
		{"http://h:8080", "h:8080", "h:8080", "", ""},
		{"http://[::1]/a%2Fb", "[::1]:80", "[::1]", "/a%2Fb", ""},
		{"ftp://h", "", "", "", `cannot use base URL with scheme "ftp": write http:// or https://`},
		{"http:///x", "", "", "", "cannot use base URL without a host: write one such as https://api.example.com/v1"},
		{"http://u:hush@h", "", "", "", `cannot use base URL for host "h" with a user name in it: put the credential in a key block`},
		{"http://h/?key=hush", "", "", "", `cannot use base URL for host "h" with a query or fragment: end it after the path`},
		{"http://h:x/", "", "", "", "cannot read base URL: it is no URL; write one such as https://api.example.com/v1"},
		{"http://bücher.example/", "", "", "", `cannot use base URL for host "bücher.example": percent-encode the path and write the host in ASCII`},
	} {
		got, err := ParseTarget(tc.in)
		if tc.err != "" {
			if err == nil || err.Error() != tc.err {
				t.Errorf("ParseTarget(%q): error %v, want %s", tc.in, err, tc.err)
			}
			continue
		}
		if err != nil || got.Addr() != tc.addr || got.host != tc.host || got.base != tc.base {
			t.Errorf("ParseTarget(%q): %+v, %v", tc.in, got, err)
		}
	}
}
