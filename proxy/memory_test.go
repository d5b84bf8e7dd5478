package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// The benchmarks here hold streams open and time their first bytes. Upstream and callers
// are in a child process, so that this process' memory is the proxy's alone.
//
//	go test -run '^$' -bench 'IdleStreams|FirstChunk' -benchtime 1x ./proxy
//	FOURGATE_SLOW_STREAMS=9900 go test -run '^$' -bench SlowStreams -benchtime 1x ./proxy

const (
	streamsChild = "streams" // value of benchChild
	slowStreams  = "FOURGATE_SLOW_STREAMS"
)

// streamLoad is the child with its upstream at addr.
type streamLoad struct {
	b     *testing.B
	addr  string
	in    io.WriteCloser
	lines *bufio.Reader
	child *exec.Cmd
}

func newStreamLoad(b *testing.B) *streamLoad {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	l := &streamLoad{b: b, child: exec.Command(self)}
	l.child.Env = append(os.Environ(), benchChild+"="+streamsChild)
	l.child.Stderr = os.Stderr
	l.in, _ = l.child.StdinPipe()
	out, _ := l.child.StdoutPipe()
	if err := l.child.Start(); err != nil {
		b.Fatal(err)
	}
	l.lines = bufio.NewReader(out)
	l.addr = l.line()
	b.Cleanup(func() { l.in.Close(); _ = l.child.Wait() })
	return l
}

func (l *streamLoad) line() string {
	line, err := l.lines.ReadString('\n')
	if err != nil {
		l.b.Fatalf("the load has ended: %v", err)
	}
	return strings.TrimSpace(line)
}

// do sends the child a command and returns its answer.
func (l *streamLoad) do(format string, args ...any) string {
	fmt.Fprintf(l.in, format+"\n", args...)
	return l.line()
}

// gateway serves the child's upstream without limits that a silent stream would meet.
func (l *streamLoad) gateway() *gateway {
	hour := engine.Limits{Connect: time.Minute, Headers: time.Hour, Gate: time.Hour, Idle: time.Hour}
	return setup{providers: []*provider{{url: "http://" + l.addr}}, limits: hour}.start(l.b)
}

// BenchmarkIdleStreams reports what one silent stream holds: heap and stacks in
// heap-B/stream, resident pages in rss-B/stream.
func BenchmarkIdleStreams(b *testing.B) { holdStreams(b, "hold", 512) }

// BenchmarkSlowStreams holds as many streams as the environment says, each with an event
// in ten seconds, and reports the process' resident memory.
func BenchmarkSlowStreams(b *testing.B) {
	n, _ := strconv.Atoi(os.Getenv(slowStreams))
	if n == 0 {
		b.Skipf("%s sets the number of streams; each needs two open files here and two in the child process", slowStreams)
	}
	holdStreams(b, "trickle", n)
}

func holdStreams(b *testing.B, mode string, n int) {
	l := newStreamLoad(b)
	g := l.gateway()
	l.do("hold %s 8", g.addr)
	l.do("drop")
	debug.FreeOSMemory()
	before, rssBefore := inUse(), residentBytes()
	for range b.N {
		if got := l.do("%s %s %d", mode, g.addr, n); got != "held" {
			b.Fatalf("the load says %s", got)
		}
		peak := residentBytes()
		debug.FreeOSMemory()
		b.ReportMetric(float64(inUse()-before)/float64(n), "heap-B/stream")
		b.ReportMetric(float64(residentBytes()-rssBefore)/float64(n), "rss-B/stream")
		b.ReportMetric(float64(max(peak, residentBytes()))/(1<<20), "rss-MiB")
		if path := os.Getenv("FOURGATE_HEAP_PROFILE"); path != "" {
			writeHeap(b, path)
		}
		l.do("drop")
	}
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// residentBytes is this process' resident memory; 0 where /proc isn't there to tell.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	_, _ = fmt.Sscan(string(text), &size, &resident)
	return resident * int64(os.Getpagesize())
}

// BenchmarkFirstChunk reports the median time from a request to the first bytes of its
// stream: straight from the upstream, through a bare reverse proxy, and through the
// gateway.
func BenchmarkFirstChunk(b *testing.B) {
	l := newStreamLoad(b)
	bare, own := floor(b, l.addr), l.gateway().addr
	var direct, through, ours float64
	for range b.N {
		// Taken in turns, so that a busy machine is busy for all three.
		for range 5 {
			direct += l.first(l.addr)
			through += l.first(bare)
			ours += l.first(own)
		}
	}
	n := float64(5 * b.N)
	b.ReportMetric(direct/n, "direct-us")
	b.ReportMetric(through/n, "bare-us")
	b.ReportMetric(ours/n, "fourgate-us")
	b.ReportMetric((ours-through)/n, "added-us")
	b.ReportMetric(0, "ns/op")
}

