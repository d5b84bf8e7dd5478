package engine

import (
	"slices"
	"sync"
	"time"
)

// Rand gives even random numbers in [0, 1). It must be safe for many goroutines where
// calls run on many.
type Rand interface{ Float64() float64 }

// Standing is what is known of keys and channels at a time: which keys cool, which
// breakers are open, which channels are quarantined or disabled, which models are
// evicted, how much of the retry budgets and rates is left. All calls of a process share
// one. It keeps names, not configuration, so it outlives a reload. It is safe for many
// goroutines; the zero value is not usable, see [NewStanding].
type Standing struct {
	mu        sync.Mutex
	channels  map[channelID]*channelState
	keys      map[keyID]*keyState
	providers map[string]*providerState
	rates     map[string]*rateState // "group NAME", "caller NAME"
	budgets   map[purse]*retryBudget
	scratch   []ranked // of the walk under way
	sharer    Sharer   // nil if nobody else is told

	manyBudgets int // when budgets are swept
	generation  int // how many catalogs were adopted

	replays replays // has its own lock
}

// NewStanding returns a standing in which everything is well.
func NewStanding() *Standing {
	return &Standing{
		channels:  map[channelID]*channelState{},
		keys:      map[keyID]*keyState{},
		providers: map[string]*providerState{},
		rates:     map[string]*rateState{},
		budgets:   map[purse]*retryBudget{},

		manyBudgets: fewBudgets,
	}
}

// Bar is why a channel can't be used now. The zero value is that it can.
type Bar uint8

// The bars. BarHops, BarCost and BarPolicy are of one request only, the others stay for a while.
const (
	BarNone Bar = iota
	BarQuarantined
	BarEvicted
	BarOpen
	BarKeys
	BarHops
	BarRate
	BarDisabled
	BarCost
	BarPolicy // a route policy dropped it; for drivers alone, no standing says so
)

var barTexts = [...]string{
	"", "quarantined", "model evicted", "breaker open", "no usable key", "beyond max_hops", "group rate is spent", "disabled by hand",
	"above the caller's max_cost_usd", "dropped by policy",
}

func (b Bar) String() string { return name(barTexts[:], b) }

func (c *Channel) id() channelID { return channelID{c.group.spec.Name, c.spec.Name} }

// view is who looks at a channel and for what.
type view struct {
	model    string
	caller   *Caller // nil: nobody in particular
	admitted *Group  // its rate has admitted the request; another group's must, too
	abroad   bool    // what other instances told counts, too
}

// bar says why ch can't be used now, and until when as far as known. s.mu is held.
func (s *Standing) bar(now time.Time, ch *Channel, v view) (Bar, time.Time) {
	if ch.group != v.admitted && ch.group.spec.RPM > 0 {
		if wait, ok := s.groupRate(ch.group).admits(now, ch.group.spec.RPM); !ok {
			return BarRate, now.Add(wait)
		}
	}
	if st := s.channel(ch); !st.quiet(now) {
		if why, until := st.bar(now, ch.group.spec.Breaker, v); why != BarNone {
			return why, until
		}
	}
	if _, until, ok := s.usableKey(now, ch.provider, nil, v.abroad); !ok {
		return BarKeys, until
	}
	return BarNone, time.Time{}
}

// bar says what of the channel itself is set aside.
func (st *channelState) bar(now time.Time, c BreakerSpec, v view) (Bar, time.Time) {
	if now.Before(st.disabled) {
		return BarDisabled, endOf(st.disabled)
	}
	if until := st.confined.until(v.abroad); now.Before(until) {
		return BarQuarantined, until
	}
	if len(st.evictions) > 0 {
		if until := st.evictions[v.model].until(v.abroad); now.Before(until) {
			return BarEvicted, until
		}
	}
	if admits, until := st.breaker.admits(now, c); !admits {
		return BarOpen, until
	}
	if v.abroad && now.Before(st.abroad) {
		return BarOpen, st.abroad
	}
	if len(st.own) > 0 && v.caller != nil {
		if o := st.own[v.caller.spec.Name]; o != nil {
			if now.Before(o.confined) {
				return BarQuarantined, o.confined
			}
			if admits, until := o.breaker.admits(now, c); !admits {
				return BarOpen, until
			}
		}
	}
	return BarNone, time.Time{}
}

// usableKey returns the key whose turn it is among those that don't cool and aren't
// except. A provider without keys has always the key nil. If none is usable it returns
// when one will be. s.mu is held.
func (s *Standing) usableKey(now time.Time, p *Provider, except *Key, abroad bool) (*Key, time.Time, bool) {
	n := len(p.keys)
	if n == 0 {
		return nil, time.Time{}, except == nil
	}
	st := s.provider(p)
	if except == nil && !now.Before(st.restless) {
		return p.keys[st.next%n], time.Time{}, true
	}
	var soonest time.Time
	for i := range n {
		k := p.keys[(st.next+i)%n]
		if k == except {
			continue
		}
		until := s.key(p, k).cooling.until(abroad)
		if !now.Before(until) {
			return k, time.Time{}, true
		}
		if soonest.IsZero() || until.Before(soonest) {
			soonest = until
		}
	}
	return nil, soonest, false
}

