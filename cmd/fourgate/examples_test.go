package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// example serves one of the example configurations over simulated channels.
func example(t *testing.T, name string, channels ...string) *rig {
	t.Helper()
	return newRig(t, filepath.Join("..", "..", "testdata", "examples", name+".hcl"), strings.ToUpper(name)+"_", channels...)
}

// ask sends one chat request and returns the status and what the ledger tells.
func (r *rig) ask(model string) (int, string) {
	r.t.Helper()
	got := post(r.t, r.base+"/v1/chat/completions", chat(model, false))
	return got.status, storyOf(r.record(got.header.Get("X-Request-Id")))
}

func (r *rig) want(model string, status int, story string) {
	r.t.Helper()
	if gotStatus, got := r.ask(model); gotStatus != status || got != story {
		r.t.Errorf("got %d %q\nwant %d %q", gotStatus, got, status, story)
	}
}

func TestKunavo(t *testing.T) {
	t.Parallel()
	const model = "gpt-4o-2024-08-06"
	t.Run("cheapest first, three hops", func(t *testing.T) {
		t.Parallel()
		r := example(t, "kunavo", "a", "b", "c")
		r.want(model, 200, "a: success")
		r.script("a", "status=503")
		r.script("b", "status=502")
		r.want(model, 200, "a provider_transient/overloaded before_output fallback; b provider_transient/server_error before_output fallback; c: success")
	})
	t.Run("a caller's mistake never fails over", func(t *testing.T) {
		t.Parallel()
		r := example(t, "kunavo", "a", "b", "c")
		r.script("a", "status=400, status=404, status=402")
		for _, status := range []int{400, 404, 402} {
			got, story := r.ask(model)
			if got != status || !strings.HasSuffix(story, "abort: policy_stop") {
				t.Errorf("status %d: got %d %q", status, got, story)
			}
		}
		if calls := r.calls(); calls != "a=3 b=0 c=0" {
			t.Errorf("the upstreams were called %s", calls)
		}
	})
	t.Run("three failures in five minutes open for a minute", func(t *testing.T) {
		t.Parallel()
		r := example(t, "kunavo", "a", "b", "c")
		r.script("a", "status=500 times=3, ok")
		const failing = "a provider_transient/server_error before_output fallback; b: success"
		for range 3 {
			r.want(model, 200, failing)
			r.clock.forward(time.Minute)
		}
		r.clock.forward(-time.Minute)
		r.want(model, 200, "b: success")
		r.clock.forward(61 * time.Second)
		r.want(model, 200, "a: success")
	})
}

func TestStudyhub(t *testing.T) {
	t.Parallel()
	model, channels := exampleModel(t, "studyhub")
	first, second := channels[0], channels[1]
	f := func(t *testing.T, fault string, wantFirst, wantSecond int, again string, check func(*testing.T, *engine.Record)) {
		t.Helper()
		r := example(t, "studyhub", channels...)
		r.script(first, fault+", ok")
		got := post(t, r.base+"/v1/chat/completions", chat(model, false))
		check(t, r.record(got.header.Get("X-Request-Id")))
		if a, b := r.sim.Count(first), r.sim.Count(second); a != wantFirst || b != wantSecond {
			t.Errorf("%s was called %d times and %s %d, want %d and %d", first, a, second, b, wantFirst, wantSecond)
		}
		got = post(t, r.base+"/v1/chat/completions", chat(model, false))
		if rec := r.record(got.header.Get("X-Request-Id")); rec.Attempts()[0].Channel() != again {
			t.Errorf("the next request began on %s, want %s", rec.Attempts()[0].Channel(), again)
		}
	}
	t.Run("KEY_FAULT rotates the key and stays with the provider", func(t *testing.T) {
		t.Parallel()
		f(t, "status=401", 2, 0, first, func(t *testing.T, rec *engine.Record) {
			a := rec.Attempts()
			if len(a) != 2 || a[0].Key() == a[1].Key() || a[0].Provider() != a[1].Provider() || rec.Terminal() != engine.TerminalSuccess {
				t.Errorf("got %s", rec.AppendJSON(nil))
			}
		})
	})
	t.Run("PROVIDER_TRANSIENT changes the provider and leaves the key alone", func(t *testing.T) {
		t.Parallel()
		f(t, "status=503", 1, 1, first, func(t *testing.T, rec *engine.Record) {
			a := rec.Attempts()
			if len(a) != 2 || a[0].Provider() == a[1].Provider() || rec.Terminal() != engine.TerminalSuccess {
				t.Errorf("got %s", rec.AppendJSON(nil))
			}
		})
	})
	t.Run("BAD_MODEL evicts the model from the channel", func(t *testing.T) {
		t.Parallel()
		f(t, "status=404", 1, 1, second, func(t *testing.T, rec *engine.Record) {
			if rec.Terminal() != engine.TerminalSuccess || len(rec.Attempts()) != 2 {
				t.Errorf("got %s", rec.AppendJSON(nil))
			}
		})
	})
	t.Run("NON_RETRYABLE stops", func(t *testing.T) {
		t.Parallel()
		f(t, "status=400", 1, 0, first, func(t *testing.T, rec *engine.Record) {
			if rec.Terminal() != engine.TerminalPolicyStop || rec.Status() != 400 {
				t.Errorf("got %s", rec.AppendJSON(nil))
			}
		})
	})
}

