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
	"syscall"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
	"github.com/fourgate-dev/fourgate/proxy/sim"
)

// TestDrain stops the real program with SIGTERM while it serves: what runs may end, what
// doesn't end in time ends with an error, what comes is turned away, and all is well.
func TestDrain(t *testing.T) {
	t.Parallel()
	s, err := sim.Start(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for channel, script := range map[string]string{"a": "chunks=10 gap=100ms, stall after=2"} {
		faults, err := sim.ParseScript(script)
		if err != nil {
			t.Fatal(err)
		}
		s.Channel(channel).Script(faults...)
	}
	config, store := filepath.Join(t.TempDir(), "drain.hcl"), filepath.Join(t.TempDir(), "ledger.db")
	text, err := os.ReadFile(trio)
	if err != nil {
		t.Fatal(err)
	}
	const slow, quick = `drain_timeout = "5s"`, `drain_timeout = "3s"`
	if !strings.Contains(string(text), slow) {
		t.Fatalf("%s doesn't set %s", trio, slow)
	}
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), slow, quick, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	program, log := exec.Command("fourgate", "serve", "-c", config), newOutput()
	program.Env = append(os.Environ(), "LISTEN=127.0.0.1:0", "ADMIN_LISTEN=127.0.0.1:0", "LEDGER="+store, "KEY="+secretOfTests,
		"A_URL="+s.URL("a"), "B_URL="+s.URL("b"), "C_URL="+s.URL("c"))
	program.Stderr = log
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill()
		if t.Failed() {
			t.Logf("the program's log:\n%s", log)
		}
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the program printed nothing; its log:\n%s", log)
	}
	_, addr, _ := strings.Cut(lines.Text(), "http://")
	go func() { _, _ = io.Copy(io.Discard, out) }()

	// Two streams that run, and a request whose head is under way.
	ends := dialRequest(t, addr, "ends", chat("model-1", true))
	ends.await(`"content":"`)
	hangs := dialRequest(t, addr, "hangs", chat("model-1", true))
	hangs.await(`"content":"`)
	late := dialCaller(t, addr)
	body := chat("model-1", false)
	late.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n")
	// The program has read that much once it answers what came after it.
	if got := post(t, "http://"+addr+"/v1/nothing", ""); got.status != 404 {
		t.Fatalf("got %d", got.status)
	}
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log.await(t, "draining")
	for begin := time.Now(); ; {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			break // refused: an SDK tries it again
		}
		c.Close()
		if time.Since(begin) > waitLimit {
			t.Fatal("new connections are still accepted")
		}
	}
	late.send(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
	resp, err := http.ReadResponse(late.in, nil)
	if err != nil {
		t.Fatalf("a request that comes during the drain: %v", err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || resp.Header.Get("X-Should-Retry") == "false" || !resp.Close || !strings.Contains(string(answer), `"fourgate_draining"`) {
		t.Errorf("a request that comes during the drain gets %d %v %s, %v", resp.StatusCode, resp.Header, answer, err)
	}
	if got := ends.rest(); !strings.Contains(got, "data: [DONE]") || strings.Contains(got, `"error"`) {
		t.Errorf("a stream that could end got %q", got)
	}
	if got := hangs.rest(); strings.Count(got, `data: {"error"`) != 1 || !strings.Contains(got, "fourgate_draining") || strings.Contains(got, "[DONE]") {
		t.Errorf("a stream that could not end got %q", got)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	reader, err := ledger.OpenReader(store)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for id, want := range map[string]engine.Terminal{"ends": engine.TerminalSuccess, "hangs": engine.TerminalPartial} {
		rec, err := reader.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Terminal() != want {
			t.Errorf("the ledger says of %s: %s", id, storyOf(rec))
		}
	}
}

// caller is a connection without a client on it.
type caller struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dialCaller(t *testing.T, addr string) *caller {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	return &caller{t, c, bufio.NewReader(c)}
}

func dialRequest(t *testing.T, addr, id, body string) *caller {
	t.Helper()
	c := dialCaller(t, addr)
	c.send(fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: %s\r\nContent-Length: %d\r\n\r\n%s", id, len(body), body))
	return c
}

func (c *caller) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// await reads lines until one has text in it.
func (c *caller) await(text string) {
	c.t.Helper()
	for {
		line, err := c.in.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			c.t.Fatalf("%q did not come: %v", text, err)
		}
	}
}

// rest reads until the connection ends.
func (c *caller) rest() string {
	c.t.Helper()
	text, err := io.ReadAll(c.in)
	if err != nil {
		c.t.Errorf("the connection broke: %v", err)
	}
	return string(text)
}
