package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

// counted falls back and counts the failure.
var counted = engine.Decision{Action: engine.Fallback, Effects: []engine.Effect{{Kind: engine.EffectCountFailure}}}

// crew is a world of two channels and several callers.
type crew struct {
	t       *testing.T
	catalog *engine.Catalog
	s       *engine.Standing
	now     time.Time
	verdict engine.Verdict
	// decision follows on each failure.
	decision engine.Decision
}

func newCrew(t *testing.T, callers int, b engine.BreakerSpec) *crew {
	t.Helper()
	s := spec(2)
	s.Groups[0].Breaker = b
	s.RetryBudget.Cap = 1e6
	for i := range callers {
		s.Callers = append(s.Callers, engine.CallerSpec{
			Name: string(rune('x' + i)), KeySHA256: strings.Repeat(fmt.Sprintf("%02x", i+1), 32), Groups: []string{"g"},
		})
	}
	return &crew{t, catalog(t, s), engine.NewStanding(), start, engine.Verdict{Class: engine.ClassProviderTransient, Scope: engine.ScopeChannel}, counted}
}

// sends has a caller send a request that channel a answers well or badly, and returns the
// channel that it began on.
func (c *crew) sends(caller int, good bool) string {
	c.t.Helper()
	w := &enginetest.World{
		Now: c.now, Catalog: c.catalog, Standing: c.s, Rand: half{}, LeavesAfter: -1,
		Upstream: func(s *engine.Send) enginetest.Outcome {
			if good || s.Channel.Name() != "a" {
				return enginetest.Outcome{Status: 200, Model: "m"}
			}
			return enginetest.Outcome{Failure: &engine.Evidence{Transport: engine.TransportHTTP, Status: 500, Phase: engine.BeforeOutput}}
		},
		Classify: func(*engine.Evidence) engine.Verdict { return c.verdict },
		Decide:   func(*engine.Question) engine.Decision { return c.decision },
	}
	req := &engine.Request{ID: "r", Contract: chat, Caller: c.catalog.Callers()[caller], Idempotency: engine.Idempotency{ReplaySafe: true, Effects: engine.EffectsNone}}
	tr, err := w.Run(req)
	if err != nil {
		c.t.Fatal(err)
	}
	if len(tr.Sent) == 0 {
		return "nobody"
	}
	return tr.Sent[0].Send.Channel.Name()
}

func TestNobodyOpensABreakerAlone(t *testing.T) {
	t.Parallel()
	const hostile, other, third = 0, 1, 2
	for _, mode := range []engine.BreakerMode{engine.BreakerWindow, engine.BreakerConsecutive} {
		for _, failures := range []int{1, 2, 3, 10} {
			for _, probes := range []int{0, 1, 2} {
				b := engine.BreakerSpec{Mode: mode, Failures: failures, Window: 5 * time.Minute, OpenFor: time.Minute, HalfOpenProbes: probes}
				t.Run(fmt.Sprintf("%d_%d_%d", mode, failures, probes), func(t *testing.T) {
					t.Parallel()
					c := newCrew(t, 3, b)
					for i := range 500 {
						c.now = c.now.Add(time.Second)
						c.sends(hostile, false)
						if i%10 == 9 {
							if got := c.sends(other, true); got != "a" {
								t.Fatalf("after %d poisonous requests another caller began on %s", i+1, got)
							}
						}
					}
					if got := c.sends(hostile, true); got != "b" {
						t.Errorf("the caller whose requests all fail still begins on %s", got)
					}
					// A real failure is found by the others together.
					bad := 0
					for c.sends(other+bad%2, false) == "a" {
						if bad++; bad > failures+2 {
							t.Fatalf("%d failures of two callers open nothing", bad)
						}
					}
					if got := c.sends(third, true); got != "b" {
						t.Errorf("with the breaker open, the third caller began on %s", got)
					}
				})
			}
		}
	}
}

