package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Chain is the exact ordered list of channels that a request may walk. Only
// [Catalog.Route] makes one.
type Chain struct {
	want     Contract
	group    *Group // the primary group: its budget and its retry budget count
	channels []*Channel
	retry    RetryBudgetSpec
	narrowed *Narrowing // what a route policy made of it, nil if none had a say
}

// Channels returns the chain's channels in order. Don't change the slice.
func (c Chain) Channels() []*Channel { return c.channels }

// Group returns the primary group, whose budget bounds the request.
func (c Chain) Group() *Group { return c.group }

// Contract returns what every attempt of the chain must fulfil.
func (c Chain) Contract() Contract { return c.want }

// Out is a channel that serves the contract but isn't in the chain.
type Out struct {
	Channel *Channel
	Why     Bar
	Until   time.Time // when the bar ends by itself; zero if unknown
}

// RefusalKind says why a request gets no chain.
type RefusalKind uint8

// The refusals that come before any attempt.
const (
	RefusalUnknownModel RefusalKind = iota
	RefusalNotAllowed               // the model exists, but not for this caller or endpoint
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
}

// Caller finds the application that shows key. Without configured callers everyone is
// the caller anonymous.
func (c *Catalog) Caller(key string) (*Caller, bool) {
	if c.anonymous != nil {
		return c.anonymous, true
	}
	if key == "" {
		return nil, false
	}
	sum := sha256.Sum256([]byte(key))
	caller, ok := c.byKey[hex.EncodeToString(sum[:])]
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

// Route admits a request and gives it its chain. It counts against the caller's and
// the primary group's rates; [Catalog.Explain] doesn't.
func (c *Catalog) Route(now time.Time, s *Standing, caller *Caller, want Contract, r Rand) (Chain, *Refusal) {
	groups, refusal := c.groupsFor(caller, want)
	if refusal != nil {
		return Chain{}, refusal
	}
	if wait, ok := s.admit(now, "caller "+caller.spec.Name, caller.spec.RPM); !ok {
		return Chain{}, spent(fmt.Sprintf("caller %q has spent its rate of %d requests a minute", caller.spec.Name, caller.spec.RPM), wait)
	}
	var soonest time.Duration
	for len(groups) > 0 {
		wait, ok := s.admit(now, groups[0].rateName(), groups[0].spec.RPM)
		if ok {
			break
		}
		if soonest == 0 || wait < soonest {
			soonest = wait
		}
		groups = groups[1:]
	}
	if len(groups) == 0 {
		return Chain{}, spent(fmt.Sprintf("every route group for model %q has spent its rate", want.Model), soonest)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	channels, outs := s.walk(now, groups, want.Model, r, nil)
	if len(channels) == 0 {
		wait := Wait{}
		if at := soonestOf(outs); !at.IsZero() {
			wait = WaitOf(at.Sub(now))
		}
		return Chain{}, &Refusal{Kind: RefusalNoChannel, RetryAfter: wait, Message: fmt.Sprintf("no channel can serve model %q now", want.Model)}
	}
	return Chain{want: want, group: groups[0], channels: channels, retry: c.retry}, nil
}

// Explain gives the chain that a request would get now, and why each other channel of
// the contract is out. It changes nothing.
func (c *Catalog) Explain(now time.Time, s *Standing, caller *Caller, want Contract, r Rand) (Chain, []Out, *Refusal) {
	groups, refusal := c.groupsFor(caller, want)
	if refusal != nil {
		return Chain{}, nil, refusal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	channels, outs := s.walk(now, groups, want.Model, r, []Out{})
	return Chain{want: want, group: groups[0], channels: channels, retry: c.retry}, outs, nil
}

func spent(message string, wait time.Duration) *Refusal {
	return &Refusal{Kind: RefusalRate, RetryAfter: WaitOf(wait), Message: message}
}

func (c *Catalog) groupsFor(caller *Caller, want Contract) ([]*Group, *Refusal) {
	if groups := caller.routes[want]; len(groups) > 0 {
		return groups, nil
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

// walk orders the groups' channels and leaves out those that are barred. Where outs is
// not nil, or nothing is left, it tells which and why. s.mu is held.
func (s *Standing) walk(now time.Time, groups []*Group, model string, r Rand, outs []Out) ([]*Channel, []Out) {
	hops := groups[0].spec.MaxHops
	if hops == 0 {
		hops = int(^uint(0) >> 1)
	}
	explain := outs != nil
	total := 0
	for _, g := range groups {
		total += len(g.channels)
	}
	chain := make([]*Channel, 0, min(total, hops))
	for _, g := range groups {
		for _, ch := range s.order(g, r, !explain) {
			why, until := s.bar(now, ch, model, groups[0])
			switch {
			case why != BarNone:
				outs = append(outs, Out{ch, why, until})
			case len(chain) == hops:
				if !explain {
					return chain, outs
				}
				outs = append(outs, Out{ch, BarHops, time.Time{}})
			default:
				chain = append(chain, ch)
			}
		}
	}
	return chain, outs
}

// order applies the group's strategy. s.mu is held.
func (s *Standing) order(g *Group, r Rand, count bool) []*Channel {
	n := len(g.ordered)
	switch g.spec.Strategy {
	case StrategyRoundRobin:
		at := s.turns[g.spec.Name]
		if count {
			s.turns[g.spec.Name] = at + 1
		}
		at %= n
		return append(append(make([]*Channel, 0, n), g.ordered[at:]...), g.ordered[:at]...)
	case StrategyShuffle, StrategyWeighted:
		left := slices.Clone(g.ordered)
		for i := range left {
			j := i + draw(left[i:], g.spec.Strategy == StrategyWeighted, r.Float64())
			left[i], left[j] = left[j], left[i]
		}
		return left
	}
	return g.ordered
}

// draw picks one of channels by weight, or evenly, for a random number in [0, 1).
func draw(channels []*Channel, weighted bool, x float64) int {
	weight := func(c *Channel) float64 {
		if !weighted {
			return 1
		}
		return float64(max(c.spec.Weight, 1))
	}
	sum := 0.0
	for _, c := range channels {
		sum += weight(c)
	}
	x *= sum
	for i, c := range channels {
		if x -= weight(c); x < 0 {
			return i
		}
	}
	return len(channels) - 1
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

// soonest returns when the first of channels can be used again, and whether that is
// known; a channel that can be used now counts as now.
func (s *Standing) soonest(now time.Time, channels []*Channel, model string, primary *Group) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var outs []Out
	for _, ch := range channels {
		why, until := s.bar(now, ch, model, primary)
		if why == BarNone {
			return now, true
		}
		outs = append(outs, Out{ch, why, until})
	}
	at := soonestOf(outs)
	return at, !at.IsZero()
}

// Accepts says whether an answer that names the model answered is an answer from the
// contract's model: its exact name, a dated snapshot of it, the provider's own name for
// it, or a name that the channel declares in answers_as. An answer that names no model
// is accepted.
func (c *Channel) Accepts(model, answered string) bool {
	if answered == "" || answered == model || snapshotOf(model, answered) {
		return true
	}
	if as, ok := c.spec.SendAs[model]; ok && (answered == as || snapshotOf(as, answered)) {
		return true
	}
	return model == c.spec.Serves && slices.Contains(c.spec.AnswersAs, answered)
}

// snapshotOf says whether full is base with a date behind it: "-2024-08-06", as OpenAI
// writes snapshots, or "-20241022" or "@20241022", as Anthropic and Vertex do.
func snapshotOf(base, full string) bool {
	tail, ok := strings.CutPrefix(full, base)
	if !ok || len(tail) == 0 || tail[0] != '-' && tail[0] != '@' {
		return false
	}
	digits := strings.ReplaceAll(tail[1:], "-", "")
	if len(digits) != 8 || len(tail) != 9 && (len(tail) != 11 || tail[5] != '-' || tail[8] != '-') {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return digits >= "20150101" && digits[4:6] >= "01" && digits[4:6] <= "12" && digits[6:] >= "01" && digits[6:] <= "31"
}
