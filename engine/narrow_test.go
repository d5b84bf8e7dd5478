package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

// routeAnswer draws what a route policy may say, sensible and not.
func (c chaos) routeAnswer(q *engine.RouteQuestion) engine.RouteAnswer {
	if c.chance(20) {
		return engine.RouteAnswer{}
	}
	reason, _ := engine.ParseReason("drawn")
	a := engine.RouteAnswer{Reason: reason, Rule: "route.rego:7"}
	if c.chance(3) {
		a.Fault = pick(c, "conflict", "mistyped", "timeout", "error")
	}
	if c.chance(50) {
		a.Picked = true
		for _, i := range c.Perm(len(q.Channels))[:c.IntN(len(q.Channels)+1)] {
			a.Channels = append(a.Channels, q.Channels[i].Name)
		}
		if c.chance(20) {
			a.Channels = append(a.Channels, pick(c, "nobody", "g1/c0", "c0", "g0/c0", "g1/", "g1", ""))
		}
	}
	if c.chance(40) {
		a.Attempts = c.IntN(8) - 1
	}
	if c.chance(30) {
		a.PerRoute = c.IntN(8) - 1
	}
	if c.chance(30) {
		a.Deadline = time.Duration(c.IntN(12_000)-500) * time.Millisecond
	}
	return a
}

// narrowedBudget tightens a budget in the dumb way.
func narrowedBudget(b engine.BudgetSpec, n *enginetest.Narrowed) engine.BudgetSpec {
	if n == nil {
		return b
	}
	if a := n.Answer.Attempts; a > 0 && a < b.Attempts {
		b.Attempts = a
	}
	if p := n.Answer.PerRoute; p > 0 && p < b.PerRoute {
		b.PerRoute = p
	}
	if d := n.Answer.Deadline; d > 0 && d < b.Deadline {
		b.Deadline = d
	}
	return b
}

// leaves says whether the answer leaves a route, written GROUP/CHANNEL, in the chain.
func leaves(n *enginetest.Narrowed, route string) bool {
	return slices.ContainsFunc(n.Question.Channels, func(ch engine.RouteChannel) bool {
		return strings.HasSuffix("/"+ch.Group+"/"+ch.Name, "/"+route) && (!n.Answer.Picked || slices.Contains(n.Answer.Channels, ch.Name))
	})
}

// misnarrowed compares the record of a narrowing with the narrowing.
func misnarrowed(n *enginetest.Narrowed, recorded *engine.Narrowing) string {
	if n == nil || n.Narrowing == nil {
		if recorded != nil {
			return "a narrowing is recorded that nobody asked for"
		}
		return ""
	}
	if recorded == nil {
		return "the narrowing isn't in the record"
	}
	if diff := cmp.Diff(summary(n.Narrowing), summary(recorded)); diff != "" {
		return "the narrowing is recorded otherwise:\n" + diff
	}
	return ""
}

// summary tells a narrowing in one line.
func summary(n *engine.Narrowing) string {
	if n == nil {
		return "nothing"
	}
	s := fmt.Sprintf("%s %s", n.Rule(), n.Reason())
	if n.Fault() != "" {
		s += " fault " + n.Fault()
	}
	if len(n.Dropped()) > 0 {
		s += fmt.Sprintf(" dropped %v", n.Dropped())
	}
	if n.Reordered() {
		s += " reordered"
	}
	if n.Attempts() > 0 || n.PerRoute() > 0 || n.Deadline() > 0 {
		s += fmt.Sprintf(" tightened %d/%d/%s", n.Attempts(), n.PerRoute(), n.Deadline())
	}
	if len(n.Refused()) > 0 {
		s += fmt.Sprintf(" refused %v", n.Refused())
	}
	return strings.TrimSpace(s)
}

// misrefused checks a request that its route policy left without a channel.
func misrefused(tr enginetest.Trace) string {
	a := tr.Narrowed.Answer
	inChain := slices.ContainsFunc(tr.Narrowed.Question.Channels, func(ch engine.RouteChannel) bool { return slices.Contains(a.Channels, ch.Name) })
	if a.Fault == "" && (!a.Picked || inChain) {
		return "a request was refused though its route policy left a channel"
	}
	if tr.Refusal.Message == "" || tr.Refusal.Narrowing != tr.Narrowed.Narrowing {
		return "the refusal doesn't say why"
	}
	text := engine.RecordRefusal(tr.Request.Arrived, tr.Request, tr.Refusal, 403).AppendJSON(nil)
	again, err := engine.ParseRecord(text)
	if err != nil || !bytes.Equal(again.AppendJSON(nil), text) || again.Terminal() != engine.TerminalPolicyStop {
		return fmt.Sprintf("the refusal's record doesn't survive (%v): %s", err, text)
	}
	return misnarrowed(tr.Narrowed, again.Route())
}

