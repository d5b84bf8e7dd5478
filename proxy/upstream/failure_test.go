package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestDialFailures(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + l.Addr().String()
	_ = l.Close()
	failing := func(err error) Options {
		return Options{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, err }}
	}
	waiting := Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	short := engine.Limits{Connect: time.Millisecond}
	for _, tc := range []struct {
		name     string
		options  Options
		limits   engine.Limits
		deadline time.Duration
		want     engine.NetKind
	}{
		{"refused", Options{}, long, 0, engine.NetConnRefused},
		{"no such host", failing(&net.DNSError{IsNotFound: true}), long, 0, engine.NetDNSNotFound},
		{"resolver trouble", failing(&net.DNSError{IsTemporary: true}), long, 0, engine.NetDNSTemporary},
		{"resolver too slow", failing(&net.DNSError{IsTimeout: true}), long, 0, engine.NetDNSTemporary},
		{"no route", failing(&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}), long, 0, engine.NetUnreachable},
		{"gave up by the system", failing(&net.OpError{Op: "dial", Err: syscall.ETIMEDOUT}), long, 0, engine.NetDialTimeout},
		{"connect limit", waiting, short, 0, engine.NetDialTimeout},
		{"deadline before the connect limit", waiting, long, time.Millisecond, engine.NetDeadlineExceeded},
		{"deadline has passed", waiting, long, -time.Second, engine.NetDeadlineExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			deadline := time.Time{}
			if tc.deadline != 0 {
				deadline = time.Now().Add(tc.deadline)
			}
			a := newClient(t, tc.options).Start(target(t, refused), post("x"), tc.limits, deadline)
			openError(t, a, tc.want, engine.OpDial, true)
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(nil)
	s.Config.ErrorLog = nil
	s.StartTLS()
	cert := s.TLS.Certificates[0]
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	s.Close()

	secured := func(script func(p *peer)) func(p *peer) {
		return func(p *peer) {
			c := tls.Server(p.Conn, &tls.Config{Certificates: []tls.Certificate{cert}})
			p.Conn = c
			p.in.Reset(c)
			script(p)
		}
	}
	https := func(base string) string { return "https" + strings.TrimPrefix(base, "http") }

	t.Run("answers over one connection", func(t *testing.T) {
		t.Parallel()
		body := strings.Repeat("x", 100_000)
		base := https(serve(t, secured(func(p *peer) {
			for {
				r := p.request()
				if r == "" {
					return
				}
				p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + r[len(r)-5:] + "\r\n0\r\n\r\n")
			}
		})))
		c := newClient(t, Options{RootCAs: roots})
		for round, end := range []string{"small", "large", "again"} {
			r := post("a", end)
			if end == "large" {
				r = post("a", body, end)
			}
			a := open(t, c, base, r)
			if got, err := io.ReadAll(a); string(got) != end || err != nil || a.Reused() != (round > 0) {
				t.Errorf("got %q, %v, reused %v; want %q", got, err, a.Reused(), end)
			}
			a.Close()
		}
	})
	t.Run("certificate of nobody we know", func(t *testing.T) {
		t.Parallel()
		base := https(serve(t, secured(func(p *peer) { p.gone() })))
		a := newClient(t, Options{}).Start(target(t, base), post(), long, time.Time{})
		openError(t, a, engine.NetTLSVerify, engine.OpTLS, true)
	})
	t.Run("not TLS", func(t *testing.T) {
		t.Parallel()
		base := https(serve(t, func(p *peer) { p.send("HTTP/1.1 400 Bad Request\r\n\r\n"); p.gone() }))
		a := newClient(t, Options{RootCAs: roots}).Start(target(t, base), post(), long, time.Time{})
		openError(t, a, engine.NetTLSNotTLS, engine.OpTLS, true)
	})
	t.Run("closed during the handshake", func(t *testing.T) {
		t.Parallel()
		base := https(serve(t, func(p *peer) { _, _ = p.in.Peek(1); _, _ = p.in.Discard(p.in.Buffered()) }))
		a := newClient(t, Options{RootCAs: roots}).Start(target(t, base), post(), long, time.Time{})
		openError(t, a, engine.NetEOF, engine.OpTLS, true)
	})
	t.Run("cancelled during the handshake", func(t *testing.T) {
		t.Parallel()
		hello := make(chan struct{})
		base := https(serve(t, func(p *peer) { _, _ = p.in.Peek(1); close(hello); p.gone() }))
		a := newClient(t, Options{RootCAs: roots}).Start(target(t, base), post(), long, time.Time{})
		go func() { <-hello; a.Cancel() }()
		openError(t, a, engine.NetContextCanceled, engine.OpTLS, true)
	})
	t.Run("bound, then on", func(t *testing.T) {
		t.Parallel()
		step := make(chan struct{})
		base := https(serve(t, secured(func(p *peer) {
			p.request()
			p.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
			<-step
			p.send("ab")
			p.gone()
		})))
		boundThenOn(t, newClient(t, Options{RootCAs: roots}), base, step)
	})
}

