//go:build unix

package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/valyala/fasthttp"
)

// answering is an upstream that answers each request at once with the same bytes, so that
// what is measured is the client.
func answering(tb testing.TB, answer string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return answeringOn(tb, l, answer)
}

// answeringOn answers on a listener, which it closes, and returns its address.
func answeringOn(tb testing.TB, l net.Listener, answer string) string {
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				in, out := bufio.NewReader(c), []byte(answer)
				for {
					// The request's body ends with the only 0xff.
					if _, err := in.ReadSlice(0xff); err != nil {
						return
					}
					if _, err := c.Write(out); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

var benchAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: 0123456789\r\n" +
	"Openai-Processing-Ms: 12\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Length: 1500\r\n\r\n" + strings.Repeat("x", 1500)

var benchBody = append(bytes.Repeat([]byte("y"), 600), 0xff)

func benchRequest() *Request {
	return &Request{
		Method: "POST", Path: "/v1/chat/completions",
		Header: []engine.Header{
			{Name: "Content-Type", Value: "application/json"},
			{Name: "Authorization", Value: "Bearer sk-0123456789"},
			{Name: "X-Request-Id", Value: "0123456789"},
		},
		Body: [][]byte{benchBody},
	}
}

// BenchmarkKeepAlive is one 1.5 kB answer, BenchmarkStream one of 50 chunks.
func BenchmarkKeepAlive(b *testing.B) { compare(b, benchAnswer) }

func BenchmarkStream(b *testing.B) {
	frame := "data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("x", 80) + "\"}}]}\n\n"
	chunk := strconv.FormatInt(int64(len(frame)), 16) + "\r\n" + frame + "\r\n"
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	compare(b, head+strings.Repeat(chunk, 50)+"0\r\n\r\n")
}

// cpu reports the processor time of the whole process, upstream included, which other
// work on the machine disturbs less than the clock. Call what it returns at the end.
func cpu(b *testing.B) func() {
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	start := used()
	return func() { b.ReportMetric(float64(used()-start)/float64(b.N), "cpu-ns/op") }
}

// benchCall makes one call and reads its answer.
func benchCall(b *testing.B, c *Client, t *Target, limits engine.Limits, buf []byte) {
	a := c.Start(t, benchRequest(), limits, time.Now().Add(time.Minute))
	if err := a.Open(); err != nil {
		b.Fatal(err)
	}
	for {
		_, err := a.Read(buf)
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	a.Close()
}

// fastCall is the same call by the client that the benchmarks compare with.
func fastCall(b *testing.B, c *fasthttp.HostClient, base string, req *fasthttp.Request, resp *fasthttp.Response, buf []byte) {
	req.Reset()
	req.Header.SetMethod("POST")
	req.SetRequestURI(base + "/v1/chat/completions")
	req.Header.SetContentType("application/json")
	req.Header.Set("Authorization", "Bearer sk-0123456789")
	req.Header.Set("X-Request-Id", "0123456789")
	req.SetBodyRaw(benchBody)
	if err := c.Do(req, resp); err != nil {
		b.Fatal(err)
	}
	for {
		_, err := resp.BodyStream().Read(buf)
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	_ = resp.CloseBodyStream()
	resp.Reset()
}

func compare(b *testing.B, answer string) {
	b.Run("upstream", func(b *testing.B) {
		c := New(Options{MaxIdle: 4, IdleFor: time.Minute})
		defer c.Close()
		t, err := ParseTarget("http://" + answering(b, answer))
		if err != nil {
			b.Fatal(err)
		}
		limits := engine.Limits{Connect: 5 * time.Second, Headers: 240 * time.Second, Idle: 120 * time.Second}
		buf := make([]byte, 4096)
		b.ReportAllocs()
		report := cpu(b)
		for b.Loop() {
			benchCall(b, c, t, limits, buf)
		}
		report()
	})
	b.Run("fasthttp", func(b *testing.B) {
		addr := answering(b, answer)
		c := &fasthttp.HostClient{Addr: addr, NoDefaultUserAgentHeader: true, MaxIdemponentCallAttempts: 1, StreamResponseBody: true}
		defer c.CloseIdleConnections()
		var req fasthttp.Request
		var resp fasthttp.Response
		buf := make([]byte, 4096)
		b.ReportAllocs()
		report := cpu(b)
		for b.Loop() {
			fastCall(b, c, "http://"+addr, &req, &resp, buf)
		}
		report()
	})
}

// An answer's cost in allocations is a promise: the attempt, the head's text, its fields.
// Not parallel: the count is of the whole process.
func TestAllocations(t *testing.T) {
	c := New(Options{MaxIdle: 4})
	defer c.Close()
	tg := target(t, serve(t, func(p *peer) {
		answer := []byte(benchAnswer)
		buf := make([]byte, 8192)
		for {
			n, err := p.Conn.Read(buf)
			if err != nil {
				return
			}
			if buf[n-1] == 0xff {
				_, _ = p.Write(answer)
			}
		}
	}))
	r, buf := benchRequest(), make([]byte, 4096)
	got := testing.AllocsPerRun(100, func() {
		a := c.Start(tg, r, long, time.Time{})
		if err := a.Open(); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := a.Read(buf); err != nil {
				break
			}
		}
		a.Close()
	})
	if got > 3 {
		t.Errorf("%.0f allocations a call, want at most 3", got)
	}
}
