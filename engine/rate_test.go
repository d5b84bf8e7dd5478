package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// limited is a catalog of one group that admits rpm requests a minute.
func limited(t *testing.T, rpm int) *engine.Catalog {
	t.Helper()
	s := spec(1)
	s.Groups[0].RPM = rpm
	return catalog(t, s)
}

// admitted says whether a request that comes then is admitted, and otherwise when the
// next one would be.
func admitted(c *engine.Catalog, s *engine.Standing, now time.Time) (time.Duration, bool) {
	_, refusal := c.Route(now, s, asks(c), half{})
	if refusal == nil {
		return 0, true
	}
	wait, _ := refusal.RetryAfter.Get()
	return wait, false
}

func TestRatesAdmitWhatTheySay(t *testing.T) {
	t.Parallel()
	f := func(name string, rpm int, offered int, every time.Duration, want int) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := limited(t, rpm), engine.NewStanding()
			got := 0
			for i := range offered {
				if _, ok := admitted(c, s, start.Add(time.Duration(i)*every)); ok {
					got++
				}
			}
			if got != want {
				t.Errorf("%d of %d requests every %v were admitted at %d a minute, want %d", got, offered, every, rpm, want)
			}
		})
	}
	f("one each tenth of a second", 600, 600, 100*time.Millisecond, 600)
	f("twice as many as allowed", 600, 1200, 50*time.Millisecond, 600)
	f("all at once after an idle minute", 600, 1000, 0, 600)
	f("steadily for ten minutes", 600, 6000, 100*time.Millisecond, 6000)
	f("too many for ten minutes", 600, 12000, 50*time.Millisecond, 6000)
	f("two that come together", 2, 3, 0, 2)
	f("no limit", 0, 1000, 0, 1000)
}

// TestRatesAgreeWithTheirTwin compares the rate with a list of all requests: never more
// than the rate in 59 seconds, never a refusal while a whole minute has less, and a
// refusal's wait is exact.
func TestRatesAgreeWithTheirTwin(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 22))
		rpm := 1 + r.IntN(20)
		c, s := limited(t, rpm), engine.NewStanding()
		now := start
		var all []time.Time
		within := func(d time.Duration) int {
			n := 0
			for _, at := range all {
				if at.After(now.Add(-d)) {
					n++
				}
			}
			return n
		}
		for range 200 {
			now = now.Add(time.Duration(r.Int64N(int64(8 * time.Second / time.Duration(1+r.IntN(8))))))
			if r.IntN(40) == 0 {
				now = now.Add(time.Duration(r.IntN(200)) * time.Second)
			}
			wait, ok := admitted(c, s, now)
			switch {
			case ok && within(59*time.Second) >= rpm:
				t.Fatalf("seed %d: admitted although 59 seconds have %d of %d", seed, within(59*time.Second), rpm)
			case !ok && within(time.Minute) < rpm:
				t.Fatalf("seed %d: refused although a minute has %d of %d", seed, within(time.Minute), rpm)
			case ok:
				all = append(all, now)
			case wait <= 0 || wait > time.Minute:
				t.Fatalf("seed %d: refused for %v", seed, wait)
			default:
				if _, early := admitted(c, s, now.Add(wait-1)); early {
					t.Fatalf("seed %d: admitted before the Retry-After of %v", seed, wait)
				}
				now = now.Add(wait)
				if _, ok := admitted(c, s, now); !ok {
					t.Fatalf("seed %d: refused again after the Retry-After of %v", seed, wait)
				}
				all = append(all, now)
			}
		}
	}
}

func TestAClockSetBackLocksNobodyOut(t *testing.T) {
	t.Parallel()
	c, s := limited(t, 2), engine.NewStanding()
	now := start.Round(0).Add(time.Hour)
	admitted(c, s, now)
	if _, ok := admitted(c, s, now.Add(-30*time.Minute)); !ok {
		t.Error("the second of two was refused")
	}
	if wait, ok := admitted(c, s, now.Add(-30*time.Minute)); ok || wait <= 0 {
		t.Errorf("the third was admitted %v, or waits %v", ok, wait)
	}
}

