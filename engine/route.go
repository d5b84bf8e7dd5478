package engine

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Chain is the exact ordered list of channels that a request may walk. Only
// [Catalog.Route] makes one.
type Chain struct {
	want     Contract
	group    *Group // the primary group: its budget and its retry budget count
	admitted *Group // whose rate has counted the request; nil in smart routing
	caller   *Caller
	channels []*Channel
	retry    RetryBudgetSpec
	narrowed *Narrowing // what a route policy made of it, nil if none had a say
}

// Channels returns the chain's channels in order. Don't change the slice.
func (c Chain) Channels() []*Channel { return c.channels }

// Group returns the primary group, whose budget bounds the request.
func (c Chain) Group() *Group { return c.group }

// Cut returns the chain with the channels that max_hops allows, and those beyond them.
// [Begin] does it, too. A chain of nobody stays one.
func (c Chain) Cut() (Chain, []*Channel) {
	if len(c.channels) == 0 {
		return c, nil
	}
	if n := c.group.spec.MaxHops; n > 0 && n < len(c.channels) {
		beyond := c.channels[n:]
		c.channels = c.channels[:n:n]
		return c, beyond
	}
	return c, nil
}

// granted is the primary group's budget within the caller's own ceilings.
func (c Chain) granted() BudgetSpec {
	b := c.group.spec.Budget
	if own := c.caller.spec.Budget; own != (CallerBudget{}) {
		if own.Attempts > 0 {
			b.Attempts = min(b.Attempts, own.Attempts)
			b.PerRoute = min(b.PerRoute, b.Attempts)
		}
		if own.Deadline > 0 {
			b.Deadline = min(b.Deadline, own.Deadline)
		}
	}
	return b
}

// view is how an attempt of the chain looks at a channel.
func (c *Chain) view() view { return view{model: c.want.Model, caller: c.caller, admitted: c.admitted} }

// Contract returns what every attempt of the chain must fulfil.
func (c Chain) Contract() Contract { return c.want }

// Out is a channel that serves the contract but isn't in the chain.
type Out struct {
	Channel *Channel
	Why     Bar
	Until   time.Time // when the bar ends by itself; zero if unknown
	// Abroad says that only other instances know of the bar. It yields where it would
	// leave a request nobody.
	Abroad bool
}

// RefusalKind says why a request gets no chain.
type RefusalKind uint8

// The refusals that come before any attempt.
const (
	RefusalUnknownModel RefusalKind = iota
	RefusalNotAllowed               // the model exists, but not for this caller, endpoint or price ceiling
	RefusalRate                     // a rate of the caller or of every group is spent
	RefusalNoChannel                // all channels are set aside
	RefusalPolicy                   // the route policy leaves no channel, or failed
)

// Refusal is why a request gets no chain.
type Refusal struct {
	Kind       RefusalKind
	RetryAfter Wait // when asking again may help
	Message    string
	// Narrowing is what a route policy did to the chain, nil if none had a say.
	Narrowing *Narrowing

	ofCaller bool  // it is the caller's own rate that is spent
	outs     []Out // where all channels are out
}

// Caller finds the application that shows key. Without configured callers everyone is
// the caller anonymous.
//
// The lookup may take a different time for different keys without telling anything of
// use: what is compared is the SHA-256 of what was shown, and whoever could steer that
// hash towards a stored one, byte by byte, would have broken SHA-256. The key itself is
// compared with nothing.
func (c *Catalog) Caller(key string) (*Caller, bool) {
	if c.anonymous != nil {
		return c.anonymous, true
	}
	if key == "" {
		return nil, false
	}
	caller, ok := c.byKey[sha256.Sum256([]byte(key))]
	return caller, ok
}

// Callers returns the configured callers, or the caller anonymous alone. Don't change
// the slice.
func (c *Catalog) Callers() []*Caller {
	if c.anonymous != nil {
		return []*Caller{c.anonymous}
	}
	return c.callers
}

// Groups returns the route groups in file order. Don't change the slice.
func (c *Catalog) Groups() []*Group { return c.groups }

// Providers returns the providers in file order. Don't change the slice.
func (c *Catalog) Providers() []*Provider { return c.providers }

// RetryBudget returns how extra attempts are bounded.
func (c *Catalog) RetryBudget() RetryBudgetSpec { return c.retry }

