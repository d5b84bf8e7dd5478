package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/plugins"
	"github.com/fourgate-dev/fourgate/proxy/sim"
)

// waitLimit bounds every wait for a condition in these tests. It is only reached by a
// test that fails.
const waitLimit = 20 * time.Second

// output collects what a command prints, for a test that reads it meanwhile.
type output struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// await returns the output once it has text in it.
func (o *output) await(t testing.TB, text string) string {
	t.Helper()
	return o.awaitFrom(t, text, nil)
}

// awaitCount waits until text was printed n times.
func (o *output) awaitCount(t testing.TB, text string, n int) {
	t.Helper()
	limit := time.After(waitLimit)
	for {
		o.mu.Lock()
		seen, changed := strings.Count(o.buf.String(), text), o.changed
		o.mu.Unlock()
		if seen >= n {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%q was printed %d times, want %d:\n%s", text, seen, n, o)
		}
	}
}

// awaitFrom gives up when the command that prints has ended.
func (o *output) awaitFrom(t testing.TB, text string, ended chan int) string {
	t.Helper()
	limit := time.After(waitLimit)
	for {
		o.mu.Lock()
		seen, changed := o.buf.String(), o.changed
		o.mu.Unlock()
		if strings.Contains(seen, text) {
			return seen
		}
		select {
		case <-changed:
		case code := <-ended:
			ended <- code
			t.Fatalf("the command ended with %d and didn't print %q; it printed:\n%s", code, text, o)
		case <-limit:
			t.Fatalf("%q was not printed within %v; printed so far:\n%s", text, waitLimit, seen)
		}
	}
}

// command is a command of the program that runs in the test's own process.
type command struct {
	stdout, stderr *output
	stop           context.CancelFunc
	done           chan int
}

// movable is a clock that a test can put forward.
type movable struct{ ahead atomic.Int64 }

func (m *movable) now() time.Time          { return time.Now().Add(time.Duration(m.ahead.Load())) }
func (m *movable) forward(d time.Duration) { m.ahead.Add(int64(d)) }

// startAt runs the program as its user would, with vars as its environment.
func startAt(t testing.TB, clock *movable, vars map[string]string, args ...string) *command {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := &command{newOutput(), newOutput(), stop, make(chan int, 1)}
	e := &env{now: clock.now, args: args, stdin: strings.NewReader(""), stdout: c.stdout, stderr: c.stderr,
		lookup: func(name string) (string, bool) { text, ok := vars[name]; return text, ok }}
	go func() { c.done <- run(ctx, e) }()
	t.Cleanup(func() { c.end(t) })
	return c
}

// end stops a command that runs and returns its exit code.
func (c *command) end(t testing.TB) int {
	t.Helper()
	c.stop()
	select {
	case code := <-c.done:
		c.done <- code
		return code
	case <-time.After(waitLimit):
		t.Fatalf("the command didn't stop; it printed:\n%s\n%s", c.stdout, c.stderr)
		return 0
	}
}

// base waits for a serving command and returns the URL that it prints.
func (c *command) base(t testing.TB) string {
	t.Helper()
	const before = "serves on "
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the proxy's log:\n%s", c.stderr)
		}
	})
	text := c.stdout.awaitFrom(t, before, c.done)
	_, url, _ := strings.Cut(text, before)
	url, _, _ = strings.Cut(url, "\n")
	return url
}

// rig is the proxy over simulated channels on real sockets.
type rig struct {
	t        *testing.T
	sim      *sim.Sim
	base     string
	config   string
	ledger   string
	vars     map[string]string
	proxy    *command
	upstream []string
	clock    *movable
	before   []int // calls of each channel before the last fresh
}

// newRig serves the configuration at path. Its variables, each with the prefix before
// its name, must be the address (LISTEN), the ledger (LEDGER) and each channel's base
// URL (NAME_URL).
func newRig(t *testing.T, path, prefix string, channels ...string) *rig {
	t.Helper()
	s, err := sim.Start(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	store := filepath.Join(t.TempDir(), "ledger.db")
	vars := map[string]string{
		prefix + "LISTEN": "127.0.0.1:0", prefix + "ADMIN_LISTEN": "127.0.0.1:0", prefix + "LEDGER": store, prefix + "KEY": secretOfTests,
	}
	for _, ch := range channels {
		vars[prefix+strings.ToUpper(ch)+"_URL"] = s.URL(ch)
	}
	r := &rig{t: t, sim: s, config: path, ledger: store, vars: vars, upstream: channels, clock: new(movable)}
	r.proxy = startAt(t, r.clock, vars, "serve", "-c", path)
	r.base = r.proxy.base(t)
	return r
}

const secretOfTests = "sk-upstream-secret-of-tests"

// script gives a channel its faults.
func (r *rig) script(channel, text string) {
	r.t.Helper()
	faults, err := sim.ParseScript(text)
	if err != nil {
		r.t.Fatal(err)
	}
	r.sim.Channel(channel).Script(faults...)
}

// calls tells how many requests have reached each channel, in order of their names.
func (r *rig) calls() string {
	var parts []string
	for _, ch := range r.upstream {
		parts = append(parts, fmt.Sprintf("%s=%d", ch, r.sim.Count(ch)))
	}
	return strings.Join(parts, " ")
}

// node runs one of the SDK scripts and returns what it printed. In CI a missing Node.js
// or package fails the test; on a laptop it is skipped.
func node(t *testing.T, script string, args ...string) string {
	t.Helper()
	dir := filepath.Join("testdata", "sdk")
	missing := ""
	if _, err := exec.LookPath("node"); err != nil {
		missing = "Node.js is not installed"
	} else if name := notInstalled(t, dir); name != "" {
		missing = "the SDK " + name + " is not installed; run npm ci in cmd/fourgate/testdata/sdk"
	}
	if missing != "" {
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node %s: %v\n%s", script, err, &stderr)
	}
	return string(out)
}

// notInstalled names a package that package.json in dir asks for and npm hasn't installed.
func notInstalled(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var wanted struct{ Dependencies map[string]string }
	if err := json.Unmarshal(text, &wanted); err != nil {
		t.Fatal(err)
	}
	for name := range wanted.Dependencies {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", filepath.FromSlash(name))); err != nil {
			return name
		}
	}
	return ""
}

// openHost is a plugin host that ends with the test.
func openHost(t *testing.T) *plugins.Host {
	t.Helper()
	host, err := plugins.Open(t.Context(), plugins.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close(context.Background()) })
	return host
}
