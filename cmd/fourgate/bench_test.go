package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/fourgate-dev/fourgate/proxy/sim"
)

// These benchmarks compare the whole product, with policy, plugin and ledger on, with a
// bare fasthttp reverse proxy in one run. The upstream and the callers live in a child
// process, so that cpu-us/op is the processor time of the proxy alone.
//
//	go test -run '^$' -bench 'Floor|Product' -benchtime 20000x ./cmd/fourgate
//
// The failover benchmark has one caller: compare its ns/op with ProductWhole1's for the
// time that a first channel's 503 adds. The outage benchmarks have many callers and a first
// channel that always fails: without a breaker each request makes two upstream calls and two
// decisions' worth of records, which is the worst that a policy can be asked for; with the
// default breaker the channel is left out after three failures.

const benchChildVar = "FOURGATE_BENCH_CHILD"

func BenchmarkFloorWhole(b *testing.B)       { benchmark(b, bareProxy, "whole", 8) }
func BenchmarkProductWhole(b *testing.B)     { benchmark(b, product(false), "whole", 8) }
func BenchmarkFloorStream50(b *testing.B)    { benchmark(b, bareProxy, "stream", 8) }
func BenchmarkProductStream50(b *testing.B)  { benchmark(b, product(false), "stream", 8) }
func BenchmarkFloorWhole1(b *testing.B)      { benchmark(b, bareProxy, "whole", 1) }
func BenchmarkProductWhole1(b *testing.B)    { benchmark(b, product(false), "whole", 1) }
func BenchmarkProductFailover1(b *testing.B) { benchmark(b, product(true), "whole", 1) }
func BenchmarkProductOutage(b *testing.B)    { benchmark(b, product(true), "whole", 8) }

// BenchmarkProductOutageBreaker is the outage with the default breaker.
func BenchmarkProductOutageBreaker(b *testing.B) {
	benchmark(b, edited(func(text string) string { return strings.Replace(text, `  breaker { mode = "off" }`+"\n", "", 1) }), "whole", 8)
}

// BenchmarkProductOutageGroups is the outage in a configuration with a thousand other
// groups, each with a policy of its own: a decision doesn't depend on their number.
func BenchmarkProductOutageGroups(b *testing.B) {
	benchmark(b, edited(func(text string) string {
		var more strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&more, `
route_group "other-%[1]d" {
  models    = ["model-%[1]d"]
  endpoints = ["openai.chat"]
  channel "first" { provider = provider.first }
  channel "second" { provider = provider.second }
  policy {
    params = { retry_on_network = %[2]t }
    timeout = "%[3]dms"
  }
}
`, i, i%2 == 0, 100+i%100)
		}
		return text + more.String()
	}), "whole", 8)
}

// edited is the program with another configuration than that of the failover benchmark.
func edited(edit func(text string) string) func(b *testing.B, upstream string) string {
	return func(b *testing.B, upstream string) string {
		config := benchConfig(b, "http://"+upstream, true)
		text, err := os.ReadFile(config)
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(config, []byte(edit(string(text))), 0o600); err != nil {
			b.Fatal(err)
		}
		return strings.TrimPrefix(startAt(b, new(movable), nil, "serve", "-c", config).base(b), "http://")
	}
}

// BenchmarkStart is from the command to the line that says that it serves.
func BenchmarkStart(b *testing.B) {
	config := benchConfig(b, "http://127.0.0.1:1", false)
	for range min(b.N, 20) { // each is tens of milliseconds, whatever -benchtime says
		c := startAt(b, new(movable), nil, "serve", "-c", config)
		began := time.Now()
		c.base(b)
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "ms/start")
		c.end(b)
	}
}

