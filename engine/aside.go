package engine

import (
	"cmp"
	"slices"
	"time"
)

// Aside is one thing that is set aside, for people and for a record of changes.
type Aside struct {
	Fact
	// Abroad says that another instance has told it and nothing of it was seen here.
	Abroad bool
	// Caller is for whom alone a breaker is open or a channel quarantined; empty: for
	// everybody.
	Caller string
	// HalfOpen says that a breaker lets probes through.
	HalfOpen bool
}

// forever is an end that never comes.
func forever() time.Time { return time.Unix(253402300799, 0) } // the last second of the year 9999

// endOf gives the time as people see it: none for forever.
func endOf(t time.Time) time.Time {
	if t.Equal(forever()) {
		return time.Time{}
	}
	return t
}

// List returns what is set aside now, in the order of kinds and names: open and half-open
// breakers, cooling keys, quarantined and disabled channels, evicted models.
func (s *Standing) List(now time.Time) []Aside { return s.sweepAside(now, &Fact{}, false) }

// Evicted returns the models that are evicted now, each with its channel.
func (s *Standing) Evicted(now time.Time) []Aside {
	return s.sweepAside(now, &Fact{Kind: FactModelEvicted}, false)
}

// Reset lifts everything that is like a fact, where an empty name and no kind fit all,
// and returns what it has lifted. A breaker that is reset is closed and has counted
// nothing. Other instances are told to forget what this one has told them; what they
// have seen themselves they keep.
func (s *Standing) Reset(now time.Time, like Fact) []Aside {
	lifted := s.sweepAside(now, &like, true)
	for _, a := range lifted {
		if !a.Abroad && a.Caller == "" && a.Kind != FactChannelDisabled {
			f := a.Fact
			f.Until, f.Lifted = time.Time{}, true
			s.tell([]Fact{f})
		}
	}
	return lifted
}

// Disable takes a channel out by hand until a time, the zero time for until [Standing.Reset]
// puts it back. Attempts that are under way end as they would have, so that it drains. It
// returns what is set aside now. A channel stays disabled over a reload and until the
// process ends, on this instance alone.
func (s *Standing) Disable(ch *Channel, until time.Time) Aside {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until.IsZero() {
		until = forever()
	}
	st := s.channel(ch)
	st.disabled = until
	st.stir(until)
	return Aside{Fact: st.fact(FactChannelDisabled, "", endOf(until))}
}

// sweepAside collects what is set aside and like a fact, and lifts it where that is asked.
func (s *Standing) sweepAside(now time.Time, like *Fact, lift bool) []Aside {
	found := s.collectAside(now, like, lift)
	slices.SortFunc(found, func(x, y Aside) int { // without the lock: there may be thousands
		return cmp.Or(x.compare(&y.Fact), cmp.Compare(x.Caller, y.Caller))
	})
	return found
}

func (s *Standing) collectAside(now time.Time, like *Fact, lift bool) []Aside {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Aside
	meet := func(a Aside) bool {
		if !a.like(like) {
			return false
		}
		found = append(found, a)
		return lift
	}
	if like.Kind != FactKeyCooled {
		for _, st := range s.channels {
			st.meet(now, meet)
		}
	}
	if like.Kind == FactNothing || like.Kind == FactKeyCooled {
		for _, st := range s.keys {
			if now.Before(st.cooling.until(true)) && meet(Aside{Fact: st.fact(st.cooling.until(true)), Abroad: !now.Before(st.cooling.here)}) {
				st.cooling = aside{}
			}
		}
	}
	return found
}

// meet shows what of a channel is set aside, and lifts it where the answer is yes.
func (st *channelState) meet(now time.Time, lift func(Aside) bool) {
	if now.Before(st.disabled) && lift(Aside{Fact: st.fact(FactChannelDisabled, "", endOf(st.disabled))}) {
		st.disabled = time.Time{}
	}
	if until := st.confined.until(true); now.Before(until) &&
		lift(Aside{Fact: st.fact(FactChannelQuarantined, "", until), Abroad: !now.Before(st.confined.here)}) {
		st.confined = aside{}
	}
	for model, gone := range st.evictions {
		if until := gone.until(true); !now.Before(until) ||
			lift(Aside{Fact: st.fact(FactModelEvicted, model, until), Abroad: !now.Before(gone.here)}) {
			delete(st.evictions, model)
		}
	}
	st.meetBreaker(now, "", &st.breaker, lift)
	for caller, o := range st.own {
		st.meetBreaker(now, caller, &o.breaker, lift)
		if now.Before(o.confined) && lift(Aside{Fact: st.fact(FactChannelQuarantined, "", o.confined), Caller: caller}) {
			o.confined = time.Time{}
		}
	}
	if now.Before(st.abroad) && st.breaker.state(now, st.spec) == BreakerClosed &&
		lift(Aside{Fact: st.fact(FactBreakerOpen, "", st.abroad), Abroad: true}) {
		st.abroad = time.Time{}
	}
}

func (st *channelState) meetBreaker(now time.Time, caller string, b *breaker, lift func(Aside) bool) {
	state := b.state(now, st.spec)
	if state == BreakerClosed {
		return
	}
	a := Aside{Fact: st.fact(FactBreakerOpen, "", time.Time{}), Caller: caller, HalfOpen: state == BreakerHalfOpen}
	if state == BreakerOpen {
		a.Until = b.openUntil
	}
	if lift(a) {
		b.next()
		if caller == "" {
			st.abroad = time.Time{}
		}
	}
}