// chainOf routes a request over n channels a, b, c, … of group g and two of group h.
func chainOf(t testing.TB, n int) (engine.Chain, *engine.Request) {
	t.Helper()
	s := spec(n)
	h := s.Groups[0]
	h.Name, h.Channels = "h", slices.Clone(h.Channels[:min(n, 2)])
	for i := range s.Groups[0].Channels {
		s.Groups[0].Channels[i].Labels = map[string]string{"region": []string{"eu", "us"}[i%2]}
	}
	s.Groups = append(s.Groups, h)
	c, problems := engine.NewCatalog(s)
	if c == nil {
		t.Fatalf("the specification is refused: %+v", problems)
	}
	caller, _ := c.Caller("")
	req := &engine.Request{ID: "r", Caller: caller, Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}, Arrived: start, Tools: true}
	chain, refusal := c.Route(start, engine.NewStanding(), req, half{})
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	return chain, req
}

// names tells a chain by the names that policies use.
func names(chain engine.Chain, req *engine.Request) string {
	var all []string
	for _, ch := range chain.RouteQuestion(req, start).Channels {
		all = append(all, ch.Name)
	}
	return strings.Join(all, " ")
}

func TestNarrow(t *testing.T) {
	t.Parallel()
	reason, _ := engine.ParseReason("stay_in_eu")
	pick := func(names ...string) engine.RouteAnswer {
		return engine.RouteAnswer{Picked: true, Channels: names, Reason: reason, Rule: "r.rego:1"}
	}
	for _, tt := range []struct {
		name    string
		answer  engine.RouteAnswer
		chain   string
		summary string
	}{
		{"nothing", engine.RouteAnswer{}, "a b c h/a h/b", "nothing"},
		{"only a rule", engine.RouteAnswer{Rule: "r.rego:1", Reason: reason}, "a b c h/a h/b", "r.rego:1 stay_in_eu"},
		{"drops", pick("a", "c", "h/a"), "a c h/a", "r.rego:1 stay_in_eu dropped [b h/b]"},
		{"reorders", pick("h/b", "c", "b", "a", "h/a"), "h/b c b a h/a", "r.rego:1 stay_in_eu reordered"},
		{"names a stranger", pick("x", "b", "g/a", "h/c", "h"), "b", "r.rego:1 stay_in_eu dropped [a c h/a h/b] refused [channel]"},
		{"names one twice", pick("b", "a", "b"), "b a", "r.rego:1 stay_in_eu dropped [c h/a h/b] reordered refused [channel]"},
		{"tightens", engine.RouteAnswer{Attempts: 2, PerRoute: 1, Deadline: 5 * time.Second, Rule: "r"}, "a b c h/a h/b", "r  tightened 2/1/5s"},
		{"widens", engine.RouteAnswer{Attempts: 4, PerRoute: 3, Deadline: time.Hour, Rule: "r"}, "a b c h/a h/b", "r  refused [attempts per_route deadline]"},
		{"is negative", engine.RouteAnswer{Attempts: -1, PerRoute: -1, Deadline: -1, Rule: "r"}, "a b c h/a h/b", "r  refused [attempts per_route deadline]"},
		{"widens one and tightens another", engine.RouteAnswer{Attempts: 9, PerRoute: 1, Rule: "r"}, "a b c h/a h/b", "r  tightened 0/1/0s refused [attempts]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			chain, req := chainOf(t, 3)
			narrowed, n, refusal := chain.Narrow(tt.answer)
			if refusal != nil {
				t.Fatal(refusal.Message)
			}
			if got := names(narrowed, req); got != tt.chain {
				t.Errorf("the chain is %q, want %q", got, tt.chain)
			}
			if diff := cmp.Diff(tt.summary, summary(n)); diff != "" {
				t.Error(diff)
			}
			if got := names(chain, req); got != "a b c h/a h/b" {
				t.Errorf("the old chain has become %q", got)
			}
		})
	}
}