// TestPoisonDoesNotKeepABreakerOpen has one caller's probes fail for hours after a real
// outage.
func TestPoisonDoesNotKeepABreakerOpen(t *testing.T) {
	t.Parallel()
	const hostile, other = 0, 1
	c := newCrew(t, 2, engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 2, OpenFor: time.Minute, HalfOpenProbes: 1})
	c.sends(hostile, false)
	c.sends(other, false)
	if got := c.sends(other, true); got != "b" {
		t.Fatalf("two callers have met a failure, and the next began on %s", got)
	}
	c.now = c.now.Add(61 * time.Second)
	if got := c.sends(hostile, false); got != "a" {
		t.Fatalf("the probe went to %s", got)
	}
	if got := c.sends(other, true); got != "b" {
		t.Fatalf("after a failed probe the next began on %s", got)
	}
	c.now = c.now.Add(61 * time.Second)
	c.sends(hostile, false)
	if got := c.sends(other, true); got != "a" {
		t.Errorf("one caller's second failed probe shut the other out: it began on %s", got)
	}
}

func TestBusySingleCallersAreProtected(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 3} {
		c := newCrew(t, callers, engine.BreakerSpec{Mode: engine.BreakerWindow, Failures: 3, Window: time.Minute, OpenFor: time.Minute})
		for i, want := range []string{"a", "a", "a", "b"} {
			if got := c.sends(0, false); got != want {
				t.Errorf("%d callers, request %d began on %s, want %s", callers, i+1, got, want)
			}
		}
		if r := c.s.Report(c.now, c.catalog.Groups()[0].Channels()[0]); r.Alone != min(callers-1, 1) || (r.Breaker == engine.BreakerOpen) != (callers == 1) {
			t.Errorf("%d callers: the channel is out for %d alone, and its breaker is %s", callers, r.Alone, r.Breaker)
		}
		c.now = c.now.Add(time.Minute)
		if got := c.sends(0, true); got != "a" {
			t.Errorf("%d callers: the breaker did not close by itself: %s", callers, got)
		}
		if r := c.s.Report(c.now, c.catalog.Groups()[0].Channels()[0]); r.Alone != 0 {
			t.Errorf("%d callers: the channel is still out for %d alone", callers, r.Alone)
		}
	}
}

func TestOneFailureOpensOnlyIfMeant(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]string{1: "b", 2: "a"} {
		c := newCrew(t, 1, engine.BreakerSpec{Mode: engine.BreakerWindow, Failures: failures, Window: time.Minute, OpenFor: time.Minute})
		c.sends(0, false)
		if got := c.sends(0, true); got != want {
			t.Errorf("failures = %d: after one, the next request began on %s, want %s", failures, got, want)
		}
	}
}

func TestTheRequestsOwnFaultCountsForNothing(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Hour})
	c.verdict.Scope = engine.ScopeRequest
	for range 5 {
		if got := c.sends(0, false); got != "a" {
			t.Fatalf("the next request began on %s", got)
		}
	}
}

// TestNobodyQuarantinesAChannelAlone has one caller make a channel answer nonsense.
func TestNobodyQuarantinesAChannelAlone(t *testing.T) {
	t.Parallel()
	const hostile, other, third = 0, 1, 2
	c := newCrew(t, 3, engine.BreakerSpec{})
	c.decision = engine.Decision{Action: engine.Fallback, Effects: []engine.Effect{{Kind: engine.EffectQuarantineChannel, For: time.Hour, After: 3}}}
	for range 50 {
		c.sends(hostile, false)
	}
	if got := c.sends(hostile, true) + c.sends(other, true); got != "ba" {
		t.Errorf("the caller who alone sees nonsense, and another, began on %s", got)
	}
	if list := c.s.List(c.now); len(list) != 1 || list[0].Caller != "x" || list[0].Kind != engine.FactChannelQuarantined {
		t.Errorf("listed %+v", list)
	}
	c.sends(other, false)
	if got := c.sends(third, true); got != "b" {
		t.Errorf("with two callers having seen it, a third began on %s", got)
	}
	if lifted := c.s.Reset(c.now, engine.Fact{}); len(lifted) != 2 {
		t.Errorf("lifted %+v", lifted)
	}
	if got := c.sends(hostile, true) + c.sends(third, true); got != "aa" {
		t.Errorf("after the reset requests began on %s", got)
	}
}

