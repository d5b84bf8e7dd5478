package engine

import (
	"fmt"
	"testing"
	"time"
)

var adoptStart = time.Unix(1_800_000_000, 0)

// generationOf is a configuration all of whose names are of one generation.
func generationOf(t *testing.T, n int) *Catalog {
	t.Helper()
	name := func(what string) string { return fmt.Sprintf("%s%d", what, n) }
	c, problems := NewCatalog(Spec{
		RetryBudget: RetryBudgetSpec{Ratio: 0.1, Floor: 0.1, Cap: 100},
		Providers: []ProviderSpec{{
			Name: name("p"), BaseURL: "http://127.0.0.1:1", Auth: AuthBearer,
			Keys:   []KeySpec{{Name: "main", Secret: NewSecret(name("secret"))}},
			Limits: Limits{Connect: time.Second, Headers: time.Second, Gate: time.Second, Idle: time.Second},
		}},
		Groups: []GroupSpec{{
			Name: name("g"), Models: []string{name("m")}, Endpoints: []Endpoint{OpenAIChat}, RPM: 600,
			Channels: []ChannelSpec{{Name: "a", Provider: name("p")}},
			Budget:   BudgetSpec{Attempts: 2, PerRoute: 2, Deadline: time.Minute},
			Breaker:  BreakerSpec{Mode: BreakerConsecutive, Failures: 5, OpenFor: time.Minute},
		}},
		Callers: []CallerSpec{
			{Name: name("x"), KeySHA256: fmt.Sprintf("%064x", 2*n+1), Groups: []string{name("g")}, RPM: 600},
			{Name: name("y"), KeySHA256: fmt.Sprintf("%064x", 2*n+2), Groups: []string{name("g")}},
		},
	})
	if c == nil {
		t.Fatalf("%+v", problems)
	}
	return c
}

// TestReloadsDoNotAddUp has a hundred configurations follow each other, each of which
// leaves something of every kind behind.
func TestReloadsDoNotAddUp(t *testing.T) {
	t.Parallel()
	s := NewStanding()
	for n := range 100 {
		c := generationOf(t, n)
		caller, ch := c.callers[0], c.groups[0].channels[0]
		want := Contract{c.groups[0].spec.Models[0], OpenAIChat}
		req := &Request{ID: "r", Caller: caller, Contract: want, Arrived: adoptStart, Idempotency: Idempotency{ReplaySafe: true, Effects: EffectsNone}}
		chain, refusal := c.Route(adoptStart, s, req, dice(0.5))
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		p, key, lock := s.hire(adoptStart, ch, chain.view(), nil, bill{c.groups[0].spec.Name, caller, c.retry, 1})
		if lock != InterlockNone {
			t.Fatalf("the channel can't be had: %s", lock)
		}
		s.apply(adoptStart, []Effect{
			{Kind: EffectCountFailure}, {Kind: EffectCoolKey, For: time.Hour}, {Kind: EffectEvictModel, For: time.Hour}, {Kind: EffectQuarantineChannel, For: time.Hour, After: 3},
		}, ch, key, want.Model, p)
	}
	kept := map[string]int{
		"channels": len(s.channels), "keys": len(s.keys), "providers": len(s.providers), "rates": len(s.rates) - 1, "budgets": len(s.budgets) - 1,
	}
	for what, n := range kept {
		if n != 1 {
			t.Errorf("%d %s are kept of a configuration with one", n, what)
		}
	}
}

// TestAReloadKeepsWhatStays has the same names in a new configuration, but for one caller
// and one model.
func TestAReloadKeepsWhatStays(t *testing.T) {
	t.Parallel()
	s, old := NewStanding(), generationOf(t, 1)
	s.Adopt(old)
	ch := old.groups[0].channels[0]
	st := s.channel(ch)
	for _, c := range old.callers {
		st.ownOf(adoptStart, c.spec.Name).breaker.failures = []fault{{adoptStart, ""}}
	}
	st.evict("m1", aside{here: adoptStart.Add(time.Hour)})
	st.evict("another", aside{here: adoptStart.Add(time.Hour)})
	next := generationOf(t, 1)
	next.callers = next.callers[:1]
	s.Adopt(next)
	if s.channel(next.groups[0].channels[0]) != st {
		t.Error("the channel begins anew")
	}
	if len(st.own) != 1 || st.own["x1"] == nil || len(st.own["x1"].breaker.failures) != 1 {
		t.Errorf("of callers x1 and y1, x1 is left, and %v is known", st.own)
	}
	if len(st.evictions) != 1 || st.evictions["m1"].here.IsZero() {
		t.Errorf("of models m1 and another, m1 is served, and %v are evicted", st.evictions)
	}
}

// TestWhatAHandHasTakenOutStaysOut loses a channel from the configuration and has it back.
func TestWhatAHandHasTakenOutStaysOut(t *testing.T) {
	t.Parallel()
	s, old := NewStanding(), generationOf(t, 1)
	s.Adopt(old)
	s.Disable(old.groups[0].channels[0], time.Time{})
	s.Adopt(generationOf(t, 2))
	if list := s.List(adoptStart); len(list) != 1 || list[0].Group != "g1" {
		t.Errorf("set aside are %+v", list)
	}
	back := generationOf(t, 1)
	s.Adopt(back)
	if why, _ := s.bar(adoptStart, back.groups[0].channels[0], view{}); why != BarDisabled {
		t.Errorf("the channel that is back is %q", why)
	}
}

// dice always shows the same.
type dice float64

func (d dice) Float64() float64 { return float64(d) }