// TestNarrowRefuses leaves no channel, or has no usable answer.
func TestNarrowRefuses(t *testing.T) {
	t.Parallel()
	reason, _ := engine.ParseReason("region_us_only")
	f := func(a engine.RouteAnswer, message, narrowing string) {
		t.Helper()
		chain, _ := chainOf(t, 2)
		chain, n, refusal := chain.Narrow(a)
		if refusal == nil || refusal.Kind != engine.RefusalPolicy || !strings.Contains(refusal.Message, message) {
			t.Errorf("got %+v, want %q", refusal, message)
			return
		}
		if len(chain.Channels()) != 0 || refusal.Narrowing != n {
			t.Error("a refused request keeps a chain, or loses its narrowing")
		}
		if diff := cmp.Diff(narrowing, summary(n)); diff != "" {
			t.Error(diff)
		}
	}
	f(engine.RouteAnswer{Picked: true, Reason: reason, Rule: "r"}, `no channel for model "m": region_us_only`, "r region_us_only dropped [a b h/a h/b]")
	f(engine.RouteAnswer{Picked: true, Channels: []string{"x"}}, `no channel for model "m"`, "dropped [a b h/a h/b] refused [channel]")
	f(engine.RouteAnswer{Fault: "timeout", Rule: "r", Reason: reason, Picked: true, Channels: []string{"a"}}, "no usable answer", "r policy_error fault timeout")
}

// A policy that names its channels doesn't know which are set aside at the moment, and
// max_hops counts among those that it leaves.
func TestNarrowNamesWhatIsOut(t *testing.T) {
	t.Parallel()
	s := spec(4)
	s.Groups[0].MaxHops = 2
	c := catalog(t, s)
	caller, _ := c.Caller("")
	standing := engine.NewStanding()
	standing.Disable(c.Groups()[0].Channels()[3], time.Time{})
	req := &engine.Request{
		ID: "r", Caller: caller, Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}, Arrived: start, Uncut: true,
	}
	chain, refusal := c.Route(start, standing, req, half{})
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	if got := names(chain, req); got != "a b c" {
		t.Errorf("the policy is shown %q, want all that aren't out", got)
	}
	f := func(want string, picked ...string) {
		t.Helper()
		narrowed, n, refusal := chain.Narrow(engine.RouteAnswer{Picked: true, Channels: picked, Rule: "r"})
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		kept, beyond := narrowed.Cut()
		got := names(kept, req)
		for _, ch := range beyond {
			got += " (" + ch.Name() + ")"
		}
		if len(n.Refused()) > 0 {
			got += fmt.Sprintf(" refused %v", n.Refused())
		}
		if got != want {
			t.Errorf("%v: got %q, want %q", picked, got, want)
		}
	}
	f("c", "d", "c")
	f("c b (a)", "c", "b", "a")
	f("a b (c)", "a", "b", "c", "d")
	f("a refused [channel]", "a", "stranger")
}

// TestRouteQuestion tells a route policy what there is.
func TestRouteQuestion(t *testing.T) {
	t.Parallel()
	chain, req := chainOf(t, 2)
	req.SDKRetry, req.TimeLimit = 1, engine.WaitOf(10*time.Second)
	req.Idempotency = engine.Idempotency{Key: "k", ReplaySafe: true, Effects: engine.EffectsNone}
	want := engine.RouteQuestion{
		RequestID: "r", Caller: "anonymous", Contract: req.Contract, Tools: true, SDKRetry: 1, Idempotency: req.Idempotency, Now: start,
		Group: "g", Attempts: 2, PerRoute: 2, Deadline: 10 * time.Second,
		Channels: []engine.RouteChannel{
			{Name: "a", Group: "g", Provider: "pa", Labels: map[string]string{"region": "eu"}},
			{Name: "b", Group: "g", Provider: "pb", Labels: map[string]string{"region": "us"}},
			{Name: "h/a", Group: "h", Provider: "pa"},
			{Name: "h/b", Group: "h", Provider: "pb"},
		},
	}
	if diff := cmp.Diff(want, chain.RouteQuestion(req, start)); diff != "" {
		t.Error(diff)
	}
	// What the policy then says counts as it was asked: of two attempts, two.
	chain, _, _ = chain.Narrow(engine.RouteAnswer{Attempts: 2, Deadline: 5 * time.Second})
	if q := chain.RouteQuestion(req, start); q.Attempts != 2 || q.Deadline != 5*time.Second {
		t.Errorf("got %d attempts within %s", q.Attempts, q.Deadline)
	}
}

