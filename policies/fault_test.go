package policies

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// answering is a policy whose answer is this Rego value.
func answering(value string) string {
	return "package fourgate\n\ndecision := " + value + "\n"
}

func TestFaults(t *testing.T) {
	t.Parallel()
	f := func(name, text, fault string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := failed(t)
			got := load(t, Options{}, text).Decide(&q)
			if got.Action != engine.Abort || got.Fault != fault {
				t.Errorf("got action %v with fault %q, want abort with %q", got.Action, got.Fault, fault)
			}
		})
	}
	f("undefined", "package fourgate\n\ndecision := {\"action\": \"retry\", \"reason\": \"r\"} if input.failure.status == 1\n", "undefined")
	f("two answers", `package fourgate
decision := {"action": "abort", "reason": "a"} if input.failure.status > 1
decision := {"action": "abort", "reason": "b"} if input.failure.status > 2
`, "conflict")
	f("two answers beside a default", `package fourgate
default decision := {"action": "abort", "reason": "d"}
decision := {"action": "abort", "reason": "a"} if input.failure.status > 1
decision := {"action": "abort", "reason": "b"} if input.failure.status > 2
`, "conflict")
	f("division by zero", `package fourgate
decision := {"action": "retry", "reason": "r", "delay_ms": 1 / (input.failure.status - 503)}
`, "error")

	for name, value := range map[string]string{
		"text":                  `"retry"`,
		"number":                `1`,
		"list":                  `[]`,
		"nothing":               `{}`,
		"no reason":             `{"action": "retry"}`,
		"no action":             `{"reason": "r"}`,
		"unknown action":        `{"action": "replay", "reason": "r"}`,
		"action of wrong type":  `{"action": 1, "reason": "r"}`,
		"unknown name":          `{"action": "retry", "reason": "r", "delay": 5}`,
		"name that is a number": `{"action": "retry", "reason": "r", 5: 5}`,
		"reason with spaces":    `{"action": "retry", "reason": "because of that"}`,
		"empty reason":          `{"action": "retry", "reason": ""}`,
		"long reason":           fmt.Sprintf(`{"action": "retry", "reason": %q}`, strings.Repeat("a", 65)),
		"negative delay":        `{"action": "retry", "reason": "r", "delay_ms": -1}`,
		"fraction of a delay":   `{"action": "retry", "reason": "r", "delay_ms": 1.5}`,
		"delay without end":     `{"action": "retry", "reason": "r", "delay_ms": 1e300}`,
		"delay that overflows":  `{"action": "retry", "reason": "r", "delay_ms": 9223372036854775807}`,
		"delay as a text":       `{"action": "retry", "reason": "r", "delay_ms": "5"}`,
		"delay of null":         `{"action": "retry", "reason": "r", "delay_ms": null}`,
		"channel on a retry":    `{"action": "retry", "reason": "r", "channel": "b"}`,
		"empty channel":         `{"action": "fallback", "reason": "r", "channel": ""}`,
		"effects of wrong type": `{"action": "retry", "reason": "r", "effects": {"kind": "count_failure"}}`,
		"effect of wrong type":  `{"action": "retry", "reason": "r", "effects": ["count_failure"]}`,
		"unknown effect":        `{"action": "retry", "reason": "r", "effects": [{"kind": "delete_key", "for_ms": 1}]}`,
		"effect without kind":   `{"action": "retry", "reason": "r", "effects": [{"for_ms": 1}]}`,
		"cooling without time":  `{"action": "retry", "reason": "r", "effects": [{"kind": "cool_key"}]}`,
		"cooling after repeats": `{"action": "retry", "reason": "r", "effects": [{"kind": "cool_key", "for_ms": 1, "after": 2}]}`,
		"count for a time":      `{"action": "retry", "reason": "r", "effects": [{"kind": "count_failure", "for_ms": 1}]}`,
		"negative cooling":      `{"action": "retry", "reason": "r", "effects": [{"kind": "cool_key", "for_ms": -1}]}`,
		"negative repeats":      `{"action": "retry", "reason": "r", "effects": [{"kind": "quarantine_channel", "for_ms": 1, "after": -1}]}`,
		"effect's unknown name": `{"action": "retry", "reason": "r", "effects": [{"kind": "cool_key", "for_ms": 1, "key": "main"}]}`,
		"too many effects":      `{"action": "retry", "reason": "r", "effects": [{"kind": "cool_key", "for_ms": n} | some n in [1, 2, 3, 4, 5, 6, 7, 8, 9]]}`,
		"unknown gate":          `{"action": "retry", "reason": "r", "gates": {"quota": "pass"}}`,
		"unknown mark":          `{"action": "retry", "reason": "r", "gates": {"idempotency": "maybe"}}`,
		"gates of wrong type":   `{"action": "retry", "reason": "r", "gates": "pass"}`,
	} {
		f(name, answering(value), "mistyped")
	}
}

