package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

const cookbook = "../../testdata/cookbook"

// gpt4o is the model of the cookbook's recipes.
const gpt4o = "gpt-4o-2024-08-06"

// recipe serves a recipe of docs/policy-cookbook.md over simulated channels.
func recipe(t *testing.T, name string, channels ...string) *rig {
	t.Helper()
	return newRig(t, filepath.Join(cookbook, name, "fourgate.hcl"), "COOKBOOK_", channels...)
}

// wish asks as a caller, or as nobody, and wants an answer and the attempts that led to it:
// the channels in order, with what was decided about each that failed.
func (r *rig) wish(caller, body string, status int, want string) *engine.Record {
	r.t.Helper()
	path := "/v1/chat/completions"
	if strings.Contains(body, `"max_tokens"`) {
		path = "/v1/messages"
	}
	var header []string
	if caller != "" {
		header = []string{"Authorization", "Bearer key-of-" + caller}
	}
	got := post(r.t, r.base+path, body, header...)
	rec := r.record(got.header.Get("X-Request-Id"))
	var steps []string
	for _, a := range rec.Attempts() {
		step := a.Channel()
		if d, ok := a.Decision(); ok {
			step += " " + d.Action().String() + " " + d.Reason().String()
		}
		steps = append(steps, step)
	}
	if story := strings.Join(steps, ", "); got.status != status || story != want {
		r.t.Errorf("got %d after %q, want %d after %q; the answer: %s", got.status, story, status, want, got.body)
	}
	return rec
}

// withTool puts a tool into a chat request.
func withTool(body string) string {
	return strings.Replace(body, "{", `{"tools":[{"type":"function","function":{"name":"pay","parameters":{"type":"object"}}}],`, 1)
}

// reset is a failure of which nobody knows whether the provider had begun, refused is one
// that certainly hadn't.
const (
	reset   = "reset before-headers"
	refused = "status=503"
)

// TestCookbook wants each recipe's wish to come true for those who call.
func TestCookbook(t *testing.T) {
	t.Parallel()
	say := chat(gpt4o, false)
	for name, f := range map[string]func(*testing.T){
		"payments": func(t *testing.T) {
			r := recipe(t, "payments", "a", "b")
			r.script("a", reset)
			r.wish("payments", withTool(say), 502, "a abort payment_may_have_begun")
			r.wish("payments", say, 200, "a fallback network, b")
			r.wish("search", withTool(say), 200, "a fallback network, b")
			r.clock.forward(10 * time.Minute) // until the breaker has forgotten
			r.script("a", refused)
			r.wish("payments", withTool(say), 200, "a fallback overloaded, b")
		},
		"region": func(t *testing.T) {
			r := recipe(t, "region", "a", "b")
			r.wish("clinic", say, 200, "b")
			r.wish("search", say, 200, "a")
			r.script("b", "status=404")
			r.wish("clinic", say, 503, "b abort no_route_left")
			rec := r.wish("clinic", say, 503, "") // b goes without the model now, and a is in another region
			if rec.Terminal() != engine.TerminalPolicyStop {
				t.Errorf("the request ended as %s", rec.Terminal())
			}
			if calls := r.calls(); calls != "a=1 b=2" {
				t.Errorf("the upstreams were called %s", calls)
			}
		},
		"night": func(t *testing.T) {
			r := recipe(t, "night", "a", "b")
			r.forwardTo("Europe/Berlin", 12)
			r.wish("", say, 200, "a")
			r.forwardTo("Europe/Berlin", 23)
			r.wish("", say, 200, "b")
			r.forwardTo("Europe/Berlin", 5)
			r.wish("", say, 200, "b")
			r.forwardTo("Europe/Berlin", 6)
			r.wish("", say, 200, "a")
		},
		"batch": func(t *testing.T) {
			r := recipe(t, "batch", "a", "b")
			r.script("a", refused)
			r.wish("batch", say, 503, "a abort batch_comes_again")
			r.wish("web", say, 200, "a fallback overloaded, b")
		},
		"premium": func(t *testing.T) {
			r := recipe(t, "premium", "a", "b", "c")
			r.script("a", refused)
			r.script("b", refused)
			r.wish("gold", say, 200, "a fallback overloaded, b fallback overloaded, c")
			rec := r.wish("web", say, 503, "a fallback overloaded, b abort attempts_spent")
			if rec.Terminal() != engine.TerminalExhausted {
				t.Errorf("the request ended as %s", rec.Terminal())
			}
		},
		"cache": func(t *testing.T) {
			r := recipe(t, "cache", "a", "b")
			r.script("a", refused+", ok, "+refused+" times=2, ok")
			code := messages("claude-sonnet-4-20250514", false)
			r.wish("", code, 200, "a retry keeps_prompt_cache, a")
			r.wish("", code, 200, "a retry keeps_prompt_cache, a fallback overloaded, b")
			r = recipe(t, "cache", "a", "b")
			r.script("a", refused)
			r.wish("", say, 200, "a fallback overloaded, b")
		},
		"quota": func(t *testing.T) {
			r := recipe(t, "quota", "a", "b")
			r.script("a", "status=429 retry-after-ms=20, ok, status=429 retry-after=3600, status=429 retry-after=3600, ok")
			r.wish("search", say, 200, "a retry waits_for_quota, a")
			r.wish("search", say, 429, "a abort waits_for_quota")
			r.wish("web", say, 200, "a fallback requests, b")
		},
		"outage": func(t *testing.T) {
			r := recipe(t, "outage", "a", "b", "c")
			r.script("a", refused)
			r.wish("", say, 200, "a fallback overloaded, b")
			r.script("b", refused)
			r.wish("", say, 503, "a fallback overloaded, b abort outage")
			got := post(t, r.base+"/v1/chat/completions", chat(gpt4o, true), "X-Stainless-Retry-Count", "1")
			if rec := r.record(got.header.Get("X-Request-Id")); len(rec.Attempts()) != 1 || got.status != 503 {
				t.Errorf("what came again got %d after %d attempts", got.status, len(rec.Attempts()))
			}
			// The breaker of a is open by now, and one of the three tokens is left.
			r.wish("", strings.Replace(say, "hello", "good day", 1), 200, "b fallback overloaded, c")
			r.wish("", strings.Replace(say, "hello", "good night", 1), 503, "b abort retry_budget_spent")
		},
		"quarantine": func(t *testing.T) {
			r := recipe(t, "quarantine", "a", "b")
			r.script("a", "model=gpt-3.5-turbo, ok")
			r.wish("", say, 200, "a fallback another_model, b")
			r.wish("", say, 200, "b")
			r.clock.forward(time.Hour + time.Minute)
			r.wish("", say, 200, "a")
		},
		"status": func(t *testing.T) {
			r := recipe(t, "status", "a", "b")
			r.script("a", "status=420 body=oops, status=421 body=oops")
			r.wish("", say, 200, "a fallback provider_busy, b")
			r.wish("", say, 421, "a abort unrecognized")
		},
		"streams": func(t *testing.T) {
			r := recipe(t, "streams", "a", "b")
			r.wish("", say, 200, "a")
			r.wish("", chat(gpt4o, true), 200, "b")
			r.script("b", refused)
			r.wish("", chat(gpt4o, true), 200, "b fallback overloaded, a")
		},
		"groups": func(t *testing.T) {
			r := recipe(t, "groups", "a", "b")
			r.script("a", reset)
			r.wish("", say, 200, "a fallback network, b")
			r.wish("", chat("gpt-4.1-2025-04-14", false), 502, "a abort strict_group")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t)
		})
	}
}