// TestTightDeadlineBlamesNobody lets an attempt run out of a route policy's time.
func TestTightDeadlineBlamesNobody(t *testing.T) {
	t.Parallel()
	c := catalog(t, spec(2))
	caller, _ := c.Caller("")
	w := &enginetest.World{
		Now: start, Catalog: c, Standing: engine.NewStanding(), Rand: half{}, LeavesAfter: -1,
		Narrow:   func(*engine.RouteQuestion) engine.RouteAnswer { return engine.RouteAnswer{Deadline: 5 * time.Second} },
		Upstream: func(*engine.Send) enginetest.Outcome { return silent },
		Classify: func(*engine.Evidence) engine.Verdict {
			return engine.Verdict{Class: engine.ClassProviderTransient, Scope: engine.ScopeChannel}
		},
		Decide: func(*engine.Question) engine.Decision {
			return engine.Decision{Effects: []engine.Effect{{Kind: engine.EffectQuarantineChannel, For: time.Hour}}}
		},
	}
	tr, err := w.Run(&engine.Request{ID: "r", Caller: caller, Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}})
	if err != nil {
		t.Fatal(err)
	}
	if tr.Ended.Sub(start) != 5*time.Second || tr.Record.Attempts()[0].Scope() != engine.ScopeRequest {
		t.Errorf("the request took %s, and to blame is the %s", tr.Ended.Sub(start), tr.Record.Attempts()[0].Scope())
	}
	if bar := w.Standing.Report(tr.Ended, c.Groups()[0].Channels()[0]).Bar; bar != engine.BarNone {
		t.Errorf("the channel is %s", bar)
	}
}

// TestNarrowingNeverWidens narrows random chains, some of them twice.
func TestNarrowingNeverWidens(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		c := chaos{rand.New(rand.NewPCG(seed, 12))}
		catalog := c.catalog()
		req := c.request(catalog.Callers()[0], 0)
		req.Arrived = start
		chain, refusal := catalog.Route(start, engine.NewStanding(), req, c)
		gone := 0
		for range 2 {
			if refusal != nil {
				break
			}
			q := chain.RouteQuestion(req, start)
			a := c.routeAnswer(&q)
			next, n, refused := chain.Narrow(a)
			if refusal = refused; refused != nil {
				continue
			}
			left := slices.Clone(chain.Channels())
			for _, ch := range next.Channels() {
				i := slices.Index(left, ch)
				if i < 0 {
					t.Fatalf("seed %d: channel %s isn't in the chain, or stands there twice: %+v", seed, ch.Name(), a)
				}
				left = slices.Delete(left, i, i+1)
			}
			if n != nil {
				if gone += len(left); gone != len(n.Dropped()) {
					t.Fatalf("seed %d: %d channels are gone, dropped %v: %+v", seed, gone, n.Dropped(), a)
				}
			}
			old, tight := chain.Budget(), next.Budget()
			after := next.RouteQuestion(req, start)
			switch {
			case tight.Attempts > old.Attempts, tight.PerRoute > old.PerRoute, tight.Deadline > old.Deadline,
				after.Attempts > q.Attempts, after.PerRoute > q.PerRoute, after.Deadline > q.Deadline:
				t.Fatalf("seed %d: the budget %+v becomes %+v: %+v", seed, old, tight, a)
			case tight.Attempts <= 0, tight.PerRoute <= 0, tight.Deadline <= 0:
				t.Fatalf("seed %d: the budget becomes %+v: %+v", seed, tight, a)
			}
			chain = next
		}
	}
}

// TestCeilingsAndRetriesAreNotAddedUp counts an SDK's retries from the caller's ceiling.
func TestCeilingsAndRetriesAreNotAddedUp(t *testing.T) {
	t.Parallel()
	s := spec(1)
	s.Callers = []engine.CallerSpec{{Name: "team", KeySHA256: strings.Repeat("0a", 32), Groups: []string{"g"}, Budget: engine.CallerBudget{Attempts: 2}}}
	c := catalog(t, s)
	req := &engine.Request{ID: "r", Caller: c.Callers()[0], Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}, Arrived: start, SDKRetry: 1}
	chain, refusal := c.Route(start, engine.NewStanding(), req, half{})
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	if q := chain.RouteQuestion(req, start); q.Attempts != 1 {
		t.Errorf("a caller with two attempts who has made one is left %d", q.Attempts)
	}
}
