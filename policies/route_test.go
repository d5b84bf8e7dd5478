package policies

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fourgate-dev/fourgate/engine"
)

// routed is the question before a request's first attempt.
func routed() engine.RouteQuestion {
	return engine.RouteQuestion{
		RequestID: "r1", Caller: "team-a",
		Contract:    engine.Contract{Model: "gpt-4o-2024-08-06", Endpoint: engine.OpenAIChat},
		Idempotency: engine.Idempotency{ReplaySafe: true, Effects: engine.EffectsNone},
		Now:         time.Date(2026, time.November, 30, 23, 5, 0, 0, time.UTC),
		Group:       "gpt-4o",
		Channels: []engine.RouteChannel{
			{Name: "openai", Group: "gpt-4o", Provider: "openai", Labels: map[string]string{"region": "us", "tier": "1"},
				Cost: engine.Cost{Given: true, Input: 2.5, Output: 10, CachedInput: 1.25, CachedInputGiven: true}},
			{Name: "azure-east", Group: "gpt-4o", Provider: "azure", Labels: map[string]string{"region": "eu"},
				Cost: engine.Cost{Given: true, Input: 2, Output: 8}},
			{Name: "spare/local", Group: "spare", Provider: "local"},
		},
		Attempts: 3, PerRoute: 2, Deadline: time.Minute,
	}
}

func diffRoutes(want, got engine.RouteAnswer) string {
	return cmp.Diff(want, got, cmp.AllowUnexported(engine.Reason{}))
}

// region is a policy with nothing but the route entry point: the default one decides.
const region = `package fourgate

route := {"channels": [c.name | some c in input.channels; c.labels.region == "eu"], "reason": "stays_in_the_region"} if {
	input.request.caller == "team-a"
}
`

func TestRoute(t *testing.T) {
	t.Parallel()
	f := func(name, text string, change func(*engine.RouteQuestion), want engine.RouteAnswer) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := routed()
			if change != nil {
				change(&q)
			}
			got := load(t, Options{Params: map[string]any{"most": 1}}, text).Route(&q)
			if want.Reason != (engine.Reason{}) && !strings.HasSuffix(got.Rule, "p.rego:3") {
				t.Errorf("the rule is %q, want line 3", got.Rule)
			}
			got.Rule = ""
			if diff := diffRoutes(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	night := reasonOf(t, "night")
	f("drops channels", region, nil, engine.RouteAnswer{Picked: true, Channels: []string{"azure-east"}, Reason: reasonOf(t, "stays_in_the_region")})
	f("has no opinion", region, func(q *engine.RouteQuestion) { q.Caller = "team-b" }, engine.RouteAnswer{})
	f("says that nothing changes", "package fourgate\n\nroute := {}\n", nil, engine.RouteAnswer{})
	f("cheap at night", `package fourgate

route := {"channels": [c.name | some c in input.channels; c.cost.input < 2.1], "reason": "night"} if input.clock.hour >= 22
`, nil, engine.RouteAnswer{Picked: true, Channels: []string{"azure-east"}, Reason: night})
	f("tightens the budget", `package fourgate

route := {"attempts": data.params.most, "per_route": input.budget.per_route - 1, "deadline_ms": 1.5e3, "reason": "night"}
`, nil, engine.RouteAnswer{Attempts: 1, PerRoute: 1, Deadline: 1500 * time.Millisecond, Reason: night})
	f("drops all", `package fourgate

route := {"channels": [], "reason": "night"}
`, nil, engine.RouteAnswer{Picked: true, Channels: []string{}, Reason: night})
	f("sorts by price", `package fourgate

route := {"channels": [n | some [_, n] in sort([[c.cost.input, c.name] | some c in input.channels])], "reason": "night"}
`, nil, engine.RouteAnswer{Picked: true, Channels: []string{"azure-east", "openai"}, Reason: night})
}

func TestRouteFaults(t *testing.T) {
	t.Parallel()
	f := func(name, value, fault, why string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := routed()
			got := load(t, Options{}, "package fourgate\n\nroute := "+value+"\n").Route(&q)
			if got.Fault != fault || !strings.Contains(got.Why, why) || got.Picked || got.Attempts != 0 {
				t.Errorf("got %+v, want the fault %s because %q", got, fault, why)
			}
		})
	}
	f("text", `"openai"`, "mistyped", "")
	f("unknown member", `{"chanels": [], "reason": "r"}`, "mistyped", "chanels")
	f("change without a reason", `{"attempts": 1}`, "mistyped", "reason: missing")
	f("bad reason", `{"attempts": 1, "reason": "Because"}`, "mistyped", "reason")
	f("set of channels", `{"channels": {"a"}, "reason": "r"}`, "mistyped", "channels")
	f("channel twice", `{"channels": ["a", "a"], "reason": "r"}`, "mistyped", "channels")
	f("channel that is no text", `{"channels": [1], "reason": "r"}`, "mistyped", "channels")
	f("empty channel", `{"channels": [""], "reason": "r"}`, "mistyped", "channels")
	f("no attempts", `{"attempts": 0, "reason": "r"}`, "mistyped", "attempts")
	f("fraction of attempts", `{"attempts": 1.5, "reason": "r"}`, "mistyped", "attempts")
	f("negative attempts on a route", `{"per_route": -1, "reason": "r"}`, "mistyped", "per_route")
	f("no time", `{"deadline_ms": 0, "reason": "r"}`, "mistyped", "deadline_ms")
	f("time of less than nothing", `{"deadline_ms": -5, "reason": "r"}`, "mistyped", "deadline_ms")
	f("two answers", `{"attempts": 1, "reason": "a"} if input.budget.attempts > 1

route := {"attempts": 2, "reason": "b"} if input.budget.attempts > 2
`, "conflict", "p.rego")
	f("failing", `{"attempts": 1 / (input.budget.attempts - 3), "reason": "r"}`, "error", "divide by zero")
}