// forwardTo puts the proxy's clock forward to the next such hour in a time zone.
func (r *rig) forwardTo(zone string, hour int) {
	r.t.Helper()
	place, err := time.LoadLocation(zone)
	if err != nil {
		r.t.Fatal(err)
	}
	now := r.clock.now().In(place)
	then := time.Date(now.Year(), now.Month(), now.Day(), hour, 1, 0, 0, place)
	if then.Before(now) {
		then = then.AddDate(0, 0, 1)
	}
	r.clock.forward(then.Sub(now))
}

// recipes are the names of all recipes.
func recipes(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(cookbook)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if len(names) < 10 {
		t.Fatalf("there are only %d recipes", len(names))
	}
	return names
}

// runOnce runs the program to its end and returns its exit code and all that it printed.
func runOnce(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	e := &env{args: args, stdin: strings.NewReader(""), stdout: &out, stderr: &out, now: time.Now,
		lookup: func(string) (string, bool) { return "", false }}
	return run(context.Background(), e), out.String()
}

// TestRecipesAreSound does with each recipe what its reader would do before using it.
func TestRecipesAreSound(t *testing.T) {
	t.Parallel()
	for _, name := range recipes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(cookbook, name)
			for _, args := range [][]string{
				{"policy", "test", "-threshold", "100", dir},
				{"policy", "test", "-with-defaults=false", dir},
				{"policy", "check", dir},
				{"fmt", "-check", filepath.Join(dir, "fourgate.hcl")},
				{"validate", "-c", filepath.Join(dir, "fourgate.hcl")},
			} {
				code, out := runOnce(t, args...)
				if code != exitOK || strings.Contains(out, "arning") {
					t.Errorf("fourgate %s ends with %d: %s", strings.Join(args, " "), code, out)
				}
			}
		})
	}
}

// TestCookbookShowsItsFiles holds the manual to the files: each recipe's policy as it is,
// and a part of its configuration.
func TestCookbookShowsItsFiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/policy-cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ") {
		_, rest, _ := strings.Cut(section, "](../testdata/cookbook/")
		name, _, _ := strings.Cut(rest, ")")
		sections[name] = section
	}
	names := recipes(t)
	for _, name := range names {
		read := func(file string) string {
			text, err := os.ReadFile(filepath.Join(cookbook, name, file))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		section := sections[name]
		if section == "" {
			t.Errorf("docs/policy-cookbook.md has no section that links to testdata/cookbook/%s", name)
			continue
		}
		if want := "```rego\n" + read("policy.rego") + "```\n"; !strings.Contains(section, want) {
			t.Errorf("docs/policy-cookbook.md doesn't show %s/policy.rego as it is", name)
		}
		config := read("fourgate.hcl")
		for i, block := range strings.Split(section, "```hcl\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			block = strings.ReplaceAll(block, "  # …\n", "\n\n") // which stands for what was left out
			for part := range strings.SplitSeq(block, "\n\n") {
				if !strings.Contains(config, part) {
					t.Errorf("docs/policy-cookbook.md: block %d of %s isn't in its fourgate.hcl:\n%s", i+1, name, part)
				}
			}
		}
	}
	if len(sections) != len(names)+1 { // with what stands before the first
		t.Errorf("docs/policy-cookbook.md has sections for %v, there are recipes %v", slices.Sorted(maps.Keys(sections)), names)
	}
}