func (l *streamLoad) first(addr string) float64 {
	us, err := strconv.ParseFloat(l.do("first %s 400", addr), 64)
	if err != nil {
		l.b.Fatal(err)
	}
	return us
}

// runStreamsChild serves an upstream whose streams stay open, and holds callers.
func runStreamsChild() {
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
			go openStream(c)
		}
	}()
	var held []net.Conn
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var mode, addr string
		var n int
		_, _ = fmt.Sscan(in.Text(), &mode, &addr, &n)
		switch mode {
		case "first":
			fmt.Println(firstChunks(addr, n))
		case "drop":
			for _, c := range held {
				c.Close()
			}
			held = nil
			fmt.Println("dropped")
		default:
			if held, err = holdCallers(addr, mode, n); err != nil {
				fmt.Println(err)
				continue
			}
			fmt.Println("held")
		}
	}
}

// openStream answers with the beginning of a stream. One that trickles gets an event in
// ten seconds; another one ends when the request is for its first chunk only.
func openStream(c net.Conn) {
	defer c.Close()
	br := bufio.NewReader(c)
	for {
		_, body, err := readBenchRequest(br)
		if err != nil {
			return
		}
		if _, err := io.WriteString(c, streamHead+chunk(textFrame)); err != nil {
			return
		}
		switch {
		case bytes.Contains(body, []byte("first")):
			time.Sleep(200 * time.Microsecond)
			_, _ = io.WriteString(c, chunk(stopFrame+doneFrame)+"0\r\n\r\n")
			continue
		case bytes.Contains(body, []byte("trickle")):
			for err == nil {
				time.Sleep(10 * time.Second)
				_, err = io.WriteString(c, chunk(textFrame))
			}
			return
		}
	}
}

func streamRequestFor(mode string) string {
	return rawPost("/v1/chat/completions", `{"model":"`+model+`","stream":true,"messages":[{"role":"user","content":"`+mode+`"}]}`)
}

// holdCallers opens n callers and returns once each of them has read output.
func holdCallers(addr, mode string, n int) ([]net.Conn, error) {
	held := make([]net.Conn, n)
	errs := make(chan error, n)
	slots := make(chan struct{}, 64)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c, err := net.Dial("tcp", addr)
			if err != nil {
				errs <- err
				return
			}
			held[i] = c
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err = io.WriteString(c, streamRequestFor(mode)); err == nil {
				err = (&pastReader{c: c}).past(`"content":"Hel"`)
			}
			if err != nil {
				errs <- err
				return
			}
			if mode == "trickle" {
				go func() { _ = c.SetReadDeadline(time.Time{}); _, _ = io.Copy(io.Discard, c) }()
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return held, err
	default:
		return held, nil
	}
}

// pastReader finds texts in what a connection brings, one after the other.
type pastReader struct {
	c    net.Conn
	rest []byte
}

// past reads until text has come.
func (p *pastReader) past(text string) error {
	var buf [4 << 10]byte
	for {
		if i := bytes.Index(p.rest, []byte(text)); i >= 0 {
			p.rest = p.rest[i+len(text):]
			return nil
		}
		n, err := p.c.Read(buf[:])
		if err != nil {
			return fmt.Errorf("%w after %q", err, p.rest)
		}
		p.rest = append(p.rest, buf[:n]...)
	}
}

// firstChunks makes n requests in turn and returns the median time to output in
// microseconds.
func firstChunks(addr string, n int) string {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	request, answer := []byte(streamRequestFor("first")), pastReader{c: c}
	times := make([]float64, n)
	for i := range times {
		begin := time.Now()
		if _, err := c.Write(request); err != nil {
			return err.Error()
		}
		if err := answer.past(`"content":"Hel"`); err != nil {
			return err.Error()
		}
		times[i] = float64(time.Since(begin).Nanoseconds()) / 1000
		if err := answer.past("\r\n0\r\n\r\n"); err != nil {
			return err.Error()
		}
	}
	slices.Sort(times)
	return strconv.FormatFloat(times[n/2], 'f', 1, 64)
}

func writeHeap(b *testing.B, path string) {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := pprof.WriteHeapProfile(f); err != nil {
		b.Fatal(err)
	}
}