func TestSlowRouteTimesOut(t *testing.T) {
	t.Parallel()
	const slow = `package fourgate

digits := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

route := {"attempts": 1, "reason": "r"} if {
	every a in digits { every b in digits { every c in digits { every d in digits { every e in digits {
		every f in digits { every g in digits { (((((a + b) + c) + d) + e) + f) + g >= 0 } }
	} } } } }
}
`
	q := routed()
	if got := load(t, Options{Timeout: 5 * time.Millisecond}, slow).Route(&q); got.Fault != "timeout" {
		t.Errorf("got %+v, want a timeout", got)
	}
}

func TestPolicyWithoutRoute(t *testing.T) {
	t.Parallel()
	q := routed()
	set := load(t, Options{})
	if set.HasRoute() {
		t.Error("the default policy says that it routes")
	}
	if diff := diffRoutes(engine.RouteAnswer{}, set.Route(&q)); diff != "" {
		t.Error(diff)
	}
}

// A file with the route alone leaves the decision to the default policy; one with another
// rule of the same package would be a misspelt decision.
func TestRouteAloneKeepsTheDefaultDecision(t *testing.T) {
	t.Parallel()
	q := failed(t)
	set := load(t, Options{}, region)
	if got := set.Decide(&q); got.Action != engine.Fallback || !set.HasRoute() {
		t.Errorf("got %+v, want the default policy's fallback beside a route", got)
	}
	problems := problemsOf(t, Options{Paths: []string{writePolicy(t, "package fourgate\n\ndecison := 1\n")}})
	if !strings.Contains(problems[0].Text(), "cannot find a rule") {
		t.Errorf("problems %v, want that the rule is missing", problems)
	}
}

// What the route rules don't look at makes no new question, and what the decision's rules
// look at doesn't count.
func TestRouteIsRememberedByWhatItReads(t *testing.T) {
	t.Parallel()
	set := load(t, Options{}, `package fourgate

import data.fourgate.standard

route := {"attempts": 1, "reason": "night"} if input.clock.hour >= 22

decision := standard.decision if input.request.id != ""
`)
	for i := range 50 {
		q := routed()
		q.RequestID += string(rune('a' + i))
		q.Caller += string(rune('a' + i))
		q.Now = q.Now.Add(time.Duration(i) * time.Second)
		set.Route(&q)
	}
	if n := len(set.routes.answers); n != 1 {
		t.Errorf("%d answers are remembered, want 1", n)
	}
	q := routed()
	q.Now = q.Now.Add(-2 * time.Hour)
	if got := set.Route(&q); got.Attempts != 0 {
		t.Errorf("two hours earlier: got %+v, want no opinion", got)
	}
}

