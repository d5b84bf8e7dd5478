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
	left := p.deadline.Sub(start)
	return left > 0 && left >= p.budget.MinUseful
}

// notBefore is the interlock retry_after: the earliest time of a same-route attempt,
// counted from the current failure.
func notBefore(now time.Time, f Failure) time.Time {
	d, _ := f.retryAfter.Get()
	return now.Add(d)
}

// contractForbids is the interlock contract for answers: what a channel answers must
// name the caller's model. For attempts it is the chain: only [Catalog.Route] makes one,
// of groups that serve the contract.
func contractForbids(ch *Channel, want Contract, answered string) bool {
	return !ch.Accepts(want.Model, answered)
}

// The price of an extra attempt in tokens of the retry budget: a wait that ran out may
// have left work behind, so it costs twice (ENGINE.md section 8).
const (
	priceOfAttempt      = 1.0
	priceAfterTimeout   = 2.0
	priceOfFirstAttempt = 0.0
)
