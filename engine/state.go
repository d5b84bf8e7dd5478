package engine

import "time"

// state is where a call stands. A step gives the next state and the next instruction;
// a nil instruction means that the event changed nothing.
//
//sumtype:decl
type state interface {
	step(t *trace, now time.Time, ev Event) (state, Instruction)
}

// sending: an attempt is under way and nothing of it has reached the caller.
type sending struct {
	plan *plan
	engagement
}

// classifying: the attempt failed; the provider's classifier is asked.
type classifying struct {
	plan *plan
	engagement
	evidence *Evidence
}

// asking: the failure is known; the policy is asked.
type asking struct {
	plan *plan
	engagement
	evidence *Evidence
	failure  Failure
	price    float64
}

// waiting: the next attempt is decided and starts later.
type waiting struct {
	plan *plan
	engagement
	evidence *Evidence
	failure  Failure
	price    float64
	aim      aim
}

// aim is the channel of the next attempt: a place in the chain, or the next one that
// is free when the time has come.
type aim struct {
	action Action
	link   int // -1: the next free one
}

// relaying: the attempt is committed. There is no plan any more.
type relaying struct{ engagement }

// broken: a committed attempt broke with an error of the upstream's own; the classifier
// is asked for the cause.
type broken struct {
	engagement
	evidence *Evidence
}

// closing: a committed attempt broke; the policy is asked for its effects only.
type closing struct {
	engagement
	failure Failure
}

// ended: nothing is left to do.
type ended struct{}

func (s *sending) step(t *trace, now time.Time, ev Event) (state, Instruction) {
	switch ev := ev.(type) {
	case *Gone:
		t.attempt().phase = ev.Phase
		if ev.NotStarted {
			t.attempt().completion = CompletionNone
		}
		t.timing(now, ev.Timing)
		return t.cancelled(now, s.engagement)
	case *Held:
		if ev.Attempt != s.seq {
			return s, nil
		}
		t.attempt().status = ev.Status
		t.merge(ev.Timing)
		if contractForbids(s.channel, t.want, ev.Model) {
			return s.failed(t, now, violation(s.channel, t.want, ev))
		}
		t.attempt().outputStarted = true
		t.attempt().phase = AfterOutput
		t.record.status = ev.Status
		s.permit = t.standing.committed(s.channel, s.permit)
		t.relay = Relay{s.seq}
		return &relaying{s.engagement}, &t.relay
	case *Failed:
		if ev.Attempt != s.seq {
			return s, nil
		}
		t.timing(now, ev.Timing)
		if ev.Evidence.CallerGone {
			t.attempt().phase = ev.Evidence.Phase
			return t.cancelled(now, s.engagement)
		}
		return s.failed(t, now, ev.Evidence)
	}
	return s, nil
}

// failed asks the classifier, except about what the engine knows for certain.
func (s *sending) failed(t *trace, now time.Time, ev *Evidence) (state, Instruction) {
	if ev.Finding.Class == ClassContractViolation {
		return s.plan.ask(t, now, s.engagement, ev, Verdict{})
	}
	t.classify = Classify{s.seq, s.channel, ev}
	return &classifying{s.plan, s.engagement, ev}, &t.classify
}

// violation is the evidence of an answer that got past its gate with another model's
// name on it.
func violation(ch *Channel, want Contract, h *Held) *Evidence {
	return &Evidence{
		Provider: ch.provider.spec.Name, Contract: want, Transport: TransportHTTP, Status: h.Status,
		Phase: BeforeOutput, Finding: Finding{ClassContractViolation, Reason{"model_mismatch"}},
	}
}

func (s *classifying) step(t *trace, now time.Time, ev Event) (state, Instruction) {
	switch ev := ev.(type) {
	case *Gone:
		return t.cancelled(now, s.engagement)
	case *Classified:
		if ev.Attempt != s.seq {
			return s, nil
		}
		return s.plan.ask(t, now, s.engagement, s.evidence, ev.Verdict)
	}
	return s, nil
}

// ask turns a verdict into a failure and puts it to the policy.
func (p *plan) ask(t *trace, now time.Time, e engagement, ev *Evidence, v Verdict) (state, Instruction) {
	f := FailureOf(v, ev)
	if p.hurried && ev.NetKind == NetDeadlineExceeded {
		// A limit of the caller's or of a route policy has run out, which says nothing of the channel.
		f.scope = ScopeRequest
	}
	t.fail(f)
	if f.scope == ScopeKey {
		p.spoiled = e.key
	}
	if f.class == ClassUnknown {
		t.attempt().shape = ShapeOf(ev)
	}
	price := priceOfAttempt
	if timedOut(ev) {
		price = priceAfterTimeout
	}
	t.ask = Ask{e.seq, p.question(t, now, e, f, price)}
	return &asking{p, e, ev, f, price}, &t.ask
}