// everyRoute looks at the whole input; sidewaysRoute in ways that are easy to overlook.
const everyRoute = `package fourgate

route := {"channels": [c.name | some c in input.channels], "deadline_ms": count(object.filter(input, ["budget", "clock"])), "reason": "r"} if {
	input.budget.attempts > 1
	walk(input, [_, "eu"])
}
`

const sidewaysRoute = `package fourgate

first(x) := x[0]

route := {"channels": [first(input.channels).name], "reason": "a"} if {
	first(input.channels).labels[input.group]
} else := {"channels": [c.name | some c in input.channels; c.cost.cached_input != null], "reason": "b"} if {
	input.clock.minute % 2 == 1
} else := {"attempts": 1, "reason": input.clock.weekday} if {
	input.request[["stream", "tools"][input.request.sdk_retry]]
}
`

// The memory is no more than a shortcut: whatever is asked in whatever order, the answers
// are those of the policy itself.
func TestMemoryChangesNoRoute(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"region": region, "everything": everyRoute, "sideways": sidewaysRoute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := load(t, Options{Memory: 3}, text)
			without := load(t, Options{Memory: -1}, text)
			rapid.Check(t, func(t *rapid.T) {
				for _, q := range rapid.SliceOfN(routeQuestions(), 1, 6).Draw(t, "questions") {
					want, got := without.Route(&q), with.Route(&q)
					want.Rule, got.Rule = "", "" // each set has its own copy of the file
					if diff := diffRoutes(want, got); diff != "" {
						t.Fatal(diff)
					}
				}
			})
		})
	}
}

// routeQuestions draws from small sets, so that equal ones come up.
func routeQuestions() *rapid.Generator[engine.RouteQuestion] {
	return rapid.Custom(func(t *rapid.T) engine.RouteQuestion {
		n := func(name string, top int) int { return rapid.IntRange(0, top).Draw(t, name) }
		q := routed()
		q.Channels = q.Channels[:n("channels", 3)]
		for i := range q.Channels {
			c := &q.Channels[i]
			c.Labels = []map[string]string{nil, {"region": "eu"}, {"gpt-4o": "x", "region": "us"}, {"gpt-4o": "", "b": "c"}}[n("labels", 3)]
			c.Cost = []engine.Cost{{}, {Given: true}, {Given: true, CachedInputGiven: true}, {Given: true, Input: 1}}[n("cost", 3)]
		}
		q.Caller = []string{"team-a", "team-b"}[n("caller", 1)]
		q.Stream, q.Tools, q.SDKRetry = n("stream", 1) == 1, n("tools", 1) == 1, n("sdk_retry", 2)
		q.Attempts = 1 + n("attempts", 2)
		q.Now = q.Now.Add(time.Duration(n("hours", 3))*time.Hour + time.Duration(n("minutes", 2))*time.Minute)
		return q
	})
}

// FuzzReadRouteAnswer: as FuzzReadAnswer for the other entry point.
func FuzzReadRouteAnswer(f *testing.F) {
	for _, text := range []string{
		`{"channels": ["a", "b"], "reason": "r"}`, `{"attempts": 1, "per_route": 1, "deadline_ms": 5, "reason": "r"}`,
		`{}`, `{"deadline_ms": 1e999, "reason": "r"}`, `[[{}]]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := valueOf(text)
		if !ok {
			return
		}
		a, err := readRouteAnswer(v)
		if err != nil {
			return
		}
		if a.Attempts < 0 || a.PerRoute < 0 || a.Deadline < 0 || len(a.Channels) > maxChannels {
			t.Errorf("accepted %+v", a)
		}
		if (a.Picked || a.Attempts+a.PerRoute > 0 || a.Deadline > 0) && a.Reason == (engine.Reason{}) {
			t.Errorf("accepted a change without a reason: %+v", a)
		}
	})
}
