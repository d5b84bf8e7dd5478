package policies

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// changesText is one line for each change, for reading and comparing.
func changesText(x Explanation) []string {
	var lines []string
	for _, c := range x.Changes {
		line := fmt.Sprintf("%s %v -> %v", c.Path, c.From, c.To)
		for _, w := range c.With {
			line += fmt.Sprintf(", %s %v", w.Path, w.Value)
		}
		lines = append(lines, fmt.Sprintf("%s: %v %v", line, c.Decision.Action, c.Decision.Reason))
	}
	return lines
}

func TestExplainTheDefaultPolicy(t *testing.T) {
	t.Parallel()
	x := load(t, Options{}).Explain(t.Context(), failed(t))
	if x.Decision.Action != engine.Fallback {
		t.Fatalf("got %+v", x.Decision)
	}
	if !strings.HasPrefix(x.Rule.Place, "builtin:decision.rego:") || x.Rule.Title != "The answer to the engine's question" ||
		x.Rule.Text != "else := _answer(\"fallback\", input.failure.reason) if {\n\tattempt_budget.fallback_left\n}" {
		t.Errorf("rule: %+v", x.Rule)
	}
	for _, g := range x.Gates {
		if g.Mark != engine.GatePass || !strings.HasPrefix(g.Rule, "builtin:gates/"+g.Name+".rego:") {
			t.Errorf("gate: %+v", g)
		}
	}
	got := strings.Join(changesText(x), "\n")
	for _, want := range []string{
		"request.idempotency.effects none -> unknown: abort effects_unknown",
		"failure.class provider_transient -> bad_request: abort",
		"phase before_output -> after_output, failure.class partial, failure.scope none, failure.completion partial: abort output_started",
		"budget.attempts_left 2 -> 0, routes.same false, routes.fallback []: abort attempts_spent",
		"budget.time true -> false, routes.same false: abort deadline",
		"routes.fallback [azure-east] -> []: retry overloaded",
		"failure.class provider_transient -> rate_limited: fallback overloaded", // with another effect
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no change %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "partial: fallback") || strings.Contains(got, "class provider_transient -> partial") {
		t.Errorf("a question that is never asked:\n%s", got)
	}
	if first := x.Changes[0].Decision.Action; first == engine.Fallback {
		t.Error("changes of effects come before those of the action")
	}
	idle, unread := strings.Join(x.Idle, " "), strings.Join(x.Unread, " ")
	if !strings.Contains(idle, "routes.same") || !strings.Contains(unread, "request.caller") {
		t.Errorf("idle %s, unread %s", idle, unread)
	}
}

