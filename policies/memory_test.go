package policies

import (
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fourgate-dev/fourgate/engine"
)

// everything is a policy that looks at the whole input.
const everything = `package fourgate
decision := {"action": "retry", "reason": "odd"} if {
	count(object.filter(input, ["attempt", "budget"])) == 2
	input.budget.elapsed_ms % 2 == 1
} else := {"action": "abort", "reason": "even"}
`

// sideways reads the input in ways that are easy to overlook: through a variable, in
// brackets, through an own function, and in a default's stead.
const sideways = `package fourgate

part := input.failure

name := "replay_safe"

first(x) := x[0]

decision := {"action": "fallback", "reason": part.reason, "channel": first(input.routes.fallback)} if {
	input.request.idempotency[name]
} else := {"action": "retry", "reason": "r", "delay_ms": {"g": 1, "h": 2}[input.attempt.group]} if {
	not input.budget.time
} else := {"action": "abort", "reason": word} if {
	some word in ["openai", "m"]
	word == input.request[["caller", "model"][input.request.sdk_retry]]
} else := {"action": "abort", "reason": "last"}
`

// The memory is no more than a shortcut: whatever is asked in whatever order, the
// answers are those of the policy itself.
func TestMemoryChangesNoAnswer(t *testing.T) {
	t.Parallel()
	f := func(name string, opts Options, texts ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts.Memory = 3 // so that answers are forgotten, too
			with := load(t, opts, texts...)
			opts.Memory = -1
			without := seeingAll(load(t, opts, texts...))
			rapid.Check(t, func(t *rapid.T) {
				for _, q := range rapid.SliceOfN(questions(), 1, 6).Draw(t, "questions") {
					want, got := without.Decide(&q), with.Decide(&q)
					// Each set has its own copy of the file.
					want.Rule, got.Rule = "", ""
					if diff := diffDecisions(want, got); diff != "" {
						t.Fatal(diff)
					}
					if again := with.Decide(&q); again.Reason != want.Reason || again.Action != want.Action {
						t.Fatalf("asked again: got %+v, want %+v", again, want)
					}
				}
			})
		})
	}
	f("default", Options{})
	f("default with params", Options{Params: map[string]any{
		"same_route_retry": "first", "never_fallback_status": []any{400, 404}, "pass_through_status": []any{402},
	}})
	f("everything", Options{}, everything)
	f("sideways", Options{}, sideways)
	for name, rules := range roundabout {
		f(name, Options{}, "package fourgate\n"+rules, "package acme\n\nwhy := input.failure.reason")
	}
}

// seeingAll is a set whose policy is given the whole input, whatever it was found to read.
func seeingAll(s *Set) *Set {
	p := *s.program
	p.decision.reads = readsOf(fields(), [][]string{nil})
	s.program = &p
	return s
}

// roundabout are ways to a fact that no reference names where it is used.
var roundabout = map[string]string{
	"a package by a variable": `name := "acme"
decision := {"action": "abort", "reason": data[name].why}`,
	"a rule by a variable": `decision := {"action": "abort", "reason": data.acme[x]} if some x in ["why"]`,
	"a walk over rules": `decision := {"action": "abort", "reason": y} if {
	some y
	walk(data.acme, [["why"], y])
}`,
	"a function in another's place": `f(_) := "x"
g(x) := input.failure.reason if x
decision := {"action": "abort", "reason": r} if r := f(true) with f as g`,
	"a function in a builtin's place": `h := lower("abc")
g(x) := input.failure.reason if x
decision := {"action": "abort", "reason": r} if r := h with lower as g`,
	"a fact in a rule's place": `base := "n"
decision := {"action": "abort", "reason": r} if r := base with data.fourgate.base as input.failure.reason`,
	"a fact in another's place": `part := input.failure.reason
decision := {"action": "abort", "reason": r} if r := part with input.failure.reason as input.request.caller`,
	"a part of the answer": `decision.action := "abort"
decision.reason := input.failure.reason`,
	"a rule's key": `names[input.failure.reason] := 1
decision := {"action": "abort", "reason": r} if some r, _ in names`,
	"a text":           `decision := {"action": "abort", "reason": $"{input.failure.reason}"}`,
	"a path in a list": `decision := {"action": "abort", "reason": object.get(input, ["failure", "reason"], "x")}`,
}

