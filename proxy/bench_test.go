package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy"
)

// The benchmarks compare the proxy with a bare fasthttp reverse proxy in one run. The
// upstream and the load run in a child process, so that this process' CPU time is the
// proxy's alone. Compare the figures cpu-us/op.
//
//	go test -run '^$' -bench 'Whole|Stream50' -benchtime 20000x ./proxy

const benchChild = "FOURGATE_BENCH_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(benchChild) {
	case "":
		os.Exit(m.Run())
	case streamsChild:
		runStreamsChild()
	default:
		runBenchChild()
	}
}

func BenchmarkFloorWhole(b *testing.B)    { benchmark(b, floor, "whole") }
func BenchmarkProxyWhole(b *testing.B)    { benchmark(b, gatewayFor, "whole") }
func BenchmarkFloorStream50(b *testing.B) { benchmark(b, floor, "stream") }
func BenchmarkProxyStream50(b *testing.B) { benchmark(b, gatewayFor, "stream") }

// BenchmarkProxyFailover has a first channel that answers 503.
func BenchmarkProxyFailover(b *testing.B) {
	benchmark(b, func(b *testing.B, upstream string) string {
		bad := &provider{url: "http://" + upstream + "/bad"}
		good := &provider{url: "http://" + upstream}
		return setup{providers: []*provider{bad, good}}.start(b).addr
	}, "whole")
}

func gatewayFor(b *testing.B, upstream string) string {
	return setup{
		providers: []*provider{{url: "http://" + upstream}}, auth: engine.AuthBearer, callers: true,
		settings: proxy.Settings{},
	}.start(b).addr
}

// floor is a reverse proxy that decides nothing.
func floor(b *testing.B, upstream string) string {
	client := &fasthttp.HostClient{
		Addr: upstream, MaxConns: 4096, StreamResponseBody: true,
		NoDefaultUserAgentHeader: true, DisablePathNormalizing: true, MaxIdleConnDuration: time.Minute,
	}
	handler := func(ctx *fasthttp.RequestCtx) {
		resp := fasthttp.AcquireResponse()
		ctx.Request.Header.Del("Connection")
		if err := client.Do(&ctx.Request, resp); err != nil {
			fasthttp.ReleaseResponse(resp)
			ctx.Error(err.Error(), 502)
			return
		}
		resp.Header.CopyTo(&ctx.Response.Header)
		if resp.Header.ContentLength() >= 0 {
			ctx.SetBody(resp.Body())
			fasthttp.ReleaseResponse(resp)
			return
		}
		ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
			defer fasthttp.ReleaseResponse(resp)
			buf := make([]byte, 16<<10)
			for {
				n, err := resp.BodyStream().Read(buf)
				if n > 0 {
					_, _ = w.Write(buf[:n])
					_ = w.Flush()
				}
				if err != nil {
					_ = resp.CloseBodyStream()
					return
				}
			}
		})
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true, CloseOnShutdown: true}
	go func() { _ = server.Serve(ln) }()
	b.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

func benchmark(b *testing.B, start func(b *testing.B, upstream string) string, mode string) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), benchChild+"=1", "GOMAXPROCS=1")
	child.Stderr = os.Stderr
	in, _ := child.StdinPipe()
	out, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { in.Close(); _ = child.Wait() }()
	lines := bufio.NewReader(out)
	upstream, err := lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	addr := start(b, strings.TrimSpace(upstream))
	load := func(n int) {
		fmt.Fprintf(in, "%s %s %d\n", mode, addr, n)
		if line, err := lines.ReadString('\n'); err != nil || line != "done\n" {
			b.Fatalf("the load says %q, %v", line, err)
		}
	}
	load(200) // connections, pools and caches
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	load(b.N)
	used := cpuTime() - before
	b.StopTimer()
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-us/op")
}

// cpuTime is the user and system time of this process so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// runBenchChild serves an upstream and makes load as its standard input says.
func runBenchChild() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(ln.Addr())
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go benchUpstream(c)
		}
	}()
	for {
		var mode, addr string
		var n int
		if _, err := fmt.Scanln(&mode, &addr, &n); err != nil {
			return
		}
		const conns = 8
		var wg sync.WaitGroup
		for i := range conns {
			share := n / conns
			if i < n%conns {
				share++
			}
			wg.Go(func() { benchLoad(mode, addr, share) })
		}
		wg.Wait()
		fmt.Println("done")
	}
}