func TestRatesAreShared(t *testing.T) {
	t.Parallel()
	c, s := limited(t, 10), engine.NewStanding()
	count := func(now time.Time) int {
		n := 0
		for range 20 {
			if _, ok := admitted(c, s, now); ok {
				n++
			}
		}
		return n
	}
	s.LearnRate("group g", 9, start.Add(time.Hour)) // nothing is known of it yet, so it is left alone
	if n := count(start); n != 10 {
		t.Errorf("alone: %d of 10", n)
	}
	spent := map[string]int{}
	s.Spent(start, func(rate string, used int) {
		spent[rate] = used
		s.LearnRate("of nobody", 1, start) // whoever tells may be slow and may ask: no lock is held
	})
	if len(spent) != 1 || spent["group g"] != 10 {
		t.Errorf("to publish: %v", spent)
	}
	minute := start.Add(61 * time.Second)
	s.LearnRate("group g", 7, minute.Add(time.Second))
	if n := count(minute); n != 3 {
		t.Errorf("while others have 7 of 10: %d admitted", n)
	}
	if n := count(minute.Add(2 * time.Second)); n != 7 {
		t.Errorf("once that isn't believed any more: %d more admitted", n)
	}
	s.LearnRate("group g", 1000, minute.Add(time.Hour))
	if wait, ok := admitted(c, s, minute.Add(2*time.Minute)); ok || wait <= 0 {
		t.Errorf("others have all: admitted %v, wait %v", ok, wait)
	}
	s.Forget()
	if _, ok := admitted(c, s, minute.Add(2*time.Minute)); !ok {
		t.Error("what was forgotten still counts")
	}
	s.Spent(minute.Add(time.Hour), func(rate string, used int) { t.Errorf("an hour later %s has %d", rate, used) })
}

// TestFullGroupsGiveWayInOrder fills the primary group, then its fallback, then what the
// caller itself may ask for. A request that is refused uses none of it up.
func TestFullGroupsGiveWayInOrder(t *testing.T) {
	t.Parallel()
	f := func(name string, rpm int, want ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := smart(engine.StrategyFailover)
			s.Callers[0].Routing, s.Callers[0].RPM = engine.RoutingOrdered, rpm
			s.Groups[0].RPM, s.Groups[1].RPM = 1, 2
			c, st := catalog(t, s), engine.NewStanding()
			for i, want := range want {
				chain, refusal := c.Route(start.Add(time.Duration(i)*time.Second), st, asks(c), half{})
				got := ""
				if refusal != nil {
					wait, _ := refusal.RetryAfter.Get()
					got = refusal.Message + " " + wait.String()
				} else {
					got = chain.Group().Name() + " " + walked(chain.Channels())
				}
				if got != want {
					t.Errorf("request %d: got %s, want %s", i+1, got, want)
				}
			}
		})
	}
	f("groups", 4, "g abcd", "h cd", "h cd", `every route group for model "m" has spent its rate 57s`, `every route group for model "m" has spent its rate 56s`)
	f("caller", 2, "g abcd", "h cd", `caller "t" has spent its rate of 2 requests a minute 58s`)
}

// TestRefusalsUseNoRateUp asks while no channel is there, and then counts who is let in.
func TestRefusalsUseNoRateUp(t *testing.T) {
	t.Parallel()
	s := smart(engine.StrategyFailover)
	s.Callers[0].Routing, s.Callers[0].RPM = engine.RoutingOrdered, 3
	s.Groups[0].RPM, s.Groups[1].RPM = 3, 3
	c, st := catalog(t, s), engine.NewStanding()
	for _, name := range []string{"a", "b", "c", "d"} {
		disable(c, st, name)
	}
	for range 10 {
		if _, refusal := c.Route(start, st, asks(c), half{}); refusal == nil || refusal.Kind != engine.RefusalNoChannel {
			t.Fatalf("with all channels disabled: %+v", refusal)
		}
	}
	st.Reset(start, engine.Fact{})
	for i := range 3 {
		if _, refusal := c.Route(start, st, asks(c), half{}); refusal != nil {
			t.Errorf("request %d: %s", i+1, refusal.Message)
		}
	}
	if _, refusal := c.Route(start, st, asks(c), half{}); refusal == nil {
		t.Error("a fourth one was admitted")
	}
}

func TestExplainKnowsSpentRates(t *testing.T) {
	t.Parallel()
	s := smart(engine.StrategyFailover)
	s.Callers[0].Routing = engine.RoutingOrdered
	s.Groups[0].RPM, s.Groups[1].RPM = 1, 1
	c, st := catalog(t, s), engine.NewStanding()
	f := func(want string) {
		t.Helper()
		chain, outs, _ := c.Explain(start, st, asks(c), half{})
		got := chain.Group().Name() + " " + walked(chain.Channels()) + " |"
		for _, o := range outs {
			got += fmt.Sprintf(" %s %s %v", o.Channel.Name(), o.Why, o.Until.Sub(start))
		}
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if _, refusal := c.Route(start, st, asks(c), half{}); (refusal == nil) != (len(chain.Channels()) > 0) {
			t.Errorf("Explain and Route disagree: %s and %+v", got, refusal)
		}
	}
	f("g abcd |")
	f("h cd | a group rate is spent 1m0s b group rate is spent 1m0s")
	f("g  | a group rate is spent 1m0s b group rate is spent 1m0s c group rate is spent 1m0s d group rate is spent 1m0s")
}
