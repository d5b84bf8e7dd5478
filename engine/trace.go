package engine

import (
	"slices"
	"time"
)

// trace is what every state may touch: the request, the standing, chance, the record,
// and the storage of the outstanding instruction. It holds no plan.
type trace struct {
	req      *Request
	want     Contract
	group    *Group
	retry    RetryBudgetSpec
	standing *Standing
	rnd      Rand
	record   Record

	out      Instruction
	send     Send
	classify Classify
	ask      Ask
	wait     WaitUntil
	relay    Relay
	end      Finish
	question Question
}

// attempt is the record of the attempt that goes or went last.
func (t *trace) attempt() *AttemptRecord { return &t.record.attempts[len(t.record.attempts)-1] }

func (t *trace) decision() *DecisionRecord { return &t.attempt().decision }

// open records an attempt before it goes out.
func (t *trace) open(now time.Time, e engagement, action Action) {
	if t.record.attempts == nil {
		t.record.attempts = make([]AttemptRecord, 0, 1)
	}
	a := AttemptRecord{
		seq: e.seq, group: e.channel.group.spec.Name, channel: e.channel.spec.Name, provider: e.channel.provider.spec.Name,
		model: e.channel.ModelSent(t.want.Model), endpoint: t.want.Endpoint, action: action,
	}
	if e.key != nil {
		a.key = e.key.name
	}
	a.timing.Started = now.Sub(t.req.Arrived)
	t.record.attempts = append(t.record.attempts, a)
}

// merge takes the driver's milestones over.
func (t *trace) merge(m Timing) {
	to := &t.attempt().timing
	for _, f := range []struct {
		to   *time.Duration
		from time.Duration
	}{
		{&to.Connected, m.Connected}, {&to.Sent, m.Sent}, {&to.Headers, m.Headers},
		{&to.FirstByte, m.FirstByte}, {&to.Committed, m.Committed}, {&to.Ended, m.Ended},
	} {
		if f.from != 0 {
			*f.to = f.from
		}
	}
}

// timing takes the milestones of an attempt that is over.
func (t *trace) timing(now time.Time, m Timing) {
	t.merge(m)
	a := t.attempt()
	if a.timing.Ended == 0 {
		a.timing.Ended = now.Sub(t.req.Arrived)
	}
	a.ended = true
}

// fail records a failure on the attempt.
func (t *trace) fail(f Failure) {
	a := t.attempt()
	a.failed, a.class, a.scope, a.reason, a.fault = true, f.class, f.scope, f.reason, f.fault
	a.phase, a.completion = f.phase, f.completion
	if f.status != 0 {
		a.status = f.status
	}
	a.ended = true
}

// decide records what the policy answered.
func (t *trace) decide(d Decision) {
	a := t.attempt()
	a.decided = true
	delay, _ := d.Delay.Get()
	a.decision = DecisionRecord{
		action: d.Action, reason: d.Reason, rule: d.Rule, gates: d.Gates, delay: delay, fault: d.Fault,
		effects: recordedEffects(d.Effects), asked: askedOf(&t.question),
	}
	// Another name could be anything, and leads nowhere.
	if d.Channel != "" && slices.Contains(t.question.Fallback, d.Channel) {
		a.decision.picked = d.Channel
	}
}

// use records what the upstream said it has used, and what that costs.
func (t *trace) use(ch *Channel, u Usage) {
	a := t.attempt()
	a.usage = u
	a.costUSD, a.costKnown = ch.price(u)
}

// fillQuestion sets what is known without a plan.
func (t *trace) fillQuestion(now time.Time, e engagement, f Failure) {
	fallback := t.question.Fallback
	t.question = Question{
		RequestID: t.req.ID, Caller: t.req.Caller.spec.Name, Contract: t.want, Stream: t.req.Stream, Tools: t.req.Tools,
		SDKRetry: t.req.SDKRetry, Idempotency: t.req.Idempotency, Now: now,
		Seq: e.seq, Group: e.channel.group.spec.Name, Channel: e.channel.spec.Name, Provider: e.channel.provider.spec.Name,
		RouteAttempts: 1, Failure: f, AttemptsUsed: e.seq, Fallback: fallback[:0],
	}
	if e.key != nil {
		t.question.Key = e.key.name
	}
}

// cancelled ends the call because the caller has gone. Nobody is to blame.
func (t *trace) cancelled(now time.Time, e engagement) (state, Instruction) {
	t.standing.released(e.permit)
	a := t.attempt()
	if !a.failed {
		a.failed, a.class, a.scope, a.reason = true, ClassCancelled, ScopeNone, reasonCallerCancelled
	}
	if a.phase == AfterOutput {
		a.completion = CompletionPartial
	}
	a.cancelled, a.ended = true, true
	return t.finish(now, TerminalCancelled, Reply{})
}

// statusClientClosed is what logs of nginx call a caller that left; it is recorded,
// never sent.
const statusClientClosed = 499

// finish ends the call and completes its record.
func (t *trace) finish(now time.Time, why Terminal, reply Reply) (state, Instruction) {
	r := &t.record
	r.terminal, r.elapsed = why, now.Sub(t.req.Arrived)
	switch {
	case why == TerminalCancelled:
		if r.status == 0 {
			r.status = statusClientClosed
		}
	case reply.Kind == ReplyOwn:
		r.status = reply.Status
	case reply.Kind == ReplyUpstream:
		r.status = t.attempt().status
	}
	t.standing.conclude(now, t.req, t.group.spec.Budget.Deadline, r)
	t.end = Finish{why, reply}
	return ended{}, &t.end
}

// price is what usage costs on the channel in USD, if both are known.
func (c *Channel) price(u Usage) (float64, bool) {
	in, inKnown := u.Input.Get()
	out, outKnown := u.Output.Get()
	if !c.spec.Cost.Given || !inKnown || !outKnown {
		return 0, false
	}
	const million = 1e6
	cached, known := u.CachedInput.Get()
	if !known || !c.spec.Cost.CachedInputGiven {
		cached = 0
	}
	cached = min(cached, in)
	return (float64(in-cached)*c.spec.Cost.Input + float64(cached)*c.spec.Cost.CachedInput + float64(out)*c.spec.Cost.Output) / million, true
}