// questions draws from small sets, so that equal ones come up.
func questions() *rapid.Generator[engine.Question] {
	return rapid.Custom(func(t *rapid.T) engine.Question {
		b := func(name string) bool { return rapid.Bool().Draw(t, name) }
		n := func(name string, top int) int { return rapid.IntRange(0, top).Draw(t, name) }
		s := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
		reason, err := engine.ParseReason(s("reason", "network", "overloaded", "billing"))
		if err != nil {
			t.Fatal(err)
		}
		var wait engine.Wait
		if b("waits") {
			wait = engine.WaitOf(time.Duration(n("wait", 2)) * time.Hour)
		}
		channels := func(name string) []string {
			return [][]string{nil, {"b"}, {"b", "c"}, {"bc"}}[n(name, 3)]
		}
		return engine.Question{
			RequestID: s("id", "1", "2"), Caller: s("caller", "m", "n"),
			Contract: engine.Contract{Model: s("model", "m", "n"), Endpoint: engine.Endpoint(1 + n("endpoint", 1))},
			Stream:   b("stream"), Tools: b("tools"), SDKRetry: n("sdk_retry", 1),
			Idempotency: engine.Idempotency{Key: s("key", "", "k"), ReplaySafe: b("safe"), Effects: engine.Effects(n("effects", 3))},
			Seq:         1 + n("seq", 1), Group: s("group", "g", "h"), Channel: s("channel", "a", "b"),
			Provider: s("provider", "p", "q"), Key: s("credential", "", "main"), RouteAttempts: 1 + n("route", 2),
			Failure: engine.MakeFailure(engine.Class(n("class", 12)), engine.Scope(n("scope", 5)), reason, wait,
				[]int{0, 200, 400, 402, 404, 408, 429, 503}[n("status", 7)], engine.Phase(n("phase", 2)), engine.Completion(n("completion", 2))),
			AttemptsUsed: 1, AttemptsLeft: n("left", 2),
			Elapsed: time.Duration(n("elapsed", 3)) * time.Millisecond, Remaining: time.Second, MinUseful: time.Second,
			Backoff: time.Duration(n("backoff", 3)) * time.Millisecond, Time: b("time"), RetryBudget: b("budget"),
			Same: b("same"), SpareKey: b("spare"), Fallback: channels("fallback"), Substitute: channels("substitute"),
		}
	})
}

// What moves with time, or belongs to one request, must not make questions differ.
func TestDefaultPolicyForgetsNothingOverTime(t *testing.T) {
	t.Parallel()
	set := load(t, Options{})
	for i := range 50 {
		q := failed(t)
		q.RequestID += string(rune('a' + i))
		q.Elapsed += time.Duration(i) * time.Millisecond
		q.Remaining -= time.Duration(i) * time.Millisecond
		q.Backoff += time.Duration(i) * time.Millisecond
		set.Decide(&q)
	}
	if n := len(set.decisions.answers); n != 1 {
		t.Errorf("%d answers are remembered, want 1", n)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	f := func(name, body string, want ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// All packages of the default policy are replaced by empty ones.
			set := load(t, Options{}, "package fourgate\n"+body,
				"package fourgate.standard", "package fourgate.blame", "package fourgate.gates.failure_class", "package fourgate.gates.response_phase",
				"package fourgate.gates.idempotency", "package fourgate.gates.attempt_budget")
			var got []string
			for _, f := range set.decision.reads.fields {
				got = append(got, f.path[len(f.path)-1])
			}
			if !slices.Equal(got, want) {
				t.Errorf("reads %v, want %v", got, want)
			}
		})
	}
	f("nothing", `decision := {}`)
	f("a leaf", `decision := input.failure.class`, "class")
	f("a part", `decision := input.request.idempotency`, "key", "replay_safe", "effects")
	f("an element", `decision := input.routes.fallback[0]`, "fallback")
	f("a name in a variable", `decision := input.routes[x] if some x in ["same"]`, "same", "spare_key", "fallback", "substitute")
	f("a name from the input", `decision := {"a": 1}[input.attempt.key]`, "key")
	f("an else branch", `decision := 1 if input.phase == "x"
else := input.attempt.seq`, "seq", "phase")
	f("an argument", `f(x) := x.stream
decision := f(input.request)`, "id", "caller", "endpoint", "model", "stream", "tools", "sdk_retry", "key", "replay_safe", "effects")
	f("a comprehension", `decision := [x | some x in input.routes.substitute]`, "substitute")
	f("a set rule", `decision contains input.budget.time`, "time")
	f("params", `decision := input.params.x`)
}

func TestReadsOfWholeInput(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`decision := input`, `decision := count(input)`, `decision := y if walk(input, [_, y])`, `decision := x if { x := input[y] }`} {
		set := load(t, Options{}, "package fourgate\n"+body)
		if len(set.decision.reads.fields) != len(fields()) || !set.decision.reads.params {
			t.Errorf("%s: reads %d fields, want all", body, len(set.decision.reads.fields))
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	set := load(t, Options{Memory: 10}, answering(`{"action": "abort", "reason": "r"} if input.request.id != ""`))
	for i := range 100 {
		q := failed(t)
		q.RequestID = string(rune('a' + i))
		set.Decide(&q)
	}
	q := failed(t)
	q.RequestID = string(make([]byte, 2*maxKey))
	set.Decide(&q)
	if n := len(set.decisions.answers); n != 10 {
		t.Errorf("%d answers are remembered, want 10", n)
	}
	for key := range set.decisions.answers {
		if len(key) > maxKey {
			t.Errorf("a key of %d bytes is kept", len(key))
		}
	}
}

func TestManyGoroutines(t *testing.T) {
	t.Parallel()
	set := load(t, Options{Memory: 2})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				q := failed(t)
				q.AttemptsLeft = i % 4
				got := set.Decide(&q)
				if (got.Action == engine.Fallback) != (q.AttemptsLeft > 0) || got.Fault != "" {
					t.Errorf("with %d attempts left: got %+v", q.AttemptsLeft, got)
				}
			}
		})
	}
	wg.Wait()
}

// A remembered answer costs its key and nothing else.
func TestRememberedAnswerAllocations(t *testing.T) {
	q := failed(t)
	set := load(t, Options{})
	set.Decide(&q)
	if n := testing.AllocsPerRun(100, func() { set.Decide(&q) }); n > 1 {
		t.Errorf("%v allocations, want at most 1", n)
	}
}