func benchConfig(b *testing.B, upstream string, failover bool) string {
	b.Helper()
	dir := b.TempDir()
	first := "good"
	if failover {
		first = "bad"
	}
	text := fmt.Sprintf(`
server { listen = "127.0.0.1:0" }
classifier "openai" { module = "builtin:openai" }
provider "first" {
  base_url   = "%[1]s/%[2]s/v1"
  classifier = classifier.openai
  auth       = "bearer"
  key "main" { secret = env("KEY", "bench-key") }
}
provider "second" {
  base_url   = "%[1]s/good/v1"
  classifier = classifier.openai
  auth       = "bearer"
  key "main" { secret = env("KEY", "bench-key") }
}
route_group "bench" {
  models    = ["mock-model"]
  endpoints = ["openai.chat"]
  channel "first" { provider = provider.first }
  channel "second" { provider = provider.second }
  budget { deadline = "600s" }
  breaker { mode = "off" }
}
retry_budget {
  ratio = 1
  floor = 1000
  cap   = 1000000
}
ledger {
  store = "sqlite"
  path  = "%[3]s"
}
`, upstream, first, filepath.Join(dir, "bench.db"))
	path := filepath.Join(dir, "fourgate.hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// product is the program as `serve` runs it.
func product(failover bool) func(b *testing.B, upstream string) string {
	return func(b *testing.B, upstream string) string {
		c := startAt(b, new(movable), nil, "serve", "-c", benchConfig(b, "http://"+upstream, failover))
		return strings.TrimPrefix(c.base(b), "http://")
	}
}

// bareProxy is a reverse proxy that decides nothing.
func bareProxy(b *testing.B, upstream string) string {
	client := &fasthttp.HostClient{
		Addr: upstream, MaxConns: 4096, StreamResponseBody: true,
		NoDefaultUserAgentHeader: true, DisablePathNormalizing: true, MaxIdleConnDuration: time.Minute,
	}
	handler := func(ctx *fasthttp.RequestCtx) {
		resp := fasthttp.AcquireResponse()
		ctx.Request.Header.Del("Connection")
		ctx.Request.SetRequestURI("/good/v1/chat/completions")
		if err := client.Do(&ctx.Request, resp); err != nil {
			fasthttp.ReleaseResponse(resp)
			ctx.Error(err.Error(), fasthttp.StatusBadGateway)
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
			defer func() { _ = resp.CloseBodyStream() }()
			buf := make([]byte, 16<<10)
			for {
				n, err := resp.BodyStream().Read(buf)
				_, _ = w.Write(buf[:n])
				if w.Flush() != nil || err != nil {
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
	b.Cleanup(func() { _ = ln.Close() })
	return ln.Addr().String()
}

func benchmark(b *testing.B, start func(b *testing.B, upstream string) string, mode string, callers int) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), benchChildVar+"=1", "GOMAXPROCS=1")
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = child.Wait() })
	lines := bufio.NewReader(out)
	upstream, err := lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	addr := start(b, strings.TrimSpace(upstream))
	load := func(n int) {
		fmt.Fprintf(in, "%s %s %d %d\n", mode, addr, n, callers)
		if line, err := lines.ReadString('\n'); err != nil || line != "done\n" {
			b.Fatalf("the load says %q, %v", line, err)
		}
	}
	load(200) // connections, pools and caches
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	load(b.N)
	used := cpuTime(b) - before
	b.StopTimer()
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-us/op")
}

// cpuTime is the user and system time of this process so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchChild serves simulated channels and makes load as its standard input says.
func benchChild() error {
	s, err := sim.Start(sim.Options{Keep: -1})
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"good": "ok bytes=1500 chunks=50", "bad": "status=503"} {
		script, err := sim.ParseScript(text)
		if err != nil {
			return err
		}
		s.Channel(name).Script(script...)
	}
	fmt.Println(s.Addr())
	for {
		var mode, addr string
		var n, callers int
		if _, err := fmt.Scanln(&mode, &addr, &n, &callers); err != nil {
			return nil // the benchmark is over
		}
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
		body := chat("mock-model", mode == "stream")
		var wg sync.WaitGroup
		failed := make(chan error, callers)
		for i := range callers {
			share := n / callers
			if i < n%callers {
				share++
			}
			wg.Go(func() { failed <- benchCalls(client, "http://"+addr+"/v1/chat/completions", body, share) })
		}
		wg.Wait()
		close(failed)
		for err := range failed {
			if err != nil {
				return err
			}
		}
		client.CloseIdleConnections()
		fmt.Println("done")
	}
}

func benchCalls(client *http.Client, url, body string, n int) error {
	for range n {
		resp, err := client.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d, error %v, body %s", resp.StatusCode, err, text)
		}
	}
	return nil
}
