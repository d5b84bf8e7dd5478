package engine

import (
	"slices"
	"sync/atomic"
	"time"
)

// A standing keeps names, and a request walks channels, keys, groups and callers. So
// that no name is looked up on the way, each of these has a seat: the state that the
// standing which asked last keeps under its name. A seat is a memory of a lookup and
// nothing else. It may be missed, as when two standings share a catalog in a test, and
// the states of one name are the same ones before and after a reload.

type channelID struct{ group, channel string }

// keyID names a credential. The print is of its secret, so that a secret that was
// replaced under its old name begins anew, and the calls that still use the old one
// can't blame it.
type keyID struct {
	provider, key string
	print         keyPrint
}

// channelState is what a standing knows of one channel. Its standing's mutex guards it.
type channelState struct {
	owner     *Standing
	id        channelID
	breaker   breaker
	own       map[string]*own // by caller: what rests for this caller alone
	manyOwn   int             // when own is swept
	suspects  []fault         // what may make a quarantine
	confined  aside
	abroad    time.Time        // another instance's breaker is open until then
	disabled  time.Time        // by hand
	evictions map[string]aside // by model
	restless  time.Time        // nothing of it rests from then on; see settle
	turns     [2]int           // the strategy's saved turns: in its own group, in smart routing

	// As the latest catalog that names the channel has them.
	generation int // how many catalogs had been adopted by then
	spec       BreakerSpec
	models     []string
}

// own is what rests of a channel for one caller alone, because no other has seen it fail.
type own struct {
	breaker  breaker
	suspects []fault
	confined time.Time
}

// keyState is what a standing knows of one key.
type keyState struct {
	owner    *Standing
	id       keyID
	provider *providerState
	cooling  aside

	generation int // as a channel's
}

// providerState is whose turn it is among a provider's keys.
type providerState struct {
	owner    *Standing
	next     int
	restless time.Time // no key cools later than this

	generation int // as a channel's
}

// rateState is how much of a caller's or a group's rate is used.
type rateState struct {
	owner *Standing
	rate
}

// aside is until when something is set aside: for what was seen here, and for what
// other instances have told. They are kept apart, because what others say may shape a
// chain and never empties one.
type aside struct{ here, abroad time.Time }

// until returns when both are over, or only what was seen here.
func (a aside) until(abroad bool) time.Time {
	if abroad && a.abroad.After(a.here) {
		return a.abroad
	}
	return a.here
}

type (
	channelSeat  struct{ at atomic.Pointer[channelState] }
	keySeat      struct{ at atomic.Pointer[keyState] }
	providerSeat struct{ at atomic.Pointer[providerState] }
	rateSeat     struct{ at atomic.Pointer[rateState] }
)

// channel returns the state of ch. s.mu is held here and below.
func (s *Standing) channel(ch *Channel) *channelState {
	if st := ch.seat.at.Load(); st != nil && st.owner == s {
		return st
	}
	st := s.channels[ch.id()]
	if st == nil {
		st = &channelState{owner: s, id: ch.id(), spec: ch.group.spec.Breaker, models: ch.group.spec.Models}
		s.channels[st.id] = st
	}
	ch.seat.at.Store(st)
	return st
}

// stir notes that something of the channel rests until then, or perhaps does.
func (st *channelState) stir(until time.Time) { st.restless = later(st.restless, until) }

// quiet says at a glance that nothing of the channel rests for anybody.
func (st *channelState) quiet(now time.Time) bool { return !now.Before(st.restless) }

// settle works out until when something rests. What ends at no certain time, such as a
// half-open breaker, keeps the channel restless until it is settled again.
func (st *channelState) settle() {
	st.restless = later(later(st.disabled, st.confined.until(true)), st.abroad)
	for _, gone := range st.evictions {
		st.stir(gone.until(true))
	}
	if len(st.own) > 0 || !st.breaker.closed() {
		st.stir(forever())
	}
}

func (st *keyState) stir(until time.Time) { st.provider.restless = later(st.provider.restless, until) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (st *channelState) serves(model string) bool { return slices.Contains(st.models, model) }

func (s *Standing) key(p *Provider, k *Key) *keyState {
	if st := k.seat.at.Load(); st != nil && st.owner == s {
		return st
	}
	id := keyID{p.spec.Name, k.name, k.print}
	st := s.keys[id]
	if st == nil {
		st = &keyState{owner: s, id: id, provider: s.provider(p)}
		s.keys[id] = st
	}
	k.seat.at.Store(st)
	return st
}

func (s *Standing) provider(p *Provider) *providerState {
	if st := p.seat.at.Load(); st != nil && st.owner == s {
		return st
	}
	st := s.providers[p.spec.Name]
	if st == nil {
		st = &providerState{owner: s}
		s.providers[p.spec.Name] = st
	}
	p.seat.at.Store(st)
	return st
}

func (s *Standing) groupRate(g *Group) *rate { return s.rate(&g.seat, groupRatePrefix, g.spec.Name) }

func (s *Standing) callerRate(c *Caller) *rate {
	return s.rate(&c.seat, callerRatePrefix, c.spec.Name)
}

func (s *Standing) rate(seat *rateSeat, prefix, name string) *rate {
	if st := seat.at.Load(); st != nil && st.owner == s {
		return &st.rate
	}
	st := s.rates[prefix+name]
	if st == nil {
		st = &rateState{owner: s}
		s.rates[prefix+name] = st
	}
	seat.at.Store(st)
	return &st.rate
}
