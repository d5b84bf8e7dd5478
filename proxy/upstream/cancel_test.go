package upstream

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestCancelBeforeDial(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialled after Cancel")
		return nil, io.EOF
	}})
	a := c.Start(target(t, "http://127.0.0.1:1"), post(), long, time.Time{})
	a.Cancel()
	openError(t, a, engine.NetContextCanceled, engine.OpDial, true)
}

func TestCancelDuringDial(t *testing.T) {
	t.Parallel()
	dialling := make(chan struct{})
	c := newClient(t, Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		close(dialling)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	a := c.Start(target(t, "http://127.0.0.1:1"), post(), long, time.Time{})
	go func() { <-dialling; a.Cancel() }()
	openError(t, a, engine.NetContextCanceled, engine.OpDial, true)
}

func TestCancelWhileTheDialSucceeds(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	var a *Attempt
	c := newClient(t, Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		a.Cancel()
		return near, nil
	}})
	a = c.Start(target(t, "http://127.0.0.1:1"), post(), long, time.Time{})
	openError(t, a, engine.NetContextCanceled, engine.OpDial, true)
	if n, err := far.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the late connection: %d, %v; want it closed unused", n, err)
	}
}

func TestCancelDuringWrite(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	c := newClient(t, Options{Dial: func(context.Context, string, string) (net.Conn, error) { return near, nil }})
	a := c.Start(target(t, "http://127.0.0.1:1"), post("body"), long, time.Time{})
	go func() {
		_, _ = far.Read(make([]byte, 1)) // a pipe's write waits for all its bytes to be read
		a.Cancel()
	}()
	openError(t, a, engine.NetContextCanceled, engine.OpWrite, false)
}

func TestCancelBeforeHeaders(t *testing.T) {
	t.Parallel()
	got, closed := make(chan struct{}), make(chan struct{})
	base := serve(t, func(p *peer) {
		p.request()
		close(got)
		p.gone()
		close(closed)
	})
	a := newClient(t, Options{}).Start(target(t, base), post("x"), long, time.Time{})
	go func() { <-got; a.Cancel() }()
	err := a.Open()
	waitFor(t, closed, "the upstream seeing the close before the owner's Close")
	wantError(t, err, engine.NetContextCanceled, engine.OpReadHeaders, false)
	a.Close()
}

func TestCancelMidBody(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	base := serve(t, func(p *peer) {
		p.request()
		p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
		p.gone()
		close(closed)
	})
	a := open(t, newClient(t, Options{}), base, post("x"))
	buf := make([]byte, 10)
	if n, err := a.Read(buf); n != 1 || err != nil {
		t.Fatalf("Read: %d, %v", n, err)
	}
	read := make(chan error, 1)
	go func() { _, err := a.Read(buf); read <- err }()
	a.Cancel()
	waitFor(t, closed, "the upstream seeing the close")
	wantError(t, <-read, engine.NetContextCanceled, engine.OpReadBody, false)
	a.Close()
}

func TestCancelHidesWhatIsBuffered(t *testing.T) {
	t.Parallel()
	base := serve(t, func(p *peer) {
		p.request()
		p.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
		p.gone()
	})
	a := open(t, newClient(t, Options{}), base, post("x"))
	a.Cancel()
	_, err := a.Read(make([]byte, 10))
	wantError(t, err, engine.NetContextCanceled, engine.OpReadBody, false)
	a.Close()
}

func TestLateCancelSparesTheNextAttempt(t *testing.T) {
	t.Parallel()
	base := serve(t, func(p *peer) {
		for p.request() != "" {
			p.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
		}
	})
	c := newClient(t, Options{})
	first := open(t, c, base, post())
	if _, err := io.ReadAll(first); err != nil {
		t.Fatal(err)
	}
	first.Close()
	second := open(t, c, base, post())
	defer second.Close()
	first.Cancel()
	if body, err := io.ReadAll(second); !second.Reused() || string(body) != "a" || err != nil {
		t.Errorf("second attempt: reused %v, %q, %v", second.Reused(), body, err)
	}
}

// Cancel comes at any moment of a whole call; the race detector and the leak check judge.
func TestCancelAnyTime(t *testing.T) {
	t.Parallel()
	base := serve(t, func(p *peer) {
		for p.request() != "" {
			p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n")
		}
	})
	c := newClient(t, Options{})
	for i := range 300 {
		a := c.Start(target(t, base), post("x"), long, time.Time{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(time.Duration(i) * time.Microsecond) // spreads the moments, waits for nothing
			a.Cancel()
		}()
		if err := a.Open(); err == nil {
			body, err := io.ReadAll(a)
			if err == nil && string(body) != "a" {
				t.Errorf("body %q without an error", body)
			}
		} else if err.Kind != engine.NetContextCanceled {
			t.Errorf("Open: %v", err)
		}
		a.Close()
		<-done
	}
}