// A policy that would run for minutes is cut short; what it cost is no more than its
// time limit, or the test would not end.
func TestSlowPolicyTimesOut(t *testing.T) {
	t.Parallel()
	const slow = `package fourgate
digits := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
decision := {"action": "retry", "reason": "r"} if {
	some a in digits
	some b in digits
	some c in digits
	some d in digits
	some e in digits
	some f in digits
	some g in digits
	some h in digits
	((((((a + b) + c) + d) + e) + f) + g) + h == input.failure.status + 1000
}
`
	q := failed(t)
	got := load(t, Options{Timeout: 5 * time.Millisecond}, slow).Decide(&q)
	if got.Action != engine.Abort || got.Fault != "timeout" {
		t.Errorf("got action %v with fault %q, want abort with timeout", got.Action, got.Fault)
	}
}

// Whatever breaks inside stays inside: here a set that was never loaded.
func TestPanicIsAFault(t *testing.T) {
	t.Parallel()
	q := failed(t)
	got := new(Set).Decide(&q)
	if got.Action != engine.Abort || got.Fault != "error" {
		t.Errorf("got action %v with fault %q, want abort with error", got.Action, got.Fault)
	}
}

// A fault is asked again: the answer may be there the next time.
func TestFaultsAreNotRemembered(t *testing.T) {
	t.Parallel()
	q := failed(t)
	set := load(t, Options{}, answering(`"retry"`))
	set.Decide(&q)
	if n := len(set.decisions.answers); n != 0 {
		t.Errorf("%d answers are remembered, want none", n)
	}
}

func TestFaultNamesTheRule(t *testing.T) {
	t.Parallel()
	q := failed(t)
	got := load(t, Options{}, answering(`"retry"`)).Decide(&q)
	if !strings.HasSuffix(got.Rule, "p.rego:3") {
		t.Errorf("rule is %q, want line 3 of p.rego", got.Rule)
	}
}

