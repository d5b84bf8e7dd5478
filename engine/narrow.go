package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Labels returns the configuration's own words for the channel. Don't change the map.
func (c *Channel) Labels() map[string]string { return c.spec.Labels }

// Budget returns what bounds a request over the chain: the primary group's budget, as
// far as neither the caller's own ceilings nor a route policy have tightened it.
func (c Chain) Budget() BudgetSpec {
	b := c.granted()
	if n := c.narrowed; n != nil {
		b.Attempts = tighter(b.Attempts, n.attempts)
		b.PerRoute = tighter(b.PerRoute, n.perRoute)
		b.Deadline = tighter(b.Deadline, n.deadline)
	}
	return b
}

// tighter is the limit, or the tightened one where there is one.
func tighter[N int | time.Duration](limit, tightened N) N {
	if tightened > 0 {
		return min(limit, tightened)
	}
	return limit
}

// attempts is how many attempts a request may make over the chain.
func (c Chain) attempts(req *Request) int {
	// What the caller's SDK has replayed already was paid by the upstreams, too.
	n := max(1, c.granted().Attempts-max(req.SDKRetry, 0))
	return min(tighter(n, req.MaxAttempts), c.Budget().Attempts)
}

// deadline is how long a request over the chain may take. It is hurried where the caller
// or a route policy allows less than the group does: an attempt that runs out of such a
// time says nothing of its channel.
func (c Chain) deadline(req *Request) (d time.Duration, hurried bool) {
	b := c.Budget()
	if d, given := req.TimeLimit.Get(); given && d < b.Deadline {
		return min(max(d, b.MinUseful+admission), b.Deadline), true
	}
	return b.Deadline, b.Deadline < c.group.spec.Budget.Deadline
}

// label names a channel of the chain to policies: by its name in the primary group,
// with its group's name before it in another.
func (c Chain) label(ch *Channel) string {
	if ch.group == c.group {
		return ch.spec.Name
	}
	return ch.group.spec.Name + "/" + ch.spec.Name
}

// named says whether a label names the channel.
func (c Chain) named(ch *Channel, label string) bool {
	if ch.group == c.group {
		return label == ch.spec.Name
	}
	rest, ok := strings.CutPrefix(label, ch.group.spec.Name)
	return ok && len(rest) > 0 && rest[0] == '/' && rest[1:] == ch.spec.Name
}

// place finds a channel of the chain by its label; it returns -1 if there is none.
func (c Chain) place(label string) int {
	return slices.IndexFunc(c.channels, func(ch *Channel) bool { return c.named(ch, label) })
}

// out says whether a label names a channel that the caller may have for the contract. One
// that isn't in the chain is merely set aside now, or above the caller's price ceiling. A
// policy that names its channels can't know; that it names one of them widens nothing.
func (c Chain) out(label string) bool {
	l := c.caller.routes.lanes[c.want]
	return l != nil && slices.ContainsFunc(l.groups, func(g *Group) bool {
		return slices.ContainsFunc(g.channels, func(ch *Channel) bool { return c.named(ch, label) })
	})
}

// RouteQuestion is what a [RoutePolicy] is asked about the chain of a request.
func (c Chain) RouteQuestion(req *Request, now time.Time) RouteQuestion {
	deadline, _ := c.deadline(req)
	q := RouteQuestion{
		RequestID: req.ID, Caller: req.Caller.spec.Name, Contract: c.want, Stream: req.Stream, Tools: req.Tools,
		SDKRetry: req.SDKRetry, Idempotency: req.Idempotency, Now: now,
		Group: c.group.spec.Name, Channels: make([]RouteChannel, len(c.channels)),
		Attempts: c.attempts(req), PerRoute: c.Budget().PerRoute, Deadline: deadline,
	}
	for i, ch := range c.channels {
		q.Channels[i] = RouteChannel{
			Name: c.label(ch), Group: ch.group.spec.Name, Provider: ch.provider.spec.Name, Labels: ch.spec.Labels, Cost: ch.spec.Cost,
		}
	}
	return q
}

// Narrow applies a route policy's answer to the chain. It drops and reorders channels
// and tightens the budget, and never widens either: a part of the answer that would is
// refused and named in the narrowing, and the rest holds.
//
// The request is refused where no channel is left, and where the answer has a fault: a
// policy that keeps data in a region must not be passed over because it failed. The
// refusal has the kind [RefusalPolicy] and the narrowing, and the chain is of no use then.
// The narrowing is nil if no rule had a say. Its record is written by [Begin], or by
// [RecordRefusal].
func (c Chain) Narrow(a RouteAnswer) (Chain, *Narrowing, *Refusal) {
	if a.silent() {
		return c, nil, nil
	}
	n := &Narrowing{}
	if c.narrowed != nil { // what was tightened before stays
		*n = *c.narrowed
		n.dropped, n.refused = slices.Clone(n.dropped), slices.Clone(n.refused)
	}
	n.rule, n.reason, n.fault = a.Rule, a.Reason, a.Fault
	if a.Fault != "" {
		n.reason = reasonPolicyError
		return Chain{}, n, &Refusal{Kind: RefusalPolicy, Narrowing: n, Message: "the route policy gave no usable answer, so no channel may serve the request; the gateway's log says what is wrong"}
	}
	b := c.Budget()
	tighten(n, WideningAttempts, &n.attempts, b.Attempts, a.Attempts)
	tighten(n, WideningPerRoute, &n.perRoute, b.PerRoute, a.PerRoute)
	tighten(n, WideningDeadline, &n.deadline, b.Deadline, a.Deadline)
	if a.Picked {
		c.channels = c.pick(n, a.Channels)
	}
	if len(c.channels) == 0 {
		why := fmt.Sprintf("the route policy leaves no channel for model %q", c.want.Model)
		if n.reason != (Reason{}) {
			why += ": " + n.reason.text
		}
		return Chain{}, n, &Refusal{Kind: RefusalPolicy, Narrowing: n, Message: why}
	}
	c.narrowed = n
	return c, n, nil
}

// silent says that no rule of the policy held.
func (a *RouteAnswer) silent() bool {
	return !a.Picked && a.Attempts == 0 && a.PerRoute == 0 && a.Deadline == 0 && a.Rule == "" && a.Reason == Reason{} && a.Fault == ""
}

// tighten takes a part of the budget over unless it is no tighter than the limit. What
// is negative can't be meant, and is refused as well.
func tighten[N int | time.Duration](n *Narrowing, w Widening, to *N, limit, asked N) {
	switch {
	case asked < 0 || asked > limit:
		n.refuse(w)
	case asked > 0 && asked < limit:
		*to = asked
	}
}

// pick returns the named channels in the names' order, and notes what that changes.
func (c Chain) pick(n *Narrowing, names []string) []*Channel {
	kept := make([]*Channel, 0, min(len(names), len(c.channels)))
	last := -1
	for _, label := range names {
		i := c.place(label)
		switch {
		case i < 0 && c.out(label):
			continue
		case i < 0 || slices.Contains(kept, c.channels[i]):
			n.refuse(WideningChannel)
			continue
		}
		n.reordered = n.reordered || i < last
		last = i
		kept = append(kept, c.channels[i])
	}
	for _, ch := range c.channels {
		if len(n.dropped) < maxListed && !slices.Contains(kept, ch) {
			n.dropped = append(n.dropped, c.label(ch))
		}
	}
	return kept
}
