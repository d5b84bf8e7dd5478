package engine

import "maps"

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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adopt(c)
}

func (s *Standing) adopt(c *Catalog) {
	if c.adopted.Load() == s {
		return
	}
	n := namesOf(c)
	for _, g := range c.groups {
		for _, ch := range g.channels {
			st := s.channel(ch)
			st.spec, st.models = g.spec.Breaker, g.spec.Models
			st.forgetStrangers(n)
			n.channels[st.id] = true
		}
	}
	for _, p := range c.providers {
		for _, k := range p.keys {
			n.keys[s.key(p, k).id] = true
		}
	}
	maps.DeleteFunc(s.channels, func(id channelID, st *channelState) bool { return !n.channels[id] && st.disabled.IsZero() })
	maps.DeleteFunc(s.keys, func(id keyID, _ *keyState) bool { return !n.keys[id] })
	maps.DeleteFunc(s.providers, func(name string, _ *providerState) bool { return !n.providers[name] })
	maps.DeleteFunc(s.rates, func(name string, _ *rateState) bool { return !n.rates[name] })
	maps.DeleteFunc(s.budgets, func(id purse, _ *retryBudget) bool {
		return !n.groups[id.group] || id.caller != "" && !n.callers[id.caller]
	})
	c.adopted.Store(s)
}

// names are those of a catalog.
type names struct {
	channels                          map[channelID]bool
	keys                              map[keyID]bool
	providers, groups, callers, rates map[string]bool
}

func namesOf(c *Catalog) names {
	n := names{
		map[channelID]bool{}, map[keyID]bool{},
		map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{},
	}
	for _, p := range c.providers {
		n.providers[p.spec.Name] = true
	}
	for _, g := range c.groups {
		n.groups[g.spec.Name], n.rates[GroupRate(g.spec.Name)] = true, true
	}
	for _, caller := range c.Callers() {
		n.callers[caller.spec.Name], n.rates[CallerRate(caller.spec.Name)] = true, true
	}
	return n
}

// forgetStrangers forgets callers and models that aren't there any more.
func (st *channelState) forgetStrangers(n names) {
	maps.DeleteFunc(st.own, func(caller string, _ *own) bool { return !n.callers[caller] })
	maps.DeleteFunc(st.evictions, func(model string, _ aside) bool { return !st.serves(model) })
}