func TestAnswersThatAreFine(t *testing.T) {
	t.Parallel()
	f := func(name, value string, want engine.Decision) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := failed(t)
			got := load(t, Options{}, answering(value)).Decide(&q)
			want.Rule = got.Rule
			if diff := diffDecisions(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	r := reasonOf(t, "r")
	f("least", `{"action": "abort", "reason": "r"}`, engine.Decision{Reason: r})
	f("delay of nothing", `{"action": "retry", "reason": "r", "delay_ms": 0}`,
		engine.Decision{Action: engine.Retry, Reason: r, Delay: engine.WaitOf(0)})
	f("delay", `{"action": "retry", "reason": "r", "delay_ms": 1.5e3}`,
		engine.Decision{Action: engine.Retry, Reason: r, Delay: engine.WaitOf(1500 * time.Millisecond)})
	f("channel", `{"action": "fallback", "reason": "r", "channel": "b"}`,
		engine.Decision{Action: engine.Fallback, Reason: r, Channel: "b"})
	f("set of effects", `{"action": "substitute", "reason": "r", "effects": {{"kind": "count_failure"}}}`,
		engine.Decision{Action: engine.Substitute, Reason: r, Effects: []engine.Effect{{Kind: engine.EffectCountFailure}}})
	f("all effects", `{"action": "abort", "reason": "r", "effects": [
		{"kind": "count_failure"}, {"kind": "cool_key", "for_ms": 1},
		{"kind": "quarantine_channel", "for_ms": 2, "after": 3}, {"kind": "evict_model", "for_ms": 4}]}`,
		engine.Decision{Reason: r, Effects: []engine.Effect{
			{Kind: engine.EffectCountFailure},
			{Kind: engine.EffectCoolKey, For: time.Millisecond},
			{Kind: engine.EffectQuarantineChannel, For: 2 * time.Millisecond, After: 3},
			{Kind: engine.EffectEvictModel, For: 4 * time.Millisecond},
		}})
	f("some gates", `{"action": "abort", "reason": "r", "gates": {"idempotency": "stop", "attempt_budget": "pass"}}`,
		engine.Decision{Reason: r, Gates: engine.Gates{Idempotency: engine.GateStop, AttemptBudget: engine.GatePass}})
}

// A mistyped answer's message says what is wrong where, with the value, and what to write.
func TestMistypedSaysWhat(t *testing.T) {
	t.Parallel()
	f := func(rule, want string) {
		t.Helper()
		set := load(t, Options{}, "package fourgate\n\n"+rule+"\n")
		q := failed(t)
		fault, why := "", ""
		if set.HasRoute() {
			a := set.Route(&engine.RouteQuestion{})
			fault, why = a.Fault, a.Why
		} else {
			d := set.Decide(&q)
			fault, why = d.Fault, d.Why
		}
		if fault != "mistyped" || why != want {
			t.Errorf("%s\n got %s: %s\nwant %s", rule, fault, why, want)
		}
	}
	with := func(members string) string { return `decision := {"action": "retry", "reason": "r", ` + members + `}` }
	f(`decision := "retry"`, `wrong type: the text "retry"; write an object`)
	f(`decision := {"action": "retry"}`, `reason: missing member`)
	f(`decision := {"action": "retri", "reason": "r"}`, `action: unknown word "retri"; did you mean retry? The words are abort, retry, fallback, substitute`)
	f(`decision := {"action": 1, "reason": "r"}`, `action: wrong type: the number 1; write one of abort, retry, fallback, substitute`)
	f(`decision := {"action": "abort", "reason": "Too slow!"}`, `reason: unknown word "Too slow!"; write 1 to 64 lower-case letters, digits and underscores`)
	f(with(`"delay": 5`), `delay: unknown member: did you mean delay_ms? There are action, channel, reason, delay_ms, effects, gates`)
	f(with(`"delay_ms": "5"`), `delay_ms: wrong type: the text "5"; write a whole number of milliseconds, 0 or more`)
	f(with(`"delay_ms": 1.5`), `delay_ms: value out of range: the number 1.5; write a whole number of milliseconds, 0 or more`)
	f(with(`"channel": "b"`), `channel: member that doesn't belong here: only the action fallback has one`)
	f(with(`"effects": {"kind": "cool_key"}`), `effects: wrong type: an object; write a list or a set of effects`)
	f(with(`"effects": [{"kind": "cool_key"}]`), `effects: for_ms: missing member: cool_key has one, in milliseconds`)
	f(with(`"effects": [{"kind": "count_failure", "for_ms": 1}]`), `effects: for_ms: member that doesn't belong here: count_failure has none`)
	f(with(`"effects": [{"kind": "cool_key", "for_ms": 1, "after": 2}]`), `effects: after: member that doesn't belong here: only quarantine_channel has one`)
	f(with(`"gates": {"idempotency": "maybe"}`), `gates: idempotency: unknown word "maybe"; write one of pass, stop`)
	f(`decision := {"action": "`+strings.Repeat("x", 100)+`", "reason": "r"}`,
		`action: unknown word "`+strings.Repeat("x", maxQuoted)+`"…; write one of abort, retry, fallback, substitute`)
	f(`route := {"attempts": 0, "reason": "r"}`, `attempts: value out of range: the number 0; write a whole number, 1 or more`)
	f(`route := {"channels": {"a"}, "reason": "r"}`, `channels: wrong type: a set of 1; write a list of names of channels`)
	f(`route := {"channels": ["a", "a"], "reason": "r"}`, `channels: value that is there twice: "a"; write each channel once`)
	// A caller's key is in no message, and what is wrong still is.
	f(`decision := {"action": sprintf("re%v", [input.request.idempotency.key]), "reason": "r"}`,
		`unknown word (what else is known may show the caller's key, which the policy reads)`)
}

// What a caller puts into its Idempotency-Key is in no log, whatever a policy does with it.
func TestFaultsKeepTheCallersKey(t *testing.T) {
	t.Parallel()
	const key, answer = "sk-secret", `"action": "abort", "reason": "r"`
	f := func(rule, want string) {
		t.Helper()
		set := load(t, Options{}, "package fourgate\n"+rule)
		q := failed(t)
		q.Idempotency.Key = key
		d := set.Decide(&q)
		if set.HasRoute() {
			a := set.Route(&engine.RouteQuestion{Idempotency: q.Idempotency})
			d = engine.Decision{Fault: a.Fault, Why: a.Why}
		}
		if d.Fault == "" || strings.Contains(d.Why, key) || !strings.Contains(d.Why, want) {
			t.Errorf("%s: %s %q, want %q", rule, d.Fault, d.Why, want)
		}
	}
	f(`decision := {`+answer+`} if to_number(input.request.idempotency.key) > 1`, "p.rego:2: eval_builtin_error: to_number (")
	f(`decision := {`+answer+`} if semver.compare(input.request.idempotency.key, "1.0.0") > 0`, "eval_builtin_error: semver.compare (")
	f(`decision := {`+answer+`, input.request.idempotency.key: 1}`, "unknown member")
	f(`decision := {`+answer+`} if input.request.idempotency.key == ""`, "give it a default")
	f(`route := {"attempts": 1, "reason": "r"} if to_number(input.request.idempotency.key) > 1`, "eval_builtin_error: to_number (")
	f(`decision := {`+answer+`} if to_number(input.request.model) > 1`, "invalid syntax") // which is no secret
}
