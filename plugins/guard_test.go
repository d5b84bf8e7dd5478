package plugins_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fickle traps when the status is 599 and gives a verdict otherwise.
func fickle() []byte {
	return wasm{
		imports: []wasmFunc{importVerdict, {module: "fourgate", name: "status", results: []byte{i32}}},
		funcs: []wasmFunc{{code: cat([]byte{0x10, 1, 0x41}, sleb(599), []byte{0x46, 0x04, 0x40, 0x00, 0x0b},
			callVerdict(2, 2, textAt, 1, -1))}},
		extra: reasonK(),
	}.bytes()
}

// counted sums up a counter or a gauge of a host over its labels.
func counted(t testing.TB, host *plugins.Host, name string, labels ...string) int {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(host)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	next:
		for _, m := range f.GetMetric() {
			for _, want := range labels {
				found := false
				for _, l := range m.GetLabel() {
					found = found || l.GetName()+"="+l.GetValue() == want
				}
				if !found {
					continue next
				}
			}
			sum += int(m.GetCounter().GetValue() + m.GetGauge().GetValue())
		}
	}
	return sum
}

func TestSetAside(t *testing.T) {
	t.Parallel()
	time0 := &clock{now: time.Date(2026, 3, 31, 22, 0, 0, 0, time.UTC)}
	var log bytes.Buffer
	host, err := plugins.Open(t.Context(), plugins.Options{Now: time0.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close(t.Context())
	c, err := load(t, host, fickle())
	if err != nil {
		t.Fatal(err)
	}
	f := func(status int, want string) {
		t.Helper()
		if v := c.Classify(&engine.Evidence{Transport: engine.TransportHTTP, Status: status}); v.Fault != want || want == "" && v.Class != engine.ClassRateLimited {
			t.Errorf("status %d: %+v; want the fault %q", status, v, want)
		}
	}
	const bad, good = 599, 500

	// Two faults, and the third one long after the first: nothing happens.
	f(bad, "trap")
	f(bad, "trap")
	time0.pass(61 * time.Second)
	f(bad, "trap")
	f(good, "")
	// Three within a minute, with verdicts in between.
	time0.pass(time.Minute + time.Second)
	f(bad, "trap")
	f(good, "")
	f(bad, "trap")
	f(bad, "trap")
	f(good, "set_aside")
	time0.pass(29 * time.Second)
	f(good, "set_aside")
	// The trial fails, so it stays aside.
	time0.pass(time.Second)
	f(bad, "trap")
	f(good, "set_aside")
	// The next trial is good, and all is forgotten.
	time0.pass(30 * time.Second)
	f(good, "")
	f(bad, "trap")
	f(bad, "trap")
	f(good, "")

	if n := strings.Count(log.String(), "classifier set aside"); n != 1 || !strings.Contains(log.String(), "classifier is used again") {
		t.Errorf("the log tells of it %d times:\n%s", n, &log)
	}
	if n := counted(t, host, "fourgate_classifier_set_aside_total", "classifier=test"); n != 1 {
		t.Errorf("it was counted %d times", n)
	}
}