func TestHeadFailures(t *testing.T) {
	t.Parallel()
	f := func(name, answer string, kind engine.NetKind) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := serve(t, func(p *peer) {
				p.request()
				p.send(answer)
				if kind == engine.NetMalformedResponse {
					p.gone()
				}
			})
			a := newClient(t, Options{}).Start(target(t, base), post("x"), long, time.Time{})
			openError(t, a, kind, engine.OpReadHeaders, false)
		})
	}
	ok := "HTTP/1.1 200 OK\r\n"
	f("closed without a byte", "", engine.NetEOF)
	f("cut in the status line", "HTTP/1.", engine.NetUnexpectedEOF)
	f("cut in a header", ok+"Content-Le", engine.NetUnexpectedEOF)
	f("cut after an interim head", "HTTP/1.1 100 Continue\r\n\r\n", engine.NetUnexpectedEOF)
	f("another protocol", "SSH-2.0-OpenSSH\r\n", engine.NetMalformedResponse)
	f("HTTP/2 frame", "\x00\x00\x12\x04\x00\x00\x00\x00\x00", engine.NetMalformedResponse)
	f("version 2.0", "HTTP/2.0 200 OK\r\n\r\n", engine.NetMalformedResponse)
	f("version 1.2", "HTTP/1.2 200 OK\r\n\r\n", engine.NetMalformedResponse)
	f("two-digit status", "HTTP/1.1 20 OK\r\n\r\n", engine.NetMalformedResponse)
	f("four-digit status", "HTTP/1.1 2000 OK\r\n\r\n", engine.NetMalformedResponse)
	f("status below 100", "HTTP/1.1 099 OK\r\n\r\n", engine.NetMalformedResponse)
	f("switched protocol", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", engine.NetMalformedResponse)
	f("endless interim heads", strings.Repeat("HTTP/1.1 103 Early\r\n\r\n", 9)+ok+"\r\n", engine.NetMalformedResponse)
	f("bare LF", "HTTP/1.1 200 OK\n\n", engine.NetMalformedResponse)
	f("bare CR", ok+"A: b\rc\r\n\r\n", engine.NetMalformedResponse)
	f("NUL", ok+"A: b\x00c\r\n\r\n", engine.NetMalformedResponse)
	f("folded line", ok+"A: b\r\n c\r\n\r\n", engine.NetMalformedResponse)
	f("space before the colon", ok+"A : b\r\n\r\n", engine.NetMalformedResponse)
	f("no name", ok+": b\r\n\r\n", engine.NetMalformedResponse)
	f("no colon", ok+"A\r\n\r\n", engine.NetMalformedResponse)
	f("oversized head", ok+"A: "+strings.Repeat("x", maxHead)+"\r\n\r\n", engine.NetMalformedResponse)
	f("too many fields", ok+strings.Repeat("A: b\r\n", maxFields+1)+"\r\n", engine.NetMalformedResponse)
	f("length and chunked", ok+"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", engine.NetMalformedResponse)
	f("two lengths", ok+"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", engine.NetMalformedResponse)
	f("two equal lengths", ok+"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", engine.NetMalformedResponse)
	f("list of lengths", ok+"Content-Length: 1, 1\r\n\r\n", engine.NetMalformedResponse)
	f("signed length", ok+"Content-Length: +1\r\n\r\n", engine.NetMalformedResponse)
	f("negative length", ok+"Content-Length: -1\r\n\r\n", engine.NetMalformedResponse)
	f("empty length", ok+"Content-Length:\r\n\r\n", engine.NetMalformedResponse)
	f("overflowing length", ok+"Content-Length: 99999999999999999999\r\n\r\n", engine.NetMalformedResponse)
	f("gzip, chunked", ok+"Transfer-Encoding: gzip, chunked\r\n\r\n", engine.NetMalformedResponse)
	f("identity", ok+"Transfer-Encoding: identity\r\n\r\n", engine.NetMalformedResponse)
	f("chunked twice", ok+"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", engine.NetMalformedResponse)
	f("chunked on 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", engine.NetMalformedResponse)
}

