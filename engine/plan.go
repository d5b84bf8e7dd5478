package engine

import "time"

// plan is what a call may still do. Only states before commit own one, and only it
// makes a [Send], so that a replay after commit can't be written.
type plan struct {
	chain    Chain
	budget   BudgetSpec
	attempts int     // that the budget allows this call
	used     int     // that went out
	tries    []uint8 // that went out, by channel of the chain
	deadline time.Time
	hurried  bool // the deadline is shorter than the group's
	spoiled  *Key // that an attempt of this call has found at fault
}

// engagement is one attempt: the channel, the key, and the permit that must be
// reported.
type engagement struct {
	seq     int
	link    int // the channel's place in the chain
	channel *Channel
	key     *Key
	permit  permits
}

func newPlan(req *Request, chain Chain) *plan {
	deadline, hurried := chain.deadline(req)
	return &plan{
		chain: chain, budget: chain.Budget(), attempts: chain.attempts(req), tries: make([]uint8, len(chain.channels)),
		deadline: req.Arrived.Add(deadline), hurried: hurried,
	}
}

// admission is time for what comes before the first attempt. A caller's own limit counts
// as no less than this and the minimum useful time: one attempt is made for a caller in
// a hurry, who hangs up by itself.
const admission = 250 * time.Millisecond

// backoff is the engine's own wait before the next attempt on the channel: full jitter,
// random(0, min(max, base*2^n)) for the n-th retry from 0 (AWS Architecture Blog,
// "Exponential Backoff and Jitter").
func (p *plan) backoff(link int, r Rand) time.Duration {
	ceiling := p.budget.BackoffBase
	for range max(int(p.tries[link])-1, 0) {
		if ceiling >= p.budget.BackoffMax {
			break
		}
		ceiling *= 2
	}
	return time.Duration(r.Float64() * float64(min(ceiling, p.budget.BackoffMax)))
}

// launch sends an attempt on the channel at link, or says which interlock forbids it.
func (p *plan) launch(t *trace, now time.Time, link int, action Action, price float64) (state, Instruction, Interlock) {
	ch := p.chain.channels[link]
	if p.budgetForbids(link, now) {
		return nil, nil, InterlockBudget
	}
	permit, key, lock := t.standing.hire(now, ch, p.chain.view(), p.spoiled, p.bill(price))
	if lock != InterlockNone {
		return nil, nil, lock
	}
	p.used++
	p.tries[link]++
	e := engagement{p.used, link, ch, key, permit}
	t.open(now, e, action)
	t.send = Send{
		Attempt: e.seq, Channel: ch, Key: key, ModelSent: ch.ModelSent(t.want.Model),
		Limits: ch.provider.spec.Limits, Deadline: p.deadline, Hold: ch.group.spec.Hold,
		Last: p.used >= p.attempts || int(p.tries[link]) >= p.budget.PerRoute && p.next(t, now) < 0,
	}
	t.send.GateFallback = ch.gateFallsOver() && !t.send.Last && p.next(t, now) >= 0
	return &sending{p, e}, &t.send, InterlockNone
}

// bill is what an attempt of the call costs its group's retry budget.
func (p *plan) bill(price float64) bill {
	return bill{p.chain.group.spec.Name, p.chain.group.among(p.chain.caller), p.chain.retry, price}
}

// next returns the place of the first channel that was not tried and isn't barred, -1
// if there is none.
func (p *plan) next(t *trace, now time.Time) int {
	t.standing.mu.Lock()
	defer t.standing.mu.Unlock()
	for i, ch := range p.chain.channels {
		if p.tries[i] == 0 {
			if why, _ := t.standing.bar(now, ch, p.chain.view()); why == BarNone {
				return i
			}
		}
	}
	return -1
}

// question puts the facts about a failed attempt together.
func (p *plan) question(t *trace, now time.Time, e engagement, f Failure, price float64) *Question {
	t.fillQuestion(now, e, f)
	q := &t.question
	q.RouteAttempts = int(p.tries[e.link])
	q.AttemptsUsed, q.AttemptsLeft = p.used, p.attempts-p.used
	q.Elapsed, q.Remaining = now.Sub(t.req.Arrived), max(p.deadline.Sub(now), 0)
	q.MinUseful, q.Time = p.budget.MinUseful, p.timeAt(now)
	q.Backoff = p.backoff(e.link, t.rnd)
	q.RetryBudget = t.standing.affords(now, p.bill(price))

	start := notBefore(now, f)
	t.standing.mu.Lock()
	defer t.standing.mu.Unlock()
	if !p.budgetForbids(e.link, start) {
		why, _ := t.standing.bar(start, e.channel, p.chain.view())
		q.Same = why == BarNone
		_, _, spare := t.standing.usableKey(start, e.channel.provider, e.key, false)
		q.SpareKey = q.Same && e.key != nil && spare
	}
	q.Fallback = q.Fallback[:0]
	if q.AttemptsLeft > 0 {
		for i, ch := range p.chain.channels {
			if p.tries[i] > 0 {
				continue
			}
			if why, _ := t.standing.bar(now, ch, p.chain.view()); why == BarNone {
				q.Fallback = append(q.Fallback, p.chain.label(ch))
			}
		}
	}
	return q
}
