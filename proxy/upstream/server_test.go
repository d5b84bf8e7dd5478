package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The client that the benchmark compares with has no way to end these.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}

// patience bounds what must happen in a test; nothing waits for it to pass.
const patience = 10 * time.Second

// peer is the upstream's end of one connection.
type peer struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
	n  int // which connection of the server, from 1
}

// request reads one request with its Content-Length body and returns all its bytes.
func (p *peer) request() string {
	var all strings.Builder
	length := 0
	for {
		line, err := p.in.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			return all.String()
		}
		if v, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			for _, c := range strings.TrimSpace(v) {
				length = length*10 + int(c-'0')
			}
		}
		if line == "\r\n" {
			break
		}
	}
	body := make([]byte, length)
	n, _ := io.ReadFull(p.in, body)
	all.Write(body[:n])
	return all.String()
}

func (p *peer) send(s string) { _, _ = io.WriteString(p.Conn, s) }

// gone waits until the other side has closed the connection.
func (p *peer) gone() {
	_ = p.SetReadDeadline(time.Now().Add(patience))
	_, err := io.Copy(io.Discard, p.in)
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		p.t.Error("the upstream still waits: the connection was not closed")
	}
}

// reset closes the connection with an RST.
func (p *peer) reset() {
	_ = p.Conn.(*net.TCPConn).SetLinger(0)
	_ = p.Close()
}

// serve runs a scripted upstream; each connection gets one run of the script and is then
// closed. It returns the base URL.
func serve(t *testing.T, script func(p *peer)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var scripts sync.WaitGroup
	scripts.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			scripts.Go(func() {
				defer func() { _ = c.Close() }()
				script(&peer{Conn: c, t: t, in: bufio.NewReader(c), n: n})
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		scripts.Wait()
	})
	return "http://" + l.Addr().String()
}

// long are limits that no test reaches.
var long = engine.Limits{Connect: time.Minute, Headers: time.Minute, Idle: time.Minute}

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.MaxIdle == 0 {
		o.MaxIdle, o.IdleFor = 4, time.Minute
	}
	c := New(o)
	t.Cleanup(c.Close)
	return c
}

func target(t *testing.T, base string) *Target {
	t.Helper()
	tg, err := ParseTarget(base)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func post(body ...string) *Request {
	r := &Request{Method: "POST", Path: "/x"}
	for _, b := range body {
		r.Body = append(r.Body, []byte(b))
	}
	return r
}

// open starts and opens an attempt that must get a head.
func open(t *testing.T, c *Client, base string, r *Request) *Attempt {
	t.Helper()
	a := c.Start(target(t, base), r, long, time.Time{})
	if err := a.Open(); err != nil {
		t.Fatalf("Open: %v", err)
	}
	return a
}

// wantError compares an error's words.
func wantError(t *testing.T, err error, kind engine.NetKind, op engine.NetOp, notStarted bool) {
	t.Helper()
	e := (*Error)(nil)
	if !errors.As(err, &e) || e == nil {
		t.Fatalf("got error %v, want %v in %v", err, kind, op)
	}
	if e.Kind != kind || e.Op != op || e.NotStarted != notStarted {
		t.Errorf("got %v in %v, not started %v (%v); want %v in %v, not started %v", e.Kind, e.Op, e.NotStarted, e, kind, op, notStarted)
	}
}

// openError starts and opens an attempt that must fail.
func openError(t *testing.T, a *Attempt, kind engine.NetKind, op engine.NetOp, notStarted bool) {
	t.Helper()
	defer a.Close()
	err := a.Open()
	if err == nil {
		t.Fatalf("Open succeeded, want %v in %v", kind, op)
	}
	wantError(t, err, kind, op, notStarted)
	if _, again := a.Read(make([]byte, 1)); !errors.Is(again, err) {
		t.Errorf("Read after a failed Open: %v, want the same error", again)
	}
}

// waitFor waits for a channel that another goroutine closes.
func waitFor(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
	}
}
