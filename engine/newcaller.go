package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// caller reads a caller and the hash of its key, which is zero if there is none.
func (b *builder) caller(s CallerSpec) (*Caller, [sha256.Size]byte) {
	c := &Caller{spec: s}
	at := func(attr string) []string { return path("caller", s.Name, attr) }
	sum := [sha256.Size]byte{}
	if raw, err := hex.DecodeString(s.KeySHA256); err == nil && len(raw) == len(sum) {
		copy(sum[:], raw)
	} else {
		b.fault(at("key_sha256"), "Invalid key hash", "Write the SHA-256 of the caller's key in hex, 64 digits: printf %s KEY | sha256sum.")
	}
	if len(s.Groups) == 0 {
		b.fault(at("groups"), "Caller without a group", "The caller could call nothing. Write groups = [route_group.NAME].")
	}
	c.groups = b.groupList(s.Groups, at("groups"))
	if s.RPM < 0 {
		b.fault(at("rpm"), "Negative rate", "rpm is the number of requests admitted a minute; leave it out for no limit.")
	}
	b.ceilings(c, at)
	if s.Name == AnonymousCaller {
		b.fault(path("caller", s.Name), "Reserved caller name", "anonymous is everyone without a key. Choose another name.")
	}
	return c, sum
}

// groupList finds a caller's groups. Callers with the same list share it: thousands of
// them may each be allowed everything.
func (b *builder) groupList(names, at []string) []*Group {
	list := strings.Join(names, "\x00")
	if known := b.lists[list]; known != nil {
		return known
	}
	groups := make([]*Group, 0, len(names))
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		g, twice := b.groups[name], seen[name]
		seen[name] = true
		switch {
		case g == nil:
			b.fault(at, "Unknown route group", fmt.Sprintf("There is no route_group block %q.", name))
		case twice:
			b.fault(at, "Duplicate route group", fmt.Sprintf("Group %q stands twice in the list. Remove one.", name))
		default:
			groups = append(groups, g)
		}
	}
	if len(groups) == len(names) { // a faulty list is told of again
		b.lists[list] = groups
	}
	return groups
}

// ceilings checks what a caller's own budget leaves of its groups'.
func (b *builder) ceilings(c *Caller, at func(string) []string) {
	s := c.spec.Budget
	if s.Attempts < 0 || s.Deadline < 0 || s.MaxCostUSD < 0 {
		b.fault(at("budget"), "Negative budget", "attempts, deadline and max_cost_usd tighten the groups' budgets; leave one out to keep the group's.")
		return
	}
	if s.MaxCostUSD > 0 {
		b.priced(c, at)
	}
	if s.Deadline == 0 {
		return
	}
	for _, g := range c.groups {
		if least := g.spec.Budget.MinUseful; s.Deadline < least {
			b.fault(at("budget"), "Deadline below min_useful", fmt.Sprintf(
				"In group %q no attempt starts with less than %s left, and this caller's deadline is %s. Raise the deadline, or lower the group's min_useful.", g.spec.Name, spell(least), spell(s.Deadline)))
			return
		}
	}
}

// priced checks that all channels of a caller can be held against a price.
func (b *builder) priced(c *Caller, at func(string) []string) {
	for _, g := range c.groups {
		for _, ch := range g.channels {
			if !ch.spec.Cost.Given {
				b.fault(at("budget"), "No price for max_cost_usd", fmt.Sprintf(
					"What a request costs on channel %q of group %q isn't known, so no request of this caller could use it. Give it a cost, or remove max_cost_usd.", ch.spec.Name, g.spec.Name))
				return
			}
		}
	}
}

// routesOf works out what serves each contract of a caller.
func routesOf(c *Caller) *routes {
	r := &routes{lanes: map[Contract]*lane{}}
	for _, g := range c.groups {
		r.cost = r.cost || g.spec.Strategy == StrategyCost
		for _, m := range g.spec.Models {
			for _, e := range g.spec.Endpoints {
				want := Contract{m, e}
				l := r.lanes[want]
				if l == nil {
					l = &lane{}
					r.lanes[want] = l
					r.order = append(r.order, want)
				}
				if !slices.Contains(l.groups, g) {
					l.groups = append(l.groups, g)
				}
			}
		}
	}
	if c.spec.Routing == RoutingSmart {
		for _, l := range r.lanes {
			for _, g := range l.groups {
				l.all = append(l.all, g.channels...)
			}
			l.all = byPriority(l.all)
		}
	}
	return r
}

// smart checks that a caller's groups can be walked together.
func (b *builder) smart(c *Caller) {
	if c.spec.Routing != RoutingSmart {
		return
	}
	for _, want := range c.routes.order {
		l := c.routes.lanes[want]
		if l.groups[0].spec.Strategy != StrategyCost {
			continue
		}
		for _, ch := range l.all {
			if !ch.spec.Cost.Given {
				b.fault(path("caller", c.spec.Name, "routing"), "No price for smart routing", fmt.Sprintf(
					"Group %q orders by price, so channel %q of group %q needs one to be compared. Give it a cost, or write routing = \"ordered\".",
					l.groups[0].spec.Name, ch.spec.Name, ch.group.spec.Name))
				return
			}
		}
	}
}