// hire takes a channel's permits and key for an attempt that starts now, and pays for it,
// or says which interlock forbids it; then nothing was taken. What other instances told
// shapes a chain and bars no attempt of it; but a key that they don't know to cool comes
// first, and the key in avoid, which has just failed, last. The keys of a provider take
// turns.
func (s *Standing) hire(now time.Time, ch *Channel, v view, avoid *Key, b bill) (permits, *Key, Interlock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.abroad = false
	if why, _ := s.bar(now, ch, v); why != BarNone {
		return permits{}, nil, InterlockEligible
	}
	if !s.pay(now, b) {
		return permits{}, nil, InterlockRetryBudget
	}
	if ch.group != v.admitted && ch.group.spec.RPM > 0 {
		s.groupRate(ch.group).count(now)
	}
	key := s.nextKey(now, ch.provider, avoid)
	st, c := s.channel(ch), ch.group.spec.Breaker
	p := permits{channel: st, group: ch.group, caller: v.caller, shared: st.breaker.permit(now, c)}
	if len(st.own) > 0 && v.caller != nil {
		if o := st.own[v.caller.spec.Name]; o != nil {
			p.own = o.breaker.permit(now, c)
		}
	}
	return p, key, InterlockNone
}

// nextKey chooses a key of a provider that has a usable one. s.mu is held.
func (s *Standing) nextKey(now time.Time, p *Provider, avoid *Key) *Key {
	if len(p.keys) == 0 {
		return nil
	}
	key, _, ok := s.usableKey(now, p, avoid, true)
	if !ok {
		key, _, ok = s.usableKey(now, p, avoid, false)
	}
	if !ok {
		key = avoid
	}
	if len(p.keys) > 1 {
		s.provider(p).next = slices.Index(p.keys, key) + 1
	}
	return key
}

// MaxSetAside bounds how long a policy or another instance can set anything aside: a
// mistyped unit must not take a channel away for years. An effect that says more ends then.
const MaxSetAside = 30 * 24 * time.Hour

// apply makes the changes that a decision asks for on the attempt's channel and key.
// What the permits have to report is reported here, also if it is nothing.
func (s *Standing) apply(now time.Time, effects []Effect, ch *Channel, key *Key, model string, p permits) {
	s.tell(s.changed(now, effects, ch, key, model, p))
}

// changed makes the changes of apply and returns what is worth telling others.
func (s *Standing) changed(now time.Time, effects []Effect, ch *Channel, key *Key, model string, p permits) []Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.channel(ch)
	var facts []Fact
	counted := false
	for _, e := range effects {
		until := now.Add(min(e.For, MaxSetAside))
		switch e.Kind {
		case EffectCountFailure:
			counted = true
		case EffectCoolKey:
			if key != nil {
				if k := s.key(ch.provider, key); until.After(k.cooling.here) {
					k.cooling.here = until
					k.stir(until)
					facts = append(facts, k.fact(until))
				}
			}
		case EffectQuarantineChannel:
			if st.suspect(now, e, p.who()) && until.After(st.confined.here) {
				st.confined.here = until
				st.stir(until)
				facts = append(facts, st.fact(FactChannelQuarantined, "", until))
			}
		case EffectEvictModel:
			if gone := st.evictions[model]; until.After(gone.here) {
				gone.here = until
				st.evict(model, gone)
				facts = append(facts, st.fact(FactModelEvicted, model, until))
			}
		}
	}
	if !counted {
		p.neutral()
	} else if p.failure(now, ch.group.spec.Breaker) {
		facts = append(facts, st.fact(FactBreakerOpen, "", st.breaker.openUntil.Add(proving(ch.group.spec.Breaker))))
	}
	return facts
}

func (st *channelState) evict(model string, a aside) {
	if st.evictions == nil {
		st.evictions = map[string]aside{}
	}
	st.evictions[model] = a
	st.stir(a.until(true))
}

// maxSuspects bounds what is remembered on the way to a quarantine. It is what a
// breaker may count, too.
const maxSuspects = 10_000

// suspect counts a reason to quarantine the channel, and says whether there are enough.
// Where more than one is wanted, the rule is the breaker's: no caller has a channel
// quarantined alone for everybody, and each has what it alone has seen for itself.
func (st *channelState) suspect(now time.Time, e Effect, who string) bool {
	since, seen := now.Add(-e.For), fault{now, who}
	if e.After <= 1 {
		who = "" // the first one is enough
	}
	e.After = min(e.After, maxSuspects)
	if who != "" {
		o := st.ownOf(now, who)
		if o.suspects = append(within(o.suspects, since), seen); len(o.suspects) >= e.After {
			o.suspects, o.confined = nil, later(o.confined, now.Add(min(e.For, MaxSetAside)))
		}
		st.suspects = atMost(st.suspects, who, (e.After+1)/2-1)
	}
	st.suspects = append(within(st.suspects, since), seen)
	if len(st.suspects) < e.After || who != "" && alone(st.suspects) {
		return false
	}
	st.suspects = nil
	return true
}

// succeeded reports an attempt that ended well. A first one earns retry budget for the
// group that would have paid for others, which earns names; nil earns nothing.
func (s *Standing) succeeded(now time.Time, ch *Channel, p permits, earns *Group, c RetryBudgetSpec) {
	s.mu.Lock()
	closed := p.success(ch.group.spec.Breaker)
	if o := p.channel.own[p.who()]; o != nil {
		p.channel.forgive(now, p.who(), o)
	}
	if earns != nil {
		s.earn(now, earns.spec.Name, earns.among(p.caller), c)
	}
	s.mu.Unlock()
	s.tellClosed(p, closed)
}

// committed reports that an attempt has a decisive answer.
func (s *Standing) committed(ch *Channel, p permits) permits {
	s.mu.Lock()
	p, closed := p.commit(ch.group.spec.Breaker)
	s.mu.Unlock()
	s.tellClosed(p, closed)
	return p
}

// tellClosed tells others that a breaker has closed.
func (s *Standing) tellClosed(p permits, closed bool) {
	if closed {
		f := p.channel.fact(FactBreakerOpen, "", time.Time{})
		f.Lifted = true
		s.tell([]Fact{f})
	}
}

// released reports an attempt of which nothing follows for the channel.
func (s *Standing) released(p permits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.neutral()
}