// exampleModel reads the first model of an example and the channels that serve it.
func exampleModel(t *testing.T, name string) (model string, channels []string) {
	t.Helper()
	var out bytes.Buffer
	e := &env{stdout: &out, stderr: &out, lookup: func(string) (string, bool) { return "", false }, now: time.Now}
	l, _, diags := newCompiler(openHost(t)).load(t.Context(), filepath.Join("..", "..", "testdata", "examples", name+".hcl"), e)
	if l == nil {
		t.Fatal(diags)
	}
	g := l.config.Catalog.Groups()[0]
	for _, ch := range g.Channels() {
		channels = append(channels, ch.Name())
	}
	return g.Models()[0], channels
}

// TestModelflare takes the failure matrix row by row over the default policy.
func TestModelflare(t *testing.T) {
	t.Parallel()
	model, channels := exampleModel(t, "modelflare")
	first, second := channels[0], channels[1]
	for _, c := range []struct {
		row, fault    string
		status        int
		first, second int
		terminal      engine.Terminal
	}{
		{"caller's validation error", "status=400", 400, 1, 0, engine.TerminalPolicyStop},
		{"upstream credential", "status=401", 200, 1, 1, engine.TerminalSuccess},
		{"upstream account", "status=402", 200, 1, 1, engine.TerminalSuccess},
		{"network failure before output", "reset before-headers", 200, 1, 1, engine.TerminalSuccess},
		{"408 before output", "status=408", 200, 1, 1, engine.TerminalSuccess},
		{"429 before output", "status=429 retry-after=3", 200, 1, 1, engine.TerminalSuccess},
		{"500", "status=500", 200, 1, 1, engine.TerminalSuccess},
		{"502", "status=502", 200, 1, 1, engine.TerminalSuccess},
		{"503", "status=503", 200, 1, 1, engine.TerminalSuccess},
		{"504", "status=504", 200, 1, 1, engine.TerminalSuccess},
		{"529", "status=529", 200, 1, 1, engine.TerminalSuccess},
		{"model missing on this channel", "status=404", 200, 1, 1, engine.TerminalSuccess},
		{"schema-invalid answer", "html", 200, 1, 1, engine.TerminalSuccess},
		{"contract violation", "model=another", 200, 1, 1, engine.TerminalSuccess},
		{"refusal", "refusal", 200, 1, 0, engine.TerminalSuccess},
		{"filtered completion", "content-filter", 200, 1, 0, engine.TerminalSuccess},
		{"unknown failure", "body=\"{}\" status=418", 418, 1, 0, engine.TerminalPolicyStop},
	} {
		t.Run(c.row, func(t *testing.T) {
			t.Parallel()
			r := example(t, "modelflare", channels...)
			r.script(first, c.fault)
			got := post(t, r.base+"/v1/chat/completions", chat(model, false))
			rec := r.record(got.header.Get("X-Request-Id"))
			if got.status != c.status || rec.Terminal() != c.terminal || r.sim.Count(first) != c.first || r.sim.Count(second) != c.second {
				t.Errorf("got %d after %s; the ledger: %s", got.status, r.calls(), rec.AppendJSON(nil))
			}
		})
	}
	t.Run("anything after output", func(t *testing.T) {
		t.Parallel()
		r := example(t, "modelflare", channels...)
		r.script(first, "cut after=2")
		got := post(t, r.base+"/v1/chat/completions", chat(model, true))
		if rec := r.record(got.header.Get("X-Request-Id")); rec.Terminal() != engine.TerminalPartial || r.sim.Count(second) != 0 {
			t.Errorf("got %s after %s", rec.AppendJSON(nil), r.calls())
		}
	})
}

func TestCCRelay(t *testing.T) {
	t.Parallel()
	const model = "claude-sonnet-4-20250514"
	r := example(t, "ccrelay", "a", "b", "c")
	served := func() string {
		t.Helper()
		got := post(t, r.base+"/v1/messages", messages(model, false))
		if got.status != 200 || got.header.Get("X-Fourgate-Strategy") != "failover" {
			t.Errorf("got %d with strategy %q: %s", got.status, got.header.Get("X-Fourgate-Strategy"), got.body)
		}
		return got.header.Get("X-Fourgate-Channel") + got.header.Get("X-Fourgate-Attempts")
	}
	f := func(want ...string) {
		t.Helper()
		for i, w := range want {
			if got := served(); got != w {
				t.Errorf("answer %d came from channel and attempt %s, want %s", i+1, got, w)
			}
		}
	}
	// Five failures in a row open it; a good answer between them begins the row anew.
	r.script("a", "status=529 times=4, ok, status=529 times=5, ok")
	f("b2", "b2", "b2", "b2", "a1", "b2", "b2", "b2", "b2", "b2", "b1", "b1")
	// After 30 s three probes must end well; the first that fails opens it again.
	r.clock.forward(31 * time.Second)
	r.script("a", "status=529, ok")
	f("b2", "b1")
	r.clock.forward(31 * time.Second)
	f("a1", "a1", "a1", "a1")
}

// TestExamplesAreFormatted keeps the examples in the shape that fmt gives them.
func TestExamplesAreFormatted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/examples/*.hcl")
	if err != nil || len(files) != 4 {
		t.Fatalf("found %v, %v", files, err)
	}
	var out bytes.Buffer
	e := &env{args: append([]string{"fmt", "-check"}, files...), stdout: &out, stderr: &out}
	if code := run(context.Background(), e); code != exitOK {
		t.Errorf("exit code %d: %s", code, &out)
	}
}
