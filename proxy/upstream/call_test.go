package upstream

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/google/go-cmp/cmp"
)

func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 20_000)
	for _, tc := range []struct {
		name, base string
		request    Request
		want       string // HOST stands for the address
	}{
		{"spliced body", "/v1", Request{
			Method: "POST", Path: "/chat//a%2Fb/../c?x=1",
			Header: []engine.Header{{Name: "content-type", Value: "application/json"}, {Name: "Authorization", Value: "Bearer s"}},
			Body:   [][]byte{[]byte(`{"model":"`), []byte("b"), []byte(`"}`)},
		}, "POST /v1/chat//a%2Fb/../c?x=1 HTTP/1.1\r\nHost: HOST\r\ncontent-type: application/json\r\nAuthorization: Bearer s\r\nContent-Length: 13\r\n\r\n{\"model\":\"b\"}"},
		{"own fields are skipped", "", Request{
			Method: "POST", Path: "/x",
			Header: []engine.Header{{Name: "hoSt", Value: "evil"}, {Name: "Content-length", Value: "1"}, {Name: "TE", Value: "x"}, {Name: "connection", Value: "close"}},
		}, "POST /x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n"},
		{"no body", "/", Request{Method: "GET"}, "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"large body", "", Request{Method: "PUT", Path: "/", Body: [][]byte{[]byte("<"), []byte(large), []byte(">")}},
			fmt.Sprintf("PUT / HTTP/1.1\r\nHost: HOST\r\nContent-Length: %d\r\n\r\n<%s>", len(large)+2, large)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := make(chan string, 1)
			base := serve(t, func(p *peer) {
				got <- p.request()
				p.send("HTTP/1.1 204 No Content\r\n\r\n")
				p.gone()
			})
			c := newClient(t, Options{})
			a := open(t, c, base+tc.base, &tc.request)
			defer a.Close()
			want := strings.ReplaceAll(tc.want, "HOST", strings.TrimPrefix(base, "http://"))
			if diff := cmp.Diff(want, <-got); diff != "" {
				t.Errorf("request (-want +got):\n%.2000s", diff)
			}
		})
	}
}

func TestUnsendableRequests(t *testing.T) {
	t.Parallel()
	f := func(name string, r *Request) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := serve(t, func(p *peer) {
				if got := p.request(); got != "" {
					t.Errorf("the upstream got %q", got)
				}
			})
			a := newClient(t, Options{}).Start(target(t, base), r, long, time.Time{})
			openError(t, a, engine.NetNone, engine.OpWrite, true)
		})
	}
	f("split value", &Request{Method: "GET", Path: "/", Header: []engine.Header{{Name: "a", Value: "b\r\nc: d"}}})
	f("split name", &Request{Method: "GET", Path: "/", Header: []engine.Header{{Name: "a: b\r\nc", Value: "d"}}})
	f("split path", &Request{Method: "GET", Path: "/ HTTP/1.1\r\n"})
	f("path without slash", &Request{Method: "GET", Path: "x"})
	f("split method", &Request{Method: "GET /", Path: "/"})
}

