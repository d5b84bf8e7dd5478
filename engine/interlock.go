package engine

import "time"

// The interlocks, each in one place. They hold for any policy and any plugin: a
// decision goes through all of them before it becomes an instruction. Two have no
// function here. `committed` is a matter of types: a state after commit has no plan,
// and only a plan can make a [Send]. `cancelled` is a matter of events: every state
// answers [Gone] with [Finish].

// effectsForbid is the interlock effects: nothing is replayed while a side effect is
// unknown, and nothing that may have begun to work upstream is, unless it is replay-safe.
func effectsForbid(i Idempotency, done Completion) bool {
	return i.Effects == EffectsUnknown || done != CompletionNone && !i.ReplaySafe
}

// budgetForbids is the interlock budget: attempts in all, attempts on this channel, the
// deadline and the minimum useful time are hard.
func (p *plan) budgetForbids(link int, start time.Time) bool {
	return p.used >= p.attempts || int(p.tries[link]) >= p.budget.PerRoute || !p.timeAt(start)
}

// timeAt says whether an attempt that starts then has its minimum useful time.
func (p *plan) timeAt(start time.Time) bool {
	return useful(p.deadline.Sub(start), p.budget.MinUseful)
}

// useful says whether the time that is left is worth an attempt.
func useful(left, least time.Duration) bool { return left > 0 && left >= least }

// ruledOut are the interlocks that need no more than the failure: what a decision may
// not do whatever routes there are. An abort stops, too, by no interlock.
func ruledOut(f Failure, i Idempotency, d Decision) (lock Interlock, stops bool) {
	switch {
	case d.Action == Abort:
		return InterlockNone, true
	case f.phase == AfterOutput:
		return InterlockCommitted, true
	case d.Action == Substitute:
		// No group declares a substitution yet, so none can have been accepted.
		return InterlockContract, true
	case effectsForbid(i, f.completion):
		return InterlockEffects, true
	}
	return InterlockNone, false
}

// notBefore is the interlock retry_after: the earliest time of a same-route attempt,
// counted from the current failure.
func notBefore(now time.Time, f Failure) time.Time {
	d, _ := f.retryAfter.Get()
	return now.Add(d)
}

// sameRouteWait is how long the same-route attempt of a decision waits with remaining
// left of the deadline: as the decision says, or for the engine's backoff, and never less
// than the upstream's Retry-After. The interlock retry_after is returned where it puts
// off what the decision says, and where it leaves no useful time.
func sameRouteWait(q *Question, d Decision, remaining time.Duration) (time.Duration, Interlock) {
	least, _ := q.Failure.retryAfter.Get()
	wait, said := d.Delay.Get()
	if !said {
		wait = q.Backoff
	}
	if wait < least && (said || !useful(remaining-least, q.MinUseful)) {
		return least, InterlockRetryAfter
	}
	return max(wait, least), InterlockNone
}

// contractForbids is the interlock contract for answers: what a channel answers must
// name the caller's model. For attempts it is the chain: only [Catalog.Route] makes one,
// of groups that serve the contract.
func contractForbids(ch *Channel, want Contract, answered string) bool {
	return !ch.Accepts(want.Model, answered)
}

// The price of an extra attempt in tokens of the retry budget: a wait that ran out may
// have left work behind, so it costs twice (docs/rationale.md, and measured by
// TestTheRetryBudgetKeepsATowerStable).
const (
	priceOfAttempt      = 1.0
	priceAfterTimeout   = 2.0
	priceOfFirstAttempt = 0.0
)
