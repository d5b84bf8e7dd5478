package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestNobodyUsesUpTheRetryBudgetAlone has one caller take all that it gets, while
// others pay and earn at any times: what is left of the cap, the floor and their own
// earnings is always enough for what they have not used of their half.
func TestNobodyUsesUpTheRetryBudgetAlone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 31))
		c := RetryBudgetSpec{Ratio: r.Float64(), Floor: r.Float64(), Cap: 4 + 96*r.Float64()}
		s := NewStanding()
		greedy, honest := &Caller{spec: CallerSpec{Name: "greedy"}}, &Caller{spec: CallerSpec{Name: "honest"}}
		now := adoptStart
		spent := 0.0 // of the honest caller's half
		for step := range 200 {
			now = now.Add(time.Duration(r.IntN(2000)) * time.Millisecond)
			for s.pay(now, bill{"g", greedy, c, float64(1 + r.IntN(2))}) {
			}
			if spent+1 <= c.Cap/2 {
				if !s.pay(now, bill{"g", honest, c, 1}) {
					t.Fatalf("seed %d step %d: %g of %g tokens are used, and the group has %g", seed, step, spent, c.Cap/2, s.tokens(now, purse{"g", ""}, c))
				}
				spent++
			}
		}
	}
}

// TestOneCallerAloneHasTheWholeBudget and so has one that is the only one left to pay.
func TestOneCallerAloneHasTheWholeBudget(t *testing.T) {
	t.Parallel()
	f := func(caller *Caller, budget, price float64, want int) {
		t.Helper()
		s, got := NewStanding(), 0
		b := bill{"g", caller, RetryBudgetSpec{Cap: budget}, price}
		for s.affords(adoptStart, b) && s.pay(adoptStart, b) {
			got++
		}
		if got != want {
			t.Errorf("%d attempts at %g of %g tokens, want %d", got, price, budget, want)
		}
		if s.pay(adoptStart, b) {
			t.Error("what isn't afforded is paid")
		}
	}
	one := &Caller{spec: CallerSpec{Name: "x"}}
	f(nil, 100, 1, 100) // the only one
	f(one, 100, 1, 50)
	f(one, 100, 2, 25)
	f(one, 2, 2, 1)
	f(one, 1, 1, 1)
	f(one, 1, 2, 0)
	f(one, 0, 1, 0)
}

// TestSharesThatAreFullAgainAreForgotten has very many callers pay once.
func TestSharesThatAreFullAgainAreForgotten(t *testing.T) {
	t.Parallel()
	s, c := NewStanding(), RetryBudgetSpec{Ratio: 0.1, Floor: 1000, Cap: 100}
	most := 0
	for i := range 20 * fewBudgets {
		caller := &Caller{spec: CallerSpec{Name: fmt.Sprint("caller", i)}}
		if !s.pay(adoptStart.Add(time.Duration(i)*time.Millisecond), bill{"g", caller, c, 1}) {
			t.Fatalf("caller %d can't pay", i)
		}
		most = max(most, len(s.budgets))
	}
	if most > fewBudgets+1 {
		t.Errorf("%d budgets were kept", most)
	}
}

// TestManyCallersWhoFailDoNotHoldUp counts how often those who have failed are looked
// through while nobody can be forgotten.
func TestManyCallersWhoFailDoNotHoldUp(t *testing.T) {
	t.Parallel()
	st := &channelState{spec: BreakerSpec{Mode: BreakerWindow, Failures: 5, Window: time.Hour, OpenFor: time.Minute}}
	sweeps, limit := 0, 0
	for i := range 10_000 {
		st.ownOf(adoptStart, fmt.Sprint(i)).breaker.failures = []fault{{adoptStart, ""}}
		if st.manyOwn != limit {
			sweeps, limit = sweeps+1, st.manyOwn
		}
	}
	if len(st.own) != 10_000 || sweeps > 10 {
		t.Errorf("%d callers are known after %d sweeps", len(st.own), sweeps)
	}
	st.sweep(adoptStart.Add(2 * time.Hour))
	if len(st.own) != 0 {
		t.Errorf("of %d callers nothing rests", len(st.own))
	}
}

// TestWhatIsNotPaidUsesNothingUp asks for an attempt that the budget can't pay, on a channel
// whose group has a rate and whose breaker would take it as a probe.
func TestWhatIsNotPaidUsesNothingUp(t *testing.T) {
	t.Parallel()
	s, c := NewStanding(), generationOf(t, 1)
	g := c.groups[0]
	g.spec.Breaker.HalfOpenProbes = 1
	ch := g.channels[0]
	s.channel(ch).breaker.open(adoptStart, g.spec.Breaker, "")
	now := adoptStart.Add(time.Hour)
	if _, _, lock := s.hire(now, ch, view{model: "m1"}, nil, bill{"g1", nil, RetryBudgetSpec{}, 1}); lock != InterlockRetryBudget {
		t.Errorf("the interlock is %q", lock)
	}
	if used := s.groupRate(g).usedAt(now); used != 0 {
		t.Errorf("%d requests count against the rate", used)
	}
	if _, _, lock := s.hire(now, ch, view{model: "m1"}, nil, bill{"g1", nil, RetryBudgetSpec{}, 0}); lock != InterlockNone {
		t.Errorf("the probe is forbidden by %q", lock)
	}
}
