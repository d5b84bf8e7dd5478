package engine

import (
	"sync"
	"time"
)

// Rand gives even random numbers in [0, 1). It must be safe for many goroutines where
// calls run on many.
type Rand interface{ Float64() float64 }

type channelID struct{ group, channel string }

type keyID struct{ provider, key string }

type evictionID struct {
	channelID
	model string
}

// Standing is what is known of keys and channels at a time: which keys cool, which
// breakers are open, which channels are quarantined, which models are evicted, how
// much of the retry budgets and rates is left. All calls of a process share one. It
// keeps names, not configuration, so it outlives a reload. It is safe for many
// goroutines; the zero value is not usable, see [NewStanding].
type Standing struct {
	mu        sync.Mutex
	breakers  map[channelID]*breaker
	cooling   map[keyID]time.Time
	suspects  map[channelID][]time.Time
	confined  map[channelID]time.Time
	evictions map[evictionID]time.Time
	budgets   map[string]*retryBudget
	rates     map[string]time.Time
	turns     map[string]int
}

// NewStanding returns a standing in which everything is well.
func NewStanding() *Standing {
	return &Standing{
		breakers:  map[channelID]*breaker{},
		cooling:   map[keyID]time.Time{},
		suspects:  map[channelID][]time.Time{},
		confined:  map[channelID]time.Time{},
		evictions: map[evictionID]time.Time{},
		budgets:   map[string]*retryBudget{},
		rates:     map[string]time.Time{},
		turns:     map[string]int{},
	}
}

// Bar is why a channel can't be used now. The zero value is that it can.
type Bar uint8

// The bars, in the order in which they are looked for.
const (
	BarNone Bar = iota
	BarQuarantined
	BarEvicted
	BarOpen
	BarKeys
	BarHops
	BarRate
)

var barTexts = [...]string{
	"", "quarantined", "model evicted", "breaker open", "no usable key", "beyond max_hops", "group rate is spent",
}

func (b Bar) String() string { return name(barTexts[:], b) }

func (c *Channel) id() channelID { return channelID{c.group.spec.Name, c.spec.Name} }

// bar says why ch can't take model at the time now, and until when as far as known. A
// channel of another group than the primary one, which has admitted the request, needs
// its own group's rate, too.
func (s *Standing) bar(now time.Time, ch *Channel, model string, primary *Group) (Bar, time.Time) {
	id := ch.id()
	if ch.group != primary {
		if wait, ok := s.rate(now, ch.group.rateName(), ch.group.spec.RPM, false); !ok {
			return BarRate, now.Add(wait)
		}
	}
	if until, in := s.confined[id]; in && now.Before(until) {
		return BarQuarantined, until
	}
	if len(s.evictions) > 0 {
		if until, in := s.evictions[evictionID{id, model}]; in && now.Before(until) {
			return BarEvicted, until
		}
	}
	if b := s.breakers[id]; b != nil {
		if admits, until := b.admits(now, ch.group.spec.Breaker); !admits {
			return BarOpen, until
		}
	}
	if _, until, ok := s.usableKey(now, ch.provider, nil); !ok {
		return BarKeys, until
	}
	return BarNone, time.Time{}
}

// usableKey returns the first key that doesn't cool and isn't except. A provider
// without keys has always the key nil. If none is usable it returns when one will be.
func (s *Standing) usableKey(now time.Time, p *Provider, except *Key) (*Key, time.Time, bool) {
	if len(p.keys) == 0 {
		return nil, time.Time{}, except == nil
	}
	var soonest time.Time
	for _, k := range p.keys {
		if k == except {
			continue
		}
		until := s.cooling[keyID{p.spec.Name, k.name}]
		if !now.Before(until) {
			return k, time.Time{}, true
		}
		if soonest.IsZero() || until.Before(soonest) {
			soonest = until
		}
	}
	return nil, soonest, false
}

// hire takes a channel's permit and key for an attempt that starts now.
func (s *Standing) hire(now time.Time, ch *Channel, model string, primary *Group) (permit, *Key, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why, _ := s.bar(now, ch, model, primary); why != BarNone {
		return permit{}, nil, false
	}
	if ch.group != primary {
		s.rate(now, ch.group.rateName(), ch.group.spec.RPM, true)
	}
	key, _, _ := s.usableKey(now, ch.provider, nil)
	id := ch.id()
	b := s.breakers[id]
	if b == nil && ch.group.spec.Breaker.Mode != BreakerOff {
		b = &breaker{}
		s.breakers[id] = b
	}
	return b.permit(now, ch.group.spec.Breaker), key, true
}