// TestNoStampedeAtHalfOpen lets 5,000 requests wait for an open channel's time to end.
func TestNoStampedeAtHalfOpen(t *testing.T) {
	t.Parallel()
	const waiting = 5000
	for _, probes := range []int{1, 3} {
		c := newCrew(t, 1, engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Minute, HalfOpenProbes: probes})
		c.sends(0, false)
		now := c.now.Add(time.Minute)
		var probing []*engine.Call
		others := 0
		for range waiting {
			req := asks(c.catalog)
			req.Arrived = now
			chain, refusal := c.catalog.Route(now, c.s, req, half{})
			if refusal != nil {
				t.Fatal(refusal.Message)
			}
			call, ins := engine.Begin(now, req, chain, c.s, half{})
			if ins.(*engine.Send).Channel.Name() == "a" {
				probing = append(probing, call)
			} else {
				others++
			}
		}
		if len(probing) != probes || others != waiting-probes {
			t.Errorf("%d of %d waiting requests went to the channel that is probed, want %d", len(probing), waiting, probes)
		}
		// Those that end without saying anything make room for as many.
		probing[0].Step(now, &engine.Gone{})
		more := 0
		for range waiting {
			req := asks(c.catalog)
			req.Arrived = now
			chain, _ := c.catalog.Route(now, c.s, req, half{})
			if _, ins := engine.Begin(now, req, chain, c.s, half{}); ins.(*engine.Send).Channel.Name() == "a" {
				more++
			}
		}
		if more != 1 {
			t.Errorf("a probe whose caller left made room for %d", more)
		}
	}
}

// TestCallersOfOtherGroupsDoNotCount gives each of two callers a group of its own, in which
// it is alone: its failures open the breaker, and all of the retry budget is its own.
func TestCallersOfOtherGroupsDoNotCount(t *testing.T) {
	t.Parallel()
	for apart, want := range map[bool]string{true: "a open 10", false: "a closed 5"} {
		c := newCrew(t, 0, engine.BreakerSpec{})
		s := spec(2)
		s.RetryBudget = engine.RetryBudgetSpec{Cap: 10}
		s.Groups[0].Breaker = engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 10, OpenFor: time.Hour}
		another := s.Groups[0]
		another.Name, another.Models = "h", []string{"n"}
		s.Groups = append(s.Groups, another)
		of := []string{"g", "h"}
		if apart {
			of = of[1:]
		}
		s.Callers = []engine.CallerSpec{
			{Name: "x", KeySHA256: strings.Repeat("ab", 32), Groups: []string{"g"}}, {Name: "y", KeySHA256: strings.Repeat("ac", 32), Groups: of},
		}
		c.catalog = catalog(t, s)
		began := ""
		for range 10 {
			began = c.sends(0, false)
		}
		g := c.catalog.Groups()[0]
		spent := s.RetryBudget.Cap - c.s.RetryTokens(start, g, s.RetryBudget)
		if got := fmt.Sprintf("%s %s %v", began, c.s.Report(start, g.Channels()[0]).Breaker, spent); got != want {
			t.Errorf("groups apart: %v: got %s, want %s", apart, got, want)
		}
	}
}

func TestHealthChecksEndAnOpenTimeEarly(t *testing.T) {
	t.Parallel()
	f := func(probes int, want engine.BreakerState) {
		t.Helper()
		s := spec(2)
		s.Groups[0].Breaker = engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Hour, HalfOpenProbes: probes}
		s.Groups[0].HealthCheck.Interval = 10 * time.Second
		c := catalog(t, s)
		w := crew{t, c, engine.NewStanding(), start, engine.Verdict{Class: engine.ClassProviderTransient}, counted}
		if open := w.s.OpenChannels(start, c); len(open) != 0 {
			t.Errorf("a channel that nobody has used would be probed: %s", walked(open))
		}
		w.sends(0, false)
		open := w.s.OpenChannels(start, c)
		if walked(open) != "a" {
			t.Fatalf("to be probed: %q", walked(open))
		}
		w.s.Disable(open[0], time.Time{})
		if disabled := w.s.OpenChannels(start, c); len(disabled) != 0 {
			t.Error("a channel that was disabled by hand would be probed")
		}
		w.s.Reset(start, engine.Fact{Kind: engine.FactChannelDisabled})
		if !w.s.ProbePassed(start, open[0]) || w.s.ProbePassed(start, open[0]) {
			t.Error("a probe that passes changes an open breaker, once")
		}
		if got := w.s.Report(start, open[0]); got.Breaker != want {
			t.Errorf("half_open_probes = %d: the breaker is %s, want %s", probes, got.Breaker, want)
		}
		if again := w.s.OpenChannels(start, c); len(again) != 0 {
			t.Error("a channel that isn't open any more would be probed")
		}
		if got := w.sends(0, true); got != "a" || w.s.Report(start, open[0]).Breaker != engine.BreakerClosed {
			t.Errorf("the next request began on %s", got)
		}
	}
	f(0, engine.BreakerClosed)
	f(1, engine.BreakerHalfOpen)

	c := newCrew(t, 1, engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Hour})
	c.sends(0, false)
	if open := c.s.OpenChannels(start, c.catalog); len(open) != 0 {
		t.Errorf("a group without a health check would be probed: %s", walked(open))
	}
}

