package engine_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

// barredHere says whether a channel is barred for a caller by what this instance knows,
// given what is set aside.
func barredHere(list []engine.Aside, ch *engine.Channel, caller, model string) bool {
	cooling := map[string]bool{}
	for _, a := range list {
		if a.Abroad || a.Caller != "" && a.Caller != caller {
			continue
		}
		if a.Kind == engine.FactKeyCooled {
			if a.Provider == ch.Provider().Name() {
				cooling[a.Key] = true
			}
			continue
		}
		if a.Group != ch.Group().Name() || a.Channel != ch.Name() || a.HalfOpen || a.Kind == engine.FactModelEvicted && a.Model != model {
			continue
		}
		return true
	}
	return len(cooling) == len(ch.Provider().Keys())
}

// ineligible names what is wrong with the channels and keys that a request's attempts
// went to, as far as what was known at each one's start tells.
func ineligible(spec engine.Spec, tr enginetest.Trace) string {
	req := tr.Request
	walked := map[*engine.Channel]bool{}
	for _, s := range tr.Sent {
		ch := s.Send.Channel
		walked[ch] = true
		switch {
		case barredHere(s.Aside, ch, req.Caller.Name(), req.Contract.Model):
			return fmt.Sprintf("eligible: an attempt went to %s/%s, which is barred: %+v", ch.Group().Name(), ch.Name(), s.Aside)
		case !slices.Contains(tr.Chain.Channels(), ch):
			return "eligible: an attempt went to a channel that isn't in the chain"
		case !slices.Contains(req.Caller.Groups(), ch.Group()):
			return "eligible: an attempt went to a group that the caller may not use"
		case slices.ContainsFunc(s.Aside, func(a engine.Aside) bool {
			return a.Kind == engine.FactKeyCooled && !a.Abroad && a.Provider == ch.Provider().Name() && a.Key == s.Send.Key.Name()
		}):
			return "eligible: an attempt went out with a key that cools"
		}
	}
	if hops := specOf(spec, tr.Chain.Group().Name()).MaxHops; hops > 0 && max(len(walked), len(tr.Chain.Channels())) > hops {
		return fmt.Sprintf("eligible: %d channels in a chain of at most %d", max(len(walked), len(tr.Chain.Channels())), hops)
	}
	return ""
}

// refusedFor names what is wrong with a refusal before any attempt: nobody is refused as
// long as one channel is neither barred by what this instance knows nor behind a rate
// that may be spent.
func refusedFor(spec engine.Spec, w *enginetest.World, tr enginetest.Trace, rates *rateTwin) string {
	caller := tr.Request.Caller
	if n := callerOf(spec, caller.Name()).RPM; n > 0 && rates.maySpend(engine.CallerRate(caller.Name()), n, w.Now) {
		return ""
	}
	list := w.Standing.List(w.Now)
	for _, g := range caller.Groups() {
		if n := specOf(spec, g.Name()).RPM; n > 0 && rates.maySpend(engine.GroupRate(g.Name()), n, w.Now) {
			continue
		}
		for _, ch := range g.Channels() {
			if !barredHere(list, ch, caller.Name(), tr.Request.Contract.Model) {
				return fmt.Sprintf("refused (%s) although %s/%s could serve; set aside: %+v", tr.Refusal.Message, g.Name(), ch.Name(), list)
			}
		}
	}
	return ""
}

func specOf(spec engine.Spec, group string) engine.GroupSpec {
	i := slices.IndexFunc(spec.Groups, func(g engine.GroupSpec) bool { return g.Name == group })
	return spec.Groups[i]
}

// callerOf is the zero specification for the caller anonymous.
func callerOf(spec engine.Spec, name string) engine.CallerSpec {
	i := slices.IndexFunc(spec.Callers, func(c engine.CallerSpec) bool { return c.Name == name })
	if i < 0 {
		return engine.CallerSpec{}
	}
	return spec.Callers[i]
}

// rateTwin keeps every request that a rate has admitted.
type rateTwin struct {
	all  map[string][]time.Time
	told map[string]told
}

// told is what others have admitted.
type told struct {
	n     int
	until time.Time
}

func newRateTwin() *rateTwin { return &rateTwin{map[string][]time.Time{}, map[string]told{}} }

func (r *rateTwin) others(rate string, n int, until time.Time) { r.told[rate] = told{n, until} }

func (r *rateTwin) within(rate string, d time.Duration, now time.Time) int {
	n := 0
	for _, at := range r.all[rate] {
		if at.After(now.Add(-d)) {
			n++
		}
	}
	return n
}

// maySpend says whether a rate of n may be spent: the engine lets go of whole seconds, so
// a minute is 59 to 60 of them.
func (r *rateTwin) maySpend(rate string, n int, now time.Time) bool {
	others := 0
	if t := r.told[rate]; now.Before(t.until) {
		others = t.n
	}
	return r.within(rate, time.Minute, now)+others >= n
}

// admitted counts what a request and its attempts use of the rates, and names one that
// admits too many.
func (r *rateTwin) admitted(spec engine.Spec, tr enginetest.Trace) string {
	caller := callerOf(spec, tr.Request.Caller.Name())
	broken := ""
	count := func(rate string, n int, at time.Time) {
		if r.all[rate] = append(r.all[rate], at); n > 0 && r.within(rate, 59*time.Second, at) > n {
			broken = fmt.Sprintf("rate: %d of %d on %s within 59 seconds", r.within(rate, 59*time.Second, at), n, rate)
		}
	}
	count(engine.CallerRate(caller.Name), caller.RPM, tr.Request.Arrived)
	admitted := tr.Chain.Group().Name()
	if caller.Routing == engine.RoutingSmart {
		admitted = ""
	} else {
		count(engine.GroupRate(admitted), specOf(spec, admitted).RPM, tr.Request.Arrived)
	}
	for _, s := range tr.Sent {
		if g := s.Send.Channel.Group().Name(); g != admitted {
			count(engine.GroupRate(g), specOf(spec, g).RPM, s.At)
		}
	}
	return broken
}

// tokenTwin counts what extra attempts have taken from the retry budgets, and at most
// may have.
type tokenTwin struct {
	began        time.Time
	paid, earned map[string]float64
}

// spent counts a trace, and names a budget that has paid too much: the group's, and,
// where there are several callers, the share of one.
func (t *tokenTwin) spent(spec engine.Spec, tr enginetest.Trace, now time.Time) string {
	p, e := retryTokens(tr)
	budget, group := spec.RetryBudget, tr.Chain.Group().Name()
	check := func(purse string, c engine.RetryBudgetSpec) string {
		t.paid[purse] += p
		t.earned[purse] += e
		if most := c.Cap + t.earned[purse] + c.Floor*now.Sub(t.began).Seconds(); t.paid[purse] > most+1e-6 {
			return fmt.Sprintf("retry_budget: extra attempts of %s took %g tokens of at most %g", purse, t.paid[purse], most)
		}
		return ""
	}
	broken := check(group, budget)
	if broken == "" && len(spec.Callers) > 1 {
		budget.Floor, budget.Cap = budget.Floor/2, max(budget.Cap/2, min(budget.Cap, 2))
		broken = check(group+" by "+tr.Request.Caller.Name(), budget)
	}
	return broken
}