func TestBodyFailures(t *testing.T) {
	t.Parallel()
	f := func(name, body string, kind engine.NetKind, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := make(chan struct{})
			base := serve(t, func(p *peer) {
				p.request()
				p.send("HTTP/1.1 200 OK\r\n" + body)
				switch kind {
				case engine.NetMalformedResponse:
					p.gone()
				case engine.NetConnReset:
					<-read
					p.reset()
				}
			})
			a := open(t, newClient(t, Options{}), base, post())
			defer a.Close()
			got := make([]byte, len(want))
			_, err := io.ReadFull(a, got)
			close(read)
			if err != nil || string(got) != want {
				t.Errorf("body %q, %v; want %q", got, err, want)
			}
			_, err = a.Read(make([]byte, 10))
			wantError(t, err, kind, engine.OpReadBody, false)
			if _, again := a.Read(make([]byte, 10)); !errors.Is(again, err) {
				t.Errorf("second Read: %v, want the same error", again)
			}
		})
	}
	chunked := "Transfer-Encoding: chunked\r\n\r\n"
	f("cut in a length", "Content-Length: 5\r\n\r\nabc", engine.NetUnexpectedEOF, "abc")
	f("cut in a chunk", chunked+"5\r\nabc", engine.NetUnexpectedEOF, "abc")
	f("cut at a chunk boundary", chunked+"3\r\nabc\r\n", engine.NetUnexpectedEOF, "abc")
	f("cut in a size line", chunked+"3\r\nabc\r\n5", engine.NetUnexpectedEOF, "abc")
	f("cut after the last chunk", chunked+"3\r\nabc\r\n0\r\n", engine.NetUnexpectedEOF, "abc")
	f("reset in a length", "Content-Length: 5\r\n\r\nabc", engine.NetConnReset, "abc")
	f("reset at a chunk boundary", chunked+"3\r\nabc\r\n", engine.NetConnReset, "abc")
	f("reset until close", "\r\nabc", engine.NetConnReset, "abc")
	f("empty chunk size", chunked+"\r\n", engine.NetMalformedResponse, "")
	f("chunk size in words", chunked+"3\r\nabc\r\nxyz\r\n", engine.NetMalformedResponse, "abc")
	f("negative chunk size", chunked+"-3\r\n", engine.NetMalformedResponse, "")
	f("prefixed chunk size", chunked+"0x3\r\n", engine.NetMalformedResponse, "")
	f("overflowing chunk size", chunked+"ffffffffffffffff\r\n", engine.NetMalformedResponse, "")
	f("bare LF after a size", chunked+"3\nabc\r\n", engine.NetMalformedResponse, "")
	f("chunk longer than its size", chunked+"3\r\nabcd\r\n", engine.NetMalformedResponse, "abc")
	f("endless extension", chunked+"3;"+strings.Repeat("x", bufferSize), engine.NetMalformedResponse, "")
	f("control character in a trailer", chunked+"0\r\nA: \x00\r\n\r\n", engine.NetMalformedResponse, "")
	f("endless trailers", chunked+"0\r\n"+strings.Repeat("A: b\r\n", 100), engine.NetMalformedResponse, "")
}

func TestIdleLimit(t *testing.T) {
	t.Parallel()
	base := serve(t, func(p *peer) {
		p.request()
		p.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
		p.gone()
	})
	limits := long
	limits.Idle = 20 * time.Millisecond
	a := newClient(t, Options{}).Start(target(t, base), post(), limits, time.Now().Add(time.Minute))
	defer a.Close()
	if err := a.Open(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	if n, err := a.Read(buf); n != 1 || err != nil {
		t.Fatalf("Read: %d, %v", n, err)
	}
	_, err := a.Read(buf)
	wantError(t, err, engine.NetIdleTimeout, engine.OpReadBody, false)
}

func boundThenOn(t *testing.T, c *Client, base string, step chan struct{}) {
	t.Helper()
	a := open(t, c, base, post())
	defer a.Close()
	buf := make([]byte, 10)
	for range 2 {
		a.Bound(time.Now().Add(time.Millisecond))
		_, err := a.Read(buf)
		wantError(t, err, engine.NetDeadlineExceeded, engine.OpReadBody, false)
	}
	a.Bound(time.Time{})
	close(step)
	if got, err := io.ReadAll(a); string(got) != "ab" || err != nil {
		t.Errorf("after the bound: %q, %v", got, err)
	}
}

func TestBoundThenOn(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"Content-Length: 2\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"} {
		step := make(chan struct{})
		base := serve(t, func(p *peer) {
			p.request()
			p.send("HTTP/1.1 200 OK\r\n" + head)
			<-step
			if strings.HasPrefix(head, "T") {
				p.send("2\r\nab\r\n0\r\n\r\n")
			} else {
				p.send("ab")
			}
			p.gone()
		})
		boundThenOn(t, newClient(t, Options{}), base, step)
	}
}

func TestErrorsHoldNoContent(t *testing.T) {
	t.Parallel()
	var secret atomic.Int32
	base := serve(t, func(p *peer) {
		p.request()
		secret.Add(1)
		p.send("HTTP/1.1 200 OK\r\nSet-Cookie: hush\x00\r\n\r\n")
		p.gone()
	})
	r := post("hush")
	r.Path = "/x?key=hush"
	r.Header = []engine.Header{{Name: "Authorization", Value: "hush"}}
	a := newClient(t, Options{}).Start(target(t, base), r, long, time.Time{})
	defer a.Close()
	if err := a.Open(); err == nil || strings.Contains(err.Error(), "hush") || secret.Load() != 1 {
		t.Errorf("error %v", err)
	}
	r.Header[0].Value = "hush\n"
	b := newClient(t, Options{}).Start(target(t, base), r, long, time.Time{})
	defer b.Close()
	if err := b.Open(); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("error %v", err)
	}
}
