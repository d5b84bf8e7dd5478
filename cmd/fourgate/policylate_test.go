package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// endless is a policy that takes longer than any limit.
const endless = `package fourgate

_digits := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

decision := {"action": "abort", "reason": "counted"} if {
	some a in _digits
	some b in _digits
	some c in _digits
	some d in _digits
	some e in _digits
	some f in _digits
	some g in _digits
	some h in _digits
	((((((a + b) + c) + d) + e) + f) + g) + h == input.failure.status + 1000
}
`

// soonLate is a configuration that gives a policy little time, so that tests end soon.
const soonLate = `
server { listen = "127.0.0.1:0" }
provider "p" {
  base_url = "https://p.example/v1"
  auth     = "none"
}
route_group "chat" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  channel "one" { provider = provider.p }
  channel "two" { provider = provider.p }
}
policy { timeout = "20ms" }
`

// A policy without an end isn't asked seven hundred times.
func TestAnEndlessPolicyIsNotAskedForLong(t *testing.T) {
	t.Parallel()
	name, config := writeFile(t, "endless.rego", endless), writeFile(t, "soon.hcl", soonLate)
	const stopped = "stopped after 3 questions without an answer in time"
	f := func(code int, cells int, want string, args ...string) {
		t.Helper()
		c := startAt(t, new(movable), nil, args...)
		got := <-c.done
		c.done <- got
		if got != code || !strings.Contains(c.stderr.String(), want) {
			t.Errorf("%v ended with %d, want %d:\n%s", args, got, code, c.stderr)
		}
		if cells == 0 {
			return
		}
		var form struct {
			Cells   []any
			Stopped string
		}
		if err := json.Unmarshal([]byte(c.stdout.String()), &form); err != nil {
			t.Errorf("%v: %v", args, err)
		} else if len(form.Cells) != cells || !strings.HasPrefix(form.Stopped, stopped) {
			t.Errorf("%v has %d cells, stopped: %q", args, len(form.Cells), form.Stopped)
		}
	}
	f(exitFailure, 3, stopped, "policy", "matrix", "-c", config, "-json", name)
	f(exitFailure, 0, stopped, "policy", "matrix", "-c", config, name)
	f(exitFailure, 3, stopped, "policy", "diff", "-c", config, "-json", "embedded", name)
	f(exitOK, 0, "The fault is timeout", "policy", "check", "-w", name)
}

// Late answers count in a row, or many of them at all.
func TestWhenAskingStops(t *testing.T) {
	t.Parallel()
	f := func(every, want int) {
		t.Helper()
		n := 0
		p := policyFunc(func(*engine.Question) engine.Decision {
			if n++; n%every == 0 {
				return engine.Decision{Fault: "timeout", Rule: "p.rego:3"}
			}
			return engine.Decision{Fault: "conflict"}
		})
		ctx, asker, end := withLimit(t.Context(), p, lateInRow)
		defer end()
		for range 1000 {
			asker.Decide(&engine.Question{})
		}
		if n != want || (ctx.Err() != nil) != (want < 1000) {
			t.Errorf("every %d. answer is late: %d were asked for, want %d; the context's error is %v", every, n, want, ctx.Err())
		}
	}
	f(1, 3)
	f(2, 40)
	f(100, 1000)
}

type policyFunc func(*engine.Question) engine.Decision

func (f policyFunc) Decide(q *engine.Question) engine.Decision { return f(q) }