var (
	benchFiller = strings.Repeat("all work and no play ", 60)
	benchWhole  = `{"id":"c1","object":"chat.completion","created":1,"model":"` + model + `","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		benchFiller + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":300}}`
	benchHead = "Date: Mon, 30 Nov 2026 00:00:00 GMT\r\nopenai-processing-ms: 12\r\nx-ratelimit-remaining-requests: 99\r\nx-request-id: req_1\r\nServer: cloudflare\r\nCF-RAY: 1\r\n"
)

func benchUpstream(c net.Conn) {
	defer c.Close()
	br := bufio.NewReaderSize(c, 64<<10)
	whole := []byte(fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", benchHead, len(benchWhole), benchWhole))
	bad := []byte("HTTP/1.1 503 X\r\n" + benchHead + "Content-Type: application/json\r\nContent-Length: 31\r\n\r\n" + `{"error":{"message":"overload"}}`[:31])
	head := []byte("HTTP/1.1 200 OK\r\n" + benchHead + "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	one := []byte(chunk(textFrame))
	last := []byte(chunk(stopFrame+doneFrame) + "0\r\n\r\n")
	for {
		target, body, err := readBenchRequest(br)
		if err != nil {
			return
		}
		if strings.HasPrefix(target, "/bad") {
			_, _ = c.Write(bad)
			continue
		}
		if !bytes.Contains(body, []byte(`"stream":true`)) {
			_, _ = c.Write(whole)
			continue
		}
		_, _ = c.Write(head)
		for range 49 {
			_, _ = c.Write(one)
			time.Sleep(20 * time.Microsecond) // each frame is a read of its own
		}
		_, _ = c.Write(last)
	}
}

func readBenchRequest(br *bufio.Reader) (target string, body []byte, err error) {
	length := 0
	for i := 0; ; i++ {
		line, err := br.ReadSlice('\n')
		if err != nil {
			return "", nil, err
		}
		if i == 0 {
			target = strings.Fields(string(line))[1]
		}
		if len(line) == 2 {
			break
		}
		if bytes.HasPrefix(line, []byte("Content-Length: ")) {
			fmt.Sscan(string(line[16:]), &length)
		}
	}
	body = make([]byte, length)
	_, err = io.ReadFull(br, body)
	return target, body, err
}

func benchLoad(mode, addr string, n int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	body := `{"model":"` + model + `","messages":[{"role":"system","content":"` + benchFiller[:400] + `"},{"role":"user","content":"hi"}]}`
	if mode == "stream" {
		body = strings.Replace(body, `,"messages"`, `,"stream":true,"messages"`, 1)
	}
	request := []byte(rawPost("/v1/chat/completions", body, "Authorization: Bearer "+callerKey, "Content-Type: application/json",
		"Accept: application/json", "User-Agent: OpenAI/JS 6.49.0", "X-Stainless-Lang: js", "X-Stainless-Package-Version: 6.49.0",
		"X-Stainless-Retry-Count: 0", "X-Stainless-Runtime: node", "Accept-Encoding: gzip, deflate"))
	br := bufio.NewReaderSize(c, 64<<10)
	for range n {
		if _, err := c.Write(request); err != nil {
			panic(err)
		}
		length, first := -1, true
		for {
			line, err := br.ReadSlice('\n')
			if err != nil {
				panic(err)
			}
			if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
				panic(string(line))
			}
			first = false
			if len(line) == 2 {
				break
			}
			if bytes.HasPrefix(line, []byte("Content-Length: ")) {
				fmt.Sscan(string(line[16:]), &length)
			}
		}
		if length >= 0 {
			_, err = br.Discard(length)
		} else {
			for size := -1; size != 0; {
				line, err := br.ReadSlice('\n')
				if err != nil {
					panic(err)
				}
				fmt.Sscanf(string(line), "%x", &size)
				if _, err := br.Discard(size + 2); err != nil {
					panic(err)
				}
			}
		}
		if err != nil {
			panic(err)
		}
	}
}