// extend moves a time in m to until if that is later.
func extend[K comparable](m map[K]time.Time, k K, until time.Time) {
	if until.After(m[k]) {
		m[k] = until
	}
}

// maxSetAside bounds how long a policy can set anything aside: a mistyped unit must
// not take a channel away for years.
const maxSetAside = 30 * 24 * time.Hour

// apply makes the changes that a decision asks for on the attempt's channel and key.
// What the permit has to report is reported here, also if it is nothing.
func (s *Standing) apply(now time.Time, effects []Effect, ch *Channel, key *Key, model string, p permit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := ch.id()
	counted := false
	for _, e := range effects {
		until := now.Add(min(e.For, maxSetAside))
		switch e.Kind {
		case EffectCountFailure:
			counted = true
		case EffectCoolKey:
			if key != nil {
				extend(s.cooling, keyID{ch.provider.spec.Name, key.name}, until)
			}
		case EffectQuarantineChannel:
			recent := append(after(s.suspects[id], now.Add(-e.For)), now)
			if len(recent) < e.After {
				s.suspects[id] = recent
				continue
			}
			delete(s.suspects, id)
			extend(s.confined, id, until)
		case EffectEvictModel:
			extend(s.evictions, evictionID{id, model}, until)
		}
	}
	if counted {
		p.failure(now, ch.group.spec.Breaker)
	} else {
		p.neutral()
	}
}

// after drops the times that are not after limit, in place.
func after(times []time.Time, limit time.Time) []time.Time {
	kept := times[:0]
	for _, t := range times {
		if t.After(limit) {
			kept = append(kept, t)
		}
	}
	return kept
}

// succeeded reports an attempt that ended well, and earns retry budget for a first one.
func (s *Standing) succeeded(now time.Time, ch *Channel, p permit, first bool, c RetryBudgetSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.success(ch.group.spec.Breaker)
	if first {
		s.budget(now, ch.group.spec.Name, c).earn(c)
	}
}

// committed reports that an attempt has a decisive answer.
func (s *Standing) committed(ch *Channel, p permit) permit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.commit(ch.group.spec.Breaker)
}

// released reports an attempt of which nothing follows for the channel.
func (s *Standing) released(p permit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.neutral()
}

func (s *Standing) budget(now time.Time, group string, c RetryBudgetSpec) *retryBudget {
	b := s.budgets[group]
	if b == nil {
		b = &retryBudget{tokens: c.Cap, at: now}
		s.budgets[group] = b
	}
	b.refill(now, c)
	return b
}

// affords says whether an extra attempt of the price will be within the group's budget
// at a time that may lie ahead. It changes nothing.
func (s *Standing) affords(at time.Time, group string, c RetryBudgetSpec, price float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.budgets[group]; b != nil {
		return b.holds(at, c) >= price
	}
	return c.Cap >= price
}

// pay takes the price of an extra attempt, before it goes out.
func (s *Standing) pay(now time.Time, group string, c RetryBudgetSpec, price float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.budget(now, group, c)
	if b.tokens < price {
		return false
	}
	b.tokens -= price
	return true
}

// admit counts a request against a rate of rpm a minute with a burst of a second's
// worth, at least one: the generic cell rate algorithm (ITU-T I.371). If it refuses,
// it returns the wait until it wouldn't.
func (s *Standing) admit(now time.Time, what string, rpm int) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rate(now, what, rpm, true)
}

// rateName is the name under which a group's rate is counted.
func (g *Group) rateName() string { return "group " + g.spec.Name }

// rate asks a rate, and counts against it with count set. s.mu is held.
func (s *Standing) rate(now time.Time, what string, rpm int, count bool) (time.Duration, bool) {
	if rpm <= 0 {
		return 0, true
	}
	every := time.Minute / time.Duration(rpm)
	burst := max(every, time.Second)
	tat := s.rates[what]
	if tat.Before(now) {
		tat = now
	}
	if early := tat.Add(every).Sub(now) - burst; early > 0 {
		return early, false
	}
	if count {
		s.rates[what] = tat.Add(every)
	}
	return 0, true
}