// answers are whole responses and what is to be read of them.
func TestAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60_000)
	for _, tc := range []struct {
		name, method, answer string
		status               int
		length               int64
		header               engine.Headers
		body                 string
		reusable             bool
	}{
		{"length", "POST", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhello", 200, 5,
			engine.Headers{{Name: "Content-Length", Value: "5"}, {Name: "X-A", Value: "b"}}, "hello", true},
		{"no reason", "POST", "HTTP/1.1 429\r\ncontent-length: 0\r\n\r\n", 429, 0,
			engine.Headers{{Name: "content-length", Value: "0"}}, "", true},
		{"chunks", "POST", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\na\r\n00a;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n", 200, -1,
			engine.Headers{}, "a0123456789", true},
		{"until close", "POST", "HTTP/1.1 200 OK\r\n\r\nabc", 200, -2, engine.Headers{}, "abc", false},
		{"version 1.0", "POST", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", 200, 1,
			engine.Headers{{Name: "Content-Length", Value: "1"}}, "a", false},
		{"close", "POST", "HTTP/1.1 200 OK\r\nconnection: x-hop , Close\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nContent-Length: 1\r\n\r\na", 200, 1,
			engine.Headers{{Name: "Content-Length", Value: "1"}}, "a", false},
		{"interim heads", "POST", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", 200, 1,
			engine.Headers{{Name: "Content-Length", Value: "1"}}, "a", true},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", 200, 0, engine.Headers{{Name: "Content-Length", Value: "7"}}, "", true},
		{"204", "POST", "HTTP/1.1 204 No Content\r\n\r\n", 204, 0, engine.Headers{}, "", true},
		{"304", "POST", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, 0, engine.Headers{{Name: "Content-Length", Value: "7"}}, "", true},
		{"large head", "POST", "HTTP/1.1 200 OK\r\nX: " + long + "\r\nContent-Length: 1\r\n\r\na", 200, 1,
			engine.Headers{{Name: "X", Value: long}, {Name: "Content-Length", Value: "1"}}, "a", true},
		{"large body", "POST", "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + long, 200, 60_000,
			engine.Headers{{Name: "Content-Length", Value: "60000"}}, long, true},
		{"large chunk", "POST", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nea60\r\n" + long + "\r\n0\r\n\r\n", 200, -1,
			engine.Headers{}, long, true},
		{"surplus bytes", "POST", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", 200, 1,
			engine.Headers{{Name: "Content-Length", Value: "1"}}, "a", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			base := serve(t, func(p *peer) {
				for p.request() != "" {
					p.send(tc.answer)
					if tc.length == lengthClose {
						return
					}
				}
			})
			c := newClient(t, Options{})
			for round, size := range []int{1, 7, 1 << 16} {
				a := open(t, c, base, &Request{Method: tc.method, Path: "/"})
				body, err := io.ReadAll(onlySize{a, size})
				if err != nil {
					t.Fatalf("Read: %v", err)
				}
				if a.Status() != tc.status || a.ContentLength() != tc.length || string(body) != tc.body {
					t.Errorf("got %d, length %d, body %.40q; want %d, %d, %.40q", a.Status(), a.ContentLength(), body, tc.status, tc.length, tc.body)
				}
				if diff := cmp.Diff(tc.header, a.Header()); diff != "" {
					t.Errorf("header (-want +got):\n%.500s", diff)
				}
				if got := a.Reused(); got != (tc.reusable && round > 0) {
					t.Errorf("call %d: connection reused: %v", round, got)
				}
				m := a.Milestones()
				if m.Connected.IsZero() || m.Sent.Before(m.Connected) || m.HeadersAt.Before(m.Sent) || (tc.body != "" && m.FirstByte.Before(m.HeadersAt)) {
					t.Errorf("milestones out of order: %+v", m)
				}
				a.Close()
			}
		})
	}
}

// onlySize reads with a slice of one size.
type onlySize struct {
	r    io.Reader
	size int
}

func (o onlySize) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), o.size)]) }

func TestBytesComeAtOnce(t *testing.T) {
	t.Parallel()
	step := make(chan struct{})
	base := serve(t, func(p *peer) {
		p.request()
		p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for _, part := range []string{"6\r\nab", "cd", "ef\r\n", "1\r\ng\r\n", "0\r\n\r\n"} {
			<-step
			p.send(part)
		}
		p.gone()
	})
	c := newClient(t, Options{})
	a := open(t, c, base, post())
	buf := make([]byte, 100)
	for _, want := range []string{"ab", "cd", "ef", "g"} {
		step <- struct{}{}
		n, err := a.Read(buf)
		if err != nil || string(buf[:n]) != want {
			t.Fatalf("Read: %q, %v; want %q", buf[:n], err, want)
		}
	}
	step <- struct{}{}
	if n, err := a.Read(buf); n != 0 || err != io.EOF {
		t.Fatalf("Read: %d, %v; want the end", n, err)
	}
	a.Close()
	c.Close()
}

func TestUnreadBodyThatIsHereKeepsTheConnection(t *testing.T) {
	t.Parallel()
	base := serve(t, func(p *peer) {
		for p.request() != "" {
			p.send("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")
		}
	})
	c := newClient(t, Options{})
	for round := range 2 {
		a := open(t, c, base, post())
		if a.Reused() != (round > 0) {
			t.Errorf("call %d: connection reused: %v", round, a.Reused())
		}
		a.Close()
	}
}

func TestEarlyAnswerToALargeBody(t *testing.T) {
	t.Parallel()
	base := serve(t, func(p *peer) {
		_, _ = p.in.ReadString('\n')
		p.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
	})
	a := newClient(t, Options{}).Start(target(t, base), post(strings.Repeat("x", 32<<20)), long, time.Time{})
	defer a.Close()
	if err := a.Open(); err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(a); a.Status() != 413 || string(body) != "big" || err != nil {
		t.Errorf("got %d, %q, %v", a.Status(), body, err)
	}
}