func (s *asking) step(t *trace, now time.Time, ev Event) (state, Instruction) {
	switch ev := ev.(type) {
	case *Gone:
		return t.cancelled(now, s.engagement)
	case *Decided:
		if ev.Attempt != s.seq {
			return s, nil
		}
		d := ev.Decision.usable()
		t.standing.apply(now, blamed(s.failure, d.Effects), s.channel, s.key, t.want.Model, s.permit)
		t.decide(d)
		return s.obey(t, now, d)
	}
	return s, nil
}

// blamed are a decision's effects, unless nothing but the request is to blame: no policy
// can make one caller's fault everybody's.
func blamed(f Failure, effects []Effect) []Effect {
	if f.scope == ScopeRequest {
		return nil
	}
	return effects
}

// obey takes a decision through the interlocks.
func (s *asking) obey(t *trace, now time.Time, d Decision) (state, Instruction) {
	if d.Action == Abort {
		return s.abort(t, now, d)
	}
	if lock, stops := ruledOut(s.failure, t.req.Idempotency, d); stops {
		return s.stop(t, now, lock)
	}
	to, start, lock := s.target(t, now, d)
	if lock != InterlockNone && lock != InterlockRetryAfter {
		return s.stop(t, now, lock)
	}
	t.decision().delay = start.Sub(now)
	t.decision().interlock = lock
	if !s.plan.timeAt(start) {
		if lock == InterlockNone {
			lock = InterlockBudget
		}
		return s.stop(t, now, lock)
	}
	next := &waiting{s.plan, s.engagement, s.evidence, s.failure, s.price, to}
	if !start.After(now) {
		return next.wake(t, now)
	}
	if lock := next.forbidden(t, start); lock != InterlockNone {
		return s.stop(t, now, lock)
	}
	t.wait = WaitUntil{start}
	return next, &t.wait
}

// target finds the channel and the start of the attempt that a decision asks for. The
// interlock retry_after is returned where it has put the start off.
func (s *asking) target(t *trace, now time.Time, d Decision) (aim, time.Time, Interlock) {
	if d.Action == Fallback {
		delay, _ := d.Delay.Get()
		start := now.Add(delay)
		if d.Channel == "" {
			return aim{Fallback, -1}, start, InterlockNone
		}
		for i, ch := range s.plan.chain.channels {
			if s.plan.tries[i] == 0 && s.plan.chain.label(ch) == d.Channel {
				return aim{Fallback, i}, start, InterlockNone
			}
		}
		return aim{}, now, InterlockEligible
	}
	wait, lock := sameRouteWait(&t.question, d, s.plan.deadline.Sub(now))
	return aim{Retry, s.link}, now.Add(wait), lock
}

// forbidden looks ahead to the start, so that no caller waits for an attempt that
// can't be made.
func (s *waiting) forbidden(t *trace, start time.Time) Interlock {
	link := s.aim.link
	if link < 0 {
		if link = s.plan.next(t, start); link < 0 {
			return InterlockEligible
		}
	}
	if s.plan.budgetForbids(link, start) {
		return InterlockBudget
	}
	t.standing.mu.Lock()
	why, _ := t.standing.bar(start, s.plan.chain.channels[link], s.plan.chain.view())
	t.standing.mu.Unlock()
	if why != BarNone {
		return InterlockEligible
	}
	if !t.standing.affords(start, s.plan.bill(s.price)) {
		return InterlockRetryBudget
	}
	return InterlockNone
}

func (s *waiting) step(t *trace, now time.Time, ev Event) (state, Instruction) {
	switch ev.(type) {
	case *Gone:
		t.decision().interlock = InterlockCancelled
		return t.finish(now, TerminalCancelled, Reply{})
	case *Woke:
		if now.Before(t.wait.At) {
			return s, nil
		}
		return s.wake(t, now)
	}
	return s, nil
}

