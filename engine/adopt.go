package engine

import (
	"maps"
	"strings"
)

// Adopt makes the names of a catalog known, so that what other instances say of them
// can be kept from the start, and forgets what is kept under names that the catalog
// doesn't have any more, so that reloads don't add up. [Catalog.Route] does it for a
// catalog that it sees first; a process that shares its standing calls it when it loads
// one.
//
// Calls under way in an older catalog go on with what their seats hold. A channel that was
// disabled by hand stays known even while no catalog names it: whoever has disabled it
// hasn't taken that back.
func (s *Standing) Adopt(c *Catalog) {
	if c.adopted.Load() == s {
		return
	}
	n := namesOf(c) // before the lock, which holds up requests
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.adopted.Load() == s {
		return
	}
	s.generation++
	for _, g := range c.groups {
		for _, ch := range g.channels {
			st := s.channel(ch)
			st.generation, st.spec, st.models = s.generation, g.spec.Breaker, g.spec.Models
			st.forgetStrangers(n)
		}
	}
	for _, p := range c.providers {
		s.provider(p).generation = s.generation
		for _, k := range p.keys {
			s.key(p, k).generation = s.generation
		}
	}
	s.forgetOlder(n)
	c.adopted.Store(s)
}

// forgetOlder forgets what the latest catalog doesn't name. s.mu is held.
func (s *Standing) forgetOlder(n names) {
	maps.DeleteFunc(s.channels, func(_ channelID, st *channelState) bool {
		return st.generation != s.generation && st.disabled.IsZero()
	})
	maps.DeleteFunc(s.keys, func(_ keyID, st *keyState) bool { return st.generation != s.generation })
	maps.DeleteFunc(s.providers, func(_ string, st *providerState) bool { return st.generation != s.generation })
	maps.DeleteFunc(s.rates, func(rate string, _ *rateState) bool {
		group, ofGroup := strings.CutPrefix(rate, groupRatePrefix)
		caller, ofCaller := strings.CutPrefix(rate, callerRatePrefix)
		return !(ofGroup && n.groups[group] || ofCaller && n.callers[caller])
	})
	maps.DeleteFunc(s.budgets, func(p purse, _ *retryBudget) bool {
		return !n.groups[p.group] || p.caller != "" && !n.callers[p.caller]
	})
}

// names are those of a catalog's groups and callers.
type names struct{ groups, callers map[string]bool }

func namesOf(c *Catalog) names {
	n := names{make(map[string]bool, len(c.groups)), make(map[string]bool, len(c.Callers()))}
	for _, g := range c.groups {
		n.groups[g.spec.Name] = true
	}
	for _, caller := range c.Callers() {
		n.callers[caller.spec.Name] = true
	}
	return n
}

// forgetStrangers forgets callers and models that aren't there any more.
func (st *channelState) forgetStrangers(n names) {
	maps.DeleteFunc(st.own, func(caller string, _ *own) bool { return !n.callers[caller] })
	maps.DeleteFunc(st.evictions, func(model string, _ aside) bool { return !st.serves(model) })
}
