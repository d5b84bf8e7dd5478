package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
	"github.com/fourgate-dev/fourgate/proxy/watch"
)

// bubble is the real proxy in virtual time: its callers and its upstreams are
// connections in memory. A limit of minutes passes at once when nothing else can happen.
type bubble struct {
	t      testing.TB
	server *proxy.Server
	client *upstream.Client
	ledger *ledger
	logs   *lockedBuffer
	ln     *memListener
	room   int // of each connection's buffers, in each direction
	// callers are the callers' own ends.
	callers []*memConn

	mu     sync.Mutex
	script func(channel string, c *memConn) // serves each new upstream connection
	opened []*memConn                       // the upstreams' ends
}

// inMemory makes a gateway of s over the channels ch1 and ch2, which keeps up to idle
// connections to each for another request. It doesn't serve yet.
func (s setup) inMemory(t testing.TB, idle int) *bubble {
	t.Helper()
	s.providers = []*provider{{url: "http://ch1.example"}, {url: "http://ch2.example"}}
	b := &bubble{t: t, ledger: &ledger{}, logs: &lockedBuffer{}, room: 64 << 10}
	b.client = upstream.New(upstream.Options{MaxIdle: idle, Dial: b.dial})
	var err error
	b.server, err = proxy.New(s.settings, s.parts(t), proxy.Around{
		Standing: engine.NewStanding(), Ledger: b.ledger, Client: b.client, Rand: chance{},
		Logger: slog.New(slog.NewTextHandler(b.logs, nil)), Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// start serves until the function that it returns is called.
func (b *bubble) start() (stop func()) {
	b.ledger.closed = make(chan string, 50)
	b.ln = &memListener{accept: make(chan net.Conn), closed: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := b.server.Serve(b.ln); err != nil {
			b.t.Error(err)
		}
	})
	return func() {
		for _, c := range append(b.callers, b.opened...) {
			c.Close()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = b.server.Shutdown(ctx)
		_ = b.ln.Close() // if it came before the server had begun
		serving.Wait()
		b.client.Close()
	}
}

// inBubble runs f with a gateway in virtual time.
func (s setup) inBubble(t *testing.T, idle int, f func(b *bubble)) {
	t.Helper()
	startFasthttp()
	// The server is made outside: its watch over sockets, which is idle here, waits in
	// the system, and that would keep the bubble's time from passing.
	b := s.inMemory(t, idle)
	synctest.Test(t, func(t *testing.T) {
		b.t = t
		stop := b.start()
		defer func() {
			stop()
			// fasthttp's cleaners see at their next turn that they are to end.
			time.Sleep(time.Minute)
		}()
		f(b)
	})
}

// startFasthttp lets fasthttp start its clock, a goroutine that never ends, outside of
// all bubbles.
var startFasthttp = sync.OnceFunc(func() {
	caller, own := memPair(4 << 10)
	go func() { _ = fasthttp.ServeConn(own, func(*fasthttp.RequestCtx) {}) }()
	_, _ = io.WriteString(caller, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	_, _ = io.Copy(io.Discard, caller)
})

// dial makes a connection to a channel, whose script runs on the other end.
func (b *bubble) dial(_ context.Context, _, addr string) (net.Conn, error) {
	channel, _, _ := strings.Cut(addr, ".")
	own, theirs := memPair(b.room)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = append(b.opened, theirs)
	script := b.script
	go script(channel, theirs)
	return own, nil
}

// upstreams takes the list of the connections that were opened since the last call.
func (b *bubble) upstreams() []*memConn {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.opened
	b.opened = nil
	return list
}

func (b *bubble) serve(script func(channel string, c *memConn)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.script = script
}

// call opens a caller's connection.
func (b *bubble) call() *memConn {
	b.t.Helper()
	own, theirs := memPair(b.room)
	b.callers = append(b.callers, own)
	select {
	case b.ln.accept <- watch.Pipe(theirs):
	case <-b.ln.closed:
		b.t.Fatal("the gateway accepts no callers any more")
	}
	return own
}

// ask sends a request over c and reads the whole response.
func (b *bubble) ask(c *memConn, br *bufio.Reader, request string) response {
	b.t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		b.t.Fatal(err)
	}
	return b.answer(br)
}

func (b *bubble) answer(br *bufio.Reader) response {
	b.t.Helper()
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		b.t.Fatalf("no response: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(body), err}
}

// drained waits until no goroutine can go on, and says which of the upstreams'
// connections are still open on the proxy's side.
func (b *bubble) drained() int {
	synctest.Wait()
	open := 0
	for _, c := range b.upstreams() {
		if !c.left() {
			open++
		}
		c.Close()
	}
	return open
}

// readRequest reads one request with a Content-Length.
func readRequest(c net.Conn) bool {
	var got []byte
	var buf [4 << 10]byte
	for {
		n, err := c.Read(buf[:])
		if err != nil {
			return false
		}
		got = append(got, buf[:n]...)
		head := bytes.Index(got, []byte("\r\n\r\n"))
		if head < 0 {
			continue
		}
		length := 0
		for line := range strings.SplitSeq(string(got[:head]), "\r\n") {
			if name, value, _ := strings.Cut(line, ": "); strings.EqualFold(name, "Content-Length") {
				for _, d := range value {
					length = length*10 + int(d-'0')
				}
			}
		}
		if len(got) >= head+4+length {
			return true
		}
	}
}

// memListener hands out connections that a test made.
type memListener struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, io.EOF
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memListener) Addr() net.Addr { return memAddr{} }