// wake sends the attempt that was decided on.
func (s *waiting) wake(t *trace, now time.Time) (state, Instruction) {
	link := s.aim.link
	if link < 0 {
		link = s.plan.next(t, now)
	}
	lock := InterlockEligible
	if link >= 0 {
		var next state
		var ins Instruction
		t.decision().channel = s.plan.chain.label(s.plan.chain.channels[link])
		if next, ins, lock = s.plan.launch(t, now, link, s.aim.action, s.price); lock == InterlockNone {
			return next, ins
		}
		t.decision().channel = ""
	}
	back := &asking{s.plan, s.engagement, s.evidence, s.failure, s.price}
	return back.stop(t, now, lock)
}

// abort ends the call as the policy said. Where only the budget gate stopped it, the
// call is exhausted: there was the will and no way.
func (s *asking) abort(t *trace, now time.Time, d Decision) (state, Instruction) {
	g := d.Gates
	if g.AttemptBudget == GateStop && g.FailureClass == GatePass && g.ResponsePhase == GatePass && g.Idempotency == GatePass {
		return t.finish(now, TerminalExhausted, s.exhausted(t, now))
	}
	if s.failure.class == ClassRefusal || s.failure.class == ClassOK { // of a whole answer
		return t.finish(now, TerminalSuccess, Reply{Kind: ReplyUpstream, Attempt: s.seq})
	}
	return t.finish(now, TerminalPolicyStop, s.failure.reply(s.seq, s.evidence))
}

// stop ends the call because an interlock forbids what the policy decided.
func (s *asking) stop(t *trace, now time.Time, lock Interlock) (state, Instruction) {
	t.decision().interlock = lock
	if lock == InterlockEffects || lock == InterlockContract {
		return t.finish(now, TerminalPolicyStop, s.failure.reply(s.seq, s.evidence))
	}
	return t.finish(now, TerminalExhausted, s.exhausted(t, now))
}

func (s *relaying) step(t *trace, now time.Time, ev Event) (state, Instruction) {
	switch ev := ev.(type) {
	case *Gone:
		t.timing(now, ev.Timing)
		return t.cancelled(now, s.engagement)
	case *Ended:
		if ev.Attempt != s.seq {
			return s, nil
		}
		t.timing(now, ev.Timing)
		t.use(s.channel, ev.Usage)
		switch {
		case ev.CallerGone:
			return t.cancelled(now, s.engagement)
		case ev.Broken != nil:
			ev.Broken.Phase = AfterOutput
			if len(ev.Broken.Frames) > 0 {
				// The upstream has said itself what broke: the plugin knows its words.
				t.classify = Classify{s.seq, s.channel, ev.Broken}
				return &broken{s.engagement, ev.Broken}, &t.classify
			}
			return t.close(now, s.engagement, ev.Broken, Verdict{})
		}
		t.attempt().class = ClassOK
		var earns *Group
		if s.seq == 1 && t.req.SDKRetry == 0 {
			earns = t.group
		}
		t.standing.succeeded(now, s.channel, s.permit, earns, t.retry)
		return t.finish(now, TerminalSuccess, Reply{})
	}
	return s, nil
}

func (s *broken) step(t *trace, now time.Time, ev Event) (state, Instruction) {
	switch ev := ev.(type) {
	case *Gone:
		return t.cancelled(now, s.engagement)
	case *Classified:
		if ev.Attempt != s.seq {
			return s, nil
		}
		return t.close(now, s.engagement, s.evidence, ev.Verdict)
	}
	return s, nil
}

// close asks the policy about a committed attempt that broke.
func (t *trace) close(now time.Time, e engagement, ev *Evidence, v Verdict) (state, Instruction) {
	f := FailureOf(v, ev)
	t.fail(f)
	t.fillQuestion(now, e, f)
	t.ask = Ask{e.seq, &t.question}
	return &closing{e, f}, &t.ask
}

func (s *closing) step(t *trace, now time.Time, ev Event) (state, Instruction) {
	switch ev := ev.(type) {
	case *Gone:
		return t.cancelled(now, s.engagement)
	case *Decided:
		if ev.Attempt != s.seq {
			return s, nil
		}
		d := ev.Decision.usable()
		t.standing.apply(now, blamed(s.failure, d.Effects), s.channel, s.key, t.want.Model, s.permit)
		t.decide(d)
		if d.Action != Abort {
			t.decision().interlock = InterlockCommitted
		}
		return t.finish(now, TerminalPartial, s.failure.partialReply())
	}
	return s, nil
}

func (ended) step(*trace, time.Time, Event) (state, Instruction) { return ended{}, nil }