func TestKeysTakeTurns(t *testing.T) {
	t.Parallel()
	s := spec(1)
	s.Providers[0].Keys = nil
	for _, k := range []string{"k1", "k2", "k3"} {
		s.Providers[0].Keys = append(s.Providers[0].Keys, engine.KeySpec{Name: k, Secret: engine.NewSecret("secret of " + k)})
	}
	c, st := catalog(t, s), engine.NewStanding()
	keys := func(n int) string {
		var got []string
		for range n {
			req := asks(c)
			chain, refusal := c.Route(start, st, req, half{})
			if refusal != nil {
				wait, _ := refusal.RetryAfter.Get()
				return fmt.Sprintf("refused %d for %v", refusal.Kind, wait)
			}
			_, ins := engine.Begin(start, req, chain, st, half{})
			got = append(got, ins.(*engine.Send).Key.Name())
		}
		return strings.Join(got, " ")
	}
	fails := func(verdict engine.Verdict, effects ...engine.Effect) (then string) {
		p := play{
			outcomes: []enginetest.Outcome{failing(401), good}, verdict: verdict, standing: st,
			decisions: []engine.Decision{{Action: engine.Retry, Delay: engine.WaitOf(0), Effects: effects}},
		}
		tr := p.run(t, c)
		for _, s := range tr.Sent {
			then += s.Send.Key.Name() + " "
		}
		return then
	}
	cool := engine.Effect{Kind: engine.EffectCoolKey, For: time.Hour}
	step := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	step("in turn", keys(5), "k1 k2 k3 k1 k2")
	step("a provider's failure cools none", fails(engine.Verdict{Class: engine.ClassProviderTransient}), "k3 k1 ")
	step("still in turn", keys(2), "k2 k3")
	step("a key's fault takes the next, cooled or not", fails(engine.Verdict{Class: engine.ClassKeyFault, Scope: engine.ScopeKey}), "k1 k2 ")
	step("a cooled key rests", fails(engine.Verdict{Class: engine.ClassKeyFault, Scope: engine.ScopeKey}, cool), "k3 k1 ")
	step("the others share its turns", keys(4), "k2 k1 k2 k1")

	// A reload that mends the key's secret has it back at once; one that doesn't hasn't.
	c = catalog(t, s)
	step("after a reload without a change", keys(4), "k2 k1 k2 k1")
	s.Providers[0].Keys = append([]engine.KeySpec(nil), s.Providers[0].Keys...)
	s.Providers[0].Keys[2].Secret = engine.NewSecret("mended")
	before := c
	c = catalog(t, s)
	step("after its secret was replaced", keys(3), "k2 k3 k1")
	if _, cools := st.Cooling(start, before.Providers()[0], before.Providers()[0].Keys()[2]); !cools {
		t.Error("requests that still use the old secret take it for good")
	}
	for range 3 {
		fails(engine.Verdict{Class: engine.ClassKeyFault, Scope: engine.ScopeKey}, cool)
	}
	step("all keys cool", keys(1), fmt.Sprintf("refused %d for 1h0m1s", engine.RefusalNoChannel))
}