// Route admits a request and gives it its chain. It counts against the caller's rate and
// that of the group which takes it; a request that is refused, and [Catalog.Explain],
// count against none. In smart routing each attempt counts against the rate of its
// channel's group instead, because which group serves isn't known before.
//
// The chain's channels lie in req.Room if that is large enough.
func (c *Catalog) Route(now time.Time, s *Standing, req *Request, r Rand) (Chain, *Refusal) {
	l, refusal := c.laneFor(req.Caller, req.Contract)
	if refusal != nil {
		return Chain{}, refusal
	}
	s.Adopt(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	groups := l.groups
	if refusal := s.admit(now, req, l, &groups); refusal != nil {
		return Chain{}, refusal
	}
	chain := Chain{want: req.Contract, group: groups[0], admitted: l.admitted(groups), caller: req.Caller, retry: c.retry}
	w := newWalk(now, req, &chain, r)
	s.walk(&w, l, groups)
	if len(w.chain) == 0 {
		// What only other instances know may not leave a request nobody.
		w.abroad = false
		s.walk(&w, l, groups)
	}
	if len(w.chain) == 0 {
		return Chain{}, s.nobody(w, l, groups)
	}
	chain.channels = w.chain
	s.count(now, &chain)
	return chain, nil
}

// count counts an admitted request against the rates that have room for it. s.mu is held.
func (s *Standing) count(now time.Time, chain *Chain) {
	if chain.caller.spec.RPM > 0 {
		s.callerRate(chain.caller).count(now)
	}
	if g := chain.admitted; g != nil && g.spec.RPM > 0 {
		s.groupRate(g).count(now)
	}
}

// admit finds room for the request in the caller's rate and in that of the first group
// that has some left, and takes the groups before that one off the list. s.mu is held.
func (s *Standing) admit(now time.Time, req *Request, l *lane, groups *[]*Group) *Refusal {
	caller := req.Caller
	if rpm := caller.spec.RPM; rpm > 0 {
		if wait, ok := s.callerRate(caller).admits(now, rpm); !ok {
			return &Refusal{Kind: RefusalRate, RetryAfter: WaitOf(wait), ofCaller: true,
				Message: fmt.Sprintf("caller %q has spent its rate of %d requests a minute", caller.spec.Name, rpm)}
		}
	}
	if l.all != nil {
		return nil
	}
	var soonest time.Duration
	for i, g := range *groups {
		if g.spec.RPM <= 0 {
			*groups = (*groups)[i:]
			return nil
		}
		wait, ok := s.groupRate(g).admits(now, g.spec.RPM)
		if ok {
			*groups = (*groups)[i:]
			return nil
		}
		if soonest == 0 || wait < soonest {
			soonest = wait
		}
	}
	return allSpent(req.Contract.Model, soonest)
}

// admitted is the group whose rate has counted a request.
func (l *lane) admitted(groups []*Group) *Group {
	if l.all != nil {
		return nil
	}
	return groups[0]
}

func newWalk(now time.Time, req *Request, chain *Chain, r Rand) walk {
	hops := chain.group.spec.MaxHops
	if hops == 0 || req.Uncut {
		hops = math.MaxInt
	}
	v := chain.view()
	v.abroad = true
	return walk{view: v, now: now, estimate: req.Estimate, rnd: r, hops: hops, chain: req.Room[:0]}
}

// nobody is the refusal of a request that no channel can take. s.mu is held.
func (s *Standing) nobody(w walk, l *lane, groups []*Group) *Refusal {
	w.explain = true
	s.walk(&w, l, groups)
	wait, rates, dear := Wait{}, true, true
	at := soonestOf(w.outs)
	if !at.IsZero() {
		wait = WaitOf(at.Sub(w.now))
	}
	for _, o := range w.outs {
		rates, dear = rates && o.Why == BarRate, dear && o.Why == BarCost
	}
	if rates {
		return allSpent(w.model, at.Sub(w.now))
	}
	if dear {
		return &Refusal{Kind: RefusalNotAllowed, Message: fmt.Sprintf(
			"on every channel for model %q this request would cost more than caller %q may spend on one attempt, %g USD", w.model, w.caller.spec.Name, w.caller.spec.Budget.MaxCostUSD)}
	}
	return &Refusal{Kind: RefusalNoChannel, RetryAfter: wait, outs: w.outs, Message: fmt.Sprintf("no channel can serve model %q now", w.model)}
}

// Explain gives the chain that a request would get now, and why each other channel of
// the contract is out and until when. It counts nothing.
func (c *Catalog) Explain(now time.Time, s *Standing, req *Request, r Rand) (Chain, []Out, *Refusal) {
	l, refusal := c.laneFor(req.Caller, req.Contract)
	if refusal != nil {
		return Chain{}, nil, refusal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	groups, outs := s.wouldAdmit(now, l)
	chain := Chain{want: req.Contract, caller: req.Caller, retry: c.retry}
	if len(groups) > 0 {
		chain.group, chain.admitted = groups[0], l.admitted(groups)
	} else { // every group's rate is spent, and so every channel is out
		groups, outs, chain.group = l.groups, []Out{}, l.groups[0]
	}
	w := newWalk(now, req, &chain, r)
	w.explain, w.chain, w.outs = true, nil, outs
	s.walk(&w, l, groups)
	if len(w.chain) == 0 {
		w.abroad, w.outs = false, w.outs[:len(outs)]
		s.walk(&w, l, groups)
	}
	chain.channels = w.chain
	return chain, w.outs, nil
}

// wouldAdmit gives the groups that a request would walk, and what is out because its
// group's rate is spent. It counts nothing.
func (s *Standing) wouldAdmit(now time.Time, l *lane) ([]*Group, []Out) {
	groups, outs := l.groups, []Out{}
	for l.all == nil && len(groups) > 0 && groups[0].spec.RPM > 0 {
		wait, ok := s.groupRate(groups[0]).admits(now, groups[0].spec.RPM)
		if ok {
			break
		}
		for _, ch := range groups[0].channels {
			outs = append(outs, Out{Channel: ch, Why: BarRate, Until: now.Add(wait)})
		}
		groups = groups[1:]
	}
	return groups, outs
}

// Available lists the contracts that a caller can have now, in the order of its groups:
// those for which a channel is left that isn't set aside. A spent rate takes nothing off
// the list, and neither does what only other instances know.
func (c *Catalog) Available(now time.Time, s *Standing, caller *Caller) []Contract {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Contract
	for _, want := range caller.routes.order {
		if s.serves(now, caller, caller.routes.lanes[want], want.Model) {
			list = append(list, want)
		}
	}
	return list
}

func (s *Standing) serves(now time.Time, caller *Caller, l *lane, model string) bool {
	for _, g := range l.groups {
		for _, ch := range g.channels {
			if why, _ := s.bar(now, ch, view{model: model, caller: caller, admitted: g}); why == BarNone {
				return true
			}
		}
	}
	return false
}

func allSpent(model string, wait time.Duration) *Refusal {
	return &Refusal{Kind: RefusalRate, RetryAfter: WaitOf(wait), Message: fmt.Sprintf("every route group for model %q has spent its rate", model)}
}

func (c *Catalog) laneFor(caller *Caller, want Contract) (*lane, *Refusal) {
	if l := caller.routes.lanes[want]; l != nil {
		return l, nil
	}
	known := false
	for _, g := range c.groups {
		if slices.Contains(g.spec.Models, want.Model) {
			if slices.Contains(caller.groups, g) {
				return nil, &Refusal{Kind: RefusalNotAllowed, Message: fmt.Sprintf(
					"model %q is not served over %s here; it is over %s", want.Model, want.Endpoint, endpointList(g.spec.Endpoints))}
			}
			known = true
		}
	}
	if known {
		return nil, &Refusal{Kind: RefusalNotAllowed, Message: fmt.Sprintf(
			"caller %q may not use model %q", caller.spec.Name, want.Model)}
	}
	return nil, &Refusal{Kind: RefusalUnknownModel, Message: fmt.Sprintf(
		"model %q is not served here; GET /v1/models lists what is", want.Model)}
}

func endpointList(endpoints []Endpoint) string {
	names := make([]string, len(endpoints))
	for i, e := range endpoints {
		names[i] = e.String()
	}
	return strings.Join(names, ", ")
}

func soonestOf(outs []Out) time.Time {
	var at time.Time
	for _, o := range outs {
		if !o.Until.IsZero() && (at.IsZero() || o.Until.Before(at)) {
			at = o.Until
		}
	}
	return at
}

// soonest returns when the first of the chain's channels can be used again, and whether
// that is known; a channel that can be used now counts as now.
func (s *Standing) soonest(now time.Time, c *Chain) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var at time.Time
	for _, ch := range c.channels {
		why, until := s.bar(now, ch, c.view())
		if why == BarNone {
			return now, true
		}
		if !until.IsZero() && (at.IsZero() || until.Before(at)) {
			at = until
		}
	}
	return at, !at.IsZero()
}