// The values that are tried come from the policy itself.
func TestExplainFindsThePolicysOwnBoundaries(t *testing.T) {
	t.Parallel()
	f := func(text string, change func(*engine.Question), want ...string) {
		t.Helper()
		set := load(t, Options{Params: map[string]any{"slow": 7000}}, "package fourgate\n\n"+text)
		q := failed(t)
		change(&q)
		got := changesText(set.Explain(t.Context(), q))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", text, diff)
		}
	}
	const otherwise = ` else := {"action": "abort", "reason": "no"}`
	const yes = `decision := {"action": "fallback", "reason": "yes"} if `
	as := func(*engine.Question) {}
	f(yes+`input.budget.remaining_ms > 30000`+otherwise, as, "budget.remaining_ms 59188 -> 30000: abort no")
	f(yes+`input.budget.elapsed_ms > data.params.slow`+otherwise, as, "budget.elapsed_ms 812 -> 7001: fallback yes")
	f(yes+`input.request.caller in {"ann", "bob"}`+otherwise, as,
		"request.caller team-a -> ann: fallback yes", "request.caller team-a -> bob: fallback yes")
	f(yes+`input.request.caller == "team-a"`+otherwise, as, "request.caller team-a -> another: abort no")
	f(yes+`not is_null(input.request.idempotency.key)`+otherwise, func(q *engine.Question) { q.Idempotency.Key = "k" },
		"request.idempotency.key k -> <nil>: abort no")
	f(yes+`is_null(input.failure.retry_after_ms)`+otherwise, as, "failure.retry_after_ms <nil> -> 0: abort no")
	f(yes+`input.failure.status in {400, 404, 503}`+otherwise, as, "failure.status 503 -> 599: abort no")
	f(yes+`not input.failure.status in {400, 404}`+otherwise, as, "failure.status 503 -> 400: abort no", "failure.status 503 -> 404: abort no")
	f(yes+`input.failure.family == "KEY_FAULT"`+otherwise, as,
		"failure.class provider_transient -> key_fault: fallback yes", "failure.class provider_transient -> rate_limited: fallback yes")
	// Null is less than any number, and no delay: the policy would be at fault.
	f(`decision := {"action": "retry", "reason": "r", "delay_ms": input.failure.retry_after_ms} if {
	input.failure.retry_after_ms < 5000
}`+otherwise, func(q *engine.Question) {
		changeFailure(q, func(p *failureParts) { p.wait = engine.WaitOf(2 * time.Second) })
	}, "failure.retry_after_ms 2000 -> <nil>: abort ", "failure.retry_after_ms 2000 -> 5000: abort no", "failure.retry_after_ms 2000 -> 1999: retry r")
	f(yes+`"azure-west" in input.routes.fallback`+otherwise, as, "routes.fallback [azure-east] -> [azure-east azure-west]: fallback yes")
	f(yes+`input.clock.hour >= 22`+otherwise, func(q *engine.Question) { q.Now = time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC) },
		"clock.hour 20 -> 22: fallback yes")
	f(yes+`input.clock.weekday == "sunday"`+otherwise, func(q *engine.Question) { q.Now = time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC) },
		"clock.weekday monday -> sunday: fallback yes")
	f(`decision := {"action": "abort", "reason": "never"}`, as)
}

func TestExplainOnThePolicysClock(t *testing.T) {
	t.Parallel()
	berlin := time.FixedZone("CET", 3600)
	set := load(t, Options{Location: berlin}, "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": sprintf(\"h%d\", [input.clock.hour])}")
	q := failed(t)
	q.Now = time.Date(2026, 11, 30, 23, 30, 0, 0, time.UTC)
	x := set.Explain(t.Context(), q)
	if x.Decision.Reason.String() != "h0" || !strings.Contains(string(AppendQuestion(nil, &x.Question)), `"date":"2026-12-01","weekday":"tuesday","hour":0,"minute":30`) {
		t.Errorf("reason %v, question %s", x.Decision.Reason, AppendQuestion(nil, &x.Question))
	}
}

// A policy without marks, one that makes them itself, and one that gives no answer are
// explained, too.
func TestExplainOddPolicies(t *testing.T) {
	t.Parallel()
	f := func(text string, check func(Explanation) bool) {
		t.Helper()
		if x := load(t, Options{}, "package fourgate\n\n"+text).Explain(t.Context(), failed(t)); !check(x) {
			t.Errorf("%s: got %+v", text, x)
		}
	}
	f(`decision := {"action": "abort", "reason": "r"}`, func(x Explanation) bool {
		return x.Gates[0].Mark == engine.GateSilent && x.Gates[0].Rule == "" && strings.HasSuffix(x.Rule.Place, ":3") && len(x.Unread) > 30
	})
	f(`decision := {"action": "abort", "reason": "r", "gates": {"idempotency": "stop"}}`, func(x Explanation) bool {
		return x.Gates[2].Mark == engine.GateStop && x.Gates[2].Rule == ""
	})
	f(`decision := {"action": "abort", "reason": "r"} if input.phase == "after_output"`, func(x Explanation) bool {
		return x.Decision.Fault == faultUndefined && x.Rule == RuleSource{} && len(x.Changes) == 1 && x.Changes[0].To == "after_output"
	})
	f("default decision := {\"action\": \"abort\", \"reason\": \"r\"}", func(x Explanation) bool {
		return strings.HasPrefix(x.Rule.Text, `default decision := {"action"`)
	})
}

func BenchmarkExplain(b *testing.B) {
	set := load(b, Options{Memory: -1})
	q := failed(b)
	for b.Loop() {
		set.Explain(b.Context(), q)
	}
}
