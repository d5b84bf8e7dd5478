// Package enginetest runs the engine in virtual time against a scripted world: what
// upstreams, classifier, policy and caller do is a function, and time passes only where
// the script says so. Tests and simulations use it; it never opens a socket.
package enginetest

import (
	"fmt"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// Outcome is what an upstream does with one attempt.
type Outcome struct {
	Takes time.Duration // until the event below
	// Failure is the failed attempt's evidence; nil means a decisive answer.
	Failure *engine.Evidence
	// Status and Model of a decisive answer.
	Status int
	Model  string
	// Relays is how long the relay takes, and Broken what breaks it, if anything.
	Relays time.Duration
	Broken *engine.Evidence
	Usage  engine.Usage
}

// World is everything around one call.
type World struct {
	Now      time.Time
	Catalog  *engine.Catalog
	Standing *engine.Standing
	Rand     engine.Rand
	// Narrow answers before the first attempt; nil is no route policy.
	Narrow   func(q *engine.RouteQuestion) engine.RouteAnswer
	Upstream func(s *engine.Send) Outcome
	Classify func(ev *engine.Evidence) engine.Verdict
	Decide   func(q *engine.Question) engine.Decision
	// LeavesAfter is when the caller goes, counted from the request; negative: never.
	LeavesAfter time.Duration
	// Oversleeps is how much later than asked a wait ends; nil is never.
	Oversleeps func() time.Duration
}

// Sent is one upstream call, as the world saw it.
type Sent struct {
	At   time.Time
	Send engine.Send // a copy
	// After is what the policy was told and said before it; nil for the first.
	After *Asked
	// Aside is what was set aside when it began.
	Aside []engine.Aside
}

// Asked is one question with its answer.
type Asked struct {
	At       time.Time
	Question engine.Question
	Decision engine.Decision
	// Committed says that the question came after commit.
	Committed bool
	// Interlock is the one that acted on the decision at once, before any wait.
	Interlock engine.Interlock
	// Follows says that another attempt began at once or is waited for.
	Follows bool
}

// Narrowed is the question before the first attempt with its answer, and what came of it.
type Narrowed struct {
	Question  engine.RouteQuestion
	Answer    engine.RouteAnswer
	Narrowing *engine.Narrowing
}

// Trace is what happened in one call.
type Trace struct {
	Request   *engine.Request
	Chain     engine.Chain // as it was routed, or as a route policy has narrowed it
	Narrowed  *Narrowed    // nil without a route policy
	Refusal   *engine.Refusal
	Sent      []Sent
	Asked     []Asked
	Committed time.Time // zero if nothing was
	// SentAtCommit is how many upstream calls had gone out by then.
	SentAtCommit int
	Left         time.Time // zero if the caller stayed
	Finish       engine.Finish
	Ended        time.Time
	Record       *engine.Record
}

// maxSteps is far above what any budget allows; a call that takes more never ends.
const maxSteps = 10_000

// Run takes one request through the engine. The world's time is moved on.
func (w *World) Run(req *engine.Request) (Trace, error) {
	req.Arrived, req.Uncut = w.Now, w.Narrow != nil
	tr := Trace{Request: req}
	chain, refusal := w.Catalog.Route(w.Now, w.Standing, req, w.Rand)
	if refusal != nil {
		tr.Refusal = refusal
		return tr, nil
	}
	tr.Chain = chain
	if w.Narrow != nil {
		q := chain.RouteQuestion(req, w.Now)
		a := w.Narrow(&q)
		tr.Narrowed = &Narrowed{Question: q, Answer: a}
		if chain, tr.Narrowed.Narrowing, tr.Refusal = chain.Narrow(a); tr.Refusal != nil {
			return tr, nil
		}
		tr.Chain, _ = chain.Cut()
	}
	call, ins := engine.Begin(w.Now, req, chain, w.Standing, w.Rand)
	var running Outcome
	var asked *Asked
	for range maxSteps {
		var ev engine.Event
		switch i := ins.(type) {
		case *engine.Send:
			running = w.Upstream(i)
			tr.Sent = append(tr.Sent, Sent{w.Now, *i, asked, w.Standing.List(w.Now)})
			ev = w.send(&tr, i, running)
		case *engine.Classify:
			ev = &engine.Classified{Attempt: i.Attempt, Verdict: w.Classify(i.Evidence)}
		case *engine.Ask:
			q := *i.Question
			q.Fallback = append([]string(nil), q.Fallback...)
			d := w.Decide(&q)
			tr.Asked = append(tr.Asked, Asked{At: w.Now, Question: q, Decision: d, Committed: !tr.Committed.IsZero()})
			asked = &tr.Asked[len(tr.Asked)-1]
			ins = call.Step(w.Now, &engine.Decided{Attempt: i.Attempt, Decision: d})
			made, _ := call.Record().Attempts()[i.Attempt-1].Decision()
			asked.Interlock = made.Interlock()
			switch ins.(type) {
			case *engine.Send, *engine.WaitUntil:
				asked.Follows = true
			}
			continue
		case *engine.WaitUntil:
			ev = &engine.Woke{}
			wait := i.At.Sub(w.Now)
			if w.Oversleeps != nil {
				wait += w.Oversleeps()
			}
			if w.pass(&tr, wait) {
				ev = &engine.Gone{}
			}
		case *engine.Relay:
			tr.Committed, tr.SentAtCommit = w.Now, len(tr.Sent)
			end := &engine.Ended{Attempt: i.Attempt, Broken: running.Broken, Usage: running.Usage}
			end.CallerGone = w.pass(&tr, running.Relays)
			ev = end
		case *engine.Finish:
			tr.Finish, tr.Ended, tr.Record = *i, w.Now, call.Record()
			return tr, nil
		}
		ins = call.Step(w.Now, ev)
	}
	return tr, fmt.Errorf("the call did not end within %d steps", maxSteps)
}

// send lets an attempt run until its outcome, its deadline or the caller's leaving.
func (w *World) send(tr *Trace, s *engine.Send, o Outcome) engine.Event {
	takes, late := o.Takes, false
	if left := s.Deadline.Sub(w.Now); takes > left {
		takes, late = left, true
	}
	if w.pass(tr, takes) {
		return &engine.Gone{Phase: engine.BeforeHeaders}
	}
	switch {
	case late:
		return &engine.Failed{Attempt: s.Attempt, Evidence: &engine.Evidence{
			Transport: engine.TransportNetwork, NetKind: engine.NetDeadlineExceeded, NetOp: engine.OpReadHeaders,
		}}
	case o.Failure != nil:
		return &engine.Failed{Attempt: s.Attempt, Evidence: o.Failure}
	}
	return &engine.Held{Attempt: s.Attempt, Status: o.Status, Model: o.Model}
}

// pass moves time on and says whether the caller left meanwhile.
func (w *World) pass(tr *Trace, d time.Duration) bool {
	until := w.Now.Add(max(d, 0))
	if w.LeavesAfter >= 0 {
		if leaves := tr.Request.Arrived.Add(w.LeavesAfter); !leaves.After(until) {
			if leaves.After(w.Now) {
				w.Now = leaves
			}
			tr.Left = w.Now
			return true
		}
	}
	w.Now = until
	return false
}
