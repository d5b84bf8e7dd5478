package proxy

import (
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/gate"
	"github.com/fourgate-dev/fourgate/proxy/watch"
)

// drive runs the call: it does what the engine says and tells it what came of it, until
// an answer is committed to a stream or the call is over. It decides nothing.
func (x *exchange) drive() {
	if conn, ok := watch.Of(x.ctx.Conn()); ok {
		x.conn = conn
		conn.Arm(x.callerGone)
	}
	call, ins := engine.Begin(x.now(), &x.request, x.chain, x.server.around.Standing, x.server.around.Rand)
	x.call = call
	x.server.running.add(x)
	if hold := x.chain.Group().Hold(); hold.Complete && hold.KeepAlive > 0 && x.request.Stream && !x.route.array && !gate.Media(x.endpoint) {
		x.driveAlive(ins, hold.KeepAlive)
		return
	}
	x.conclude(x.perform(ins))
}

// conclude answers as the call says.
func (x *exchange) conclude(ins engine.Instruction) {
	switch ins := ins.(type) {
	case *engine.Relay:
		x.startStream(ins)
	case *engine.Finish:
		x.reply(ins)
	}
}

// callerGone is called by the watch, from its goroutine.
func (x *exchange) callerGone() { x.leaving.leave(callerGone) }

// perform does what the call says until it is over, or until a stream is to be
// relayed, which goes on outside the handler.
func (x *exchange) perform(ins engine.Instruction) engine.Instruction {
	for {
		switch in := ins.(type) {
		case *engine.Send:
			ins = x.step(x.send(in))
		case *engine.Classify:
			ins = x.step(x.unlessGone(x.classify(in)))
		case *engine.Ask:
			ins = x.step(x.unlessGone(x.ask(in)))
		case *engine.WaitUntil:
			ins = x.step(x.wait(in))
		case *engine.Relay:
			if x.answer.kind != answerWhole {
				return in
			}
			x.events.ended = engine.Ended{Attempt: in.Attempt, Usage: x.answer.usage, Timing: x.timing()}
			ins = x.step(&x.events.ended)
		case *engine.Finish:
			x.finish()
			return in
		}
	}
}

// step tells the call what happened.
func (x *exchange) step(ev engine.Event) engine.Instruction {
	x.remember(ev)
	ins := x.call.Step(x.now(), ev)
	if x.server.around.Observer != nil {
		x.server.around.Observer.Observe(x.call.Record())
	}
	return ins
}

func (x *exchange) classify(in *engine.Classify) engine.Event {
	p := in.Channel.Provider()
	verdict := engine.Verdict{Fault: "absent"}
	if c := x.snapshot.providers[p].classifier; c != nil {
		verdict = c.Classify(in.Evidence)
	}
	if verdict.Fault != "" {
		x.server.metrics.classifiers.of(faultLabels{p.Classifier(), verdict.Fault}).Inc()
	}
	x.events.classified = engine.Classified{Attempt: in.Attempt, Verdict: verdict}
	return &x.events.classified
}

// unlessGone gives ev, or the news that the request is to end, so that no attempt is
// opened for nobody. A committed answer ends as it would have.
func (x *exchange) unlessGone(ev engine.Event) engine.Event {
	if x.stream.x != nil || x.leaving.why() == staying {
		return ev
	}
	x.events.gone = engine.Gone{}
	return &x.events.gone
}

// wait sleeps until the time has come or the request is to end.
func (x *exchange) wait(in *engine.WaitUntil) engine.Event {
	timer := time.NewTimer(in.At.Sub(x.now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return &x.events.woke
	case <-x.leaving.woken():
		x.events.gone = engine.Gone{Phase: engine.BeforeHeaders, NotStarted: true}
		return &x.events.gone
	}
}

// finish closes the record, counts, and lets go of everything but the answer.
func (x *exchange) finish() {
	record := x.call.Record()
	x.server.around.Ledger.Closed(record)
	x.server.metrics.finished(record)
	x.server.metrics.repeated(x.chain.Group().Name(), record)
	x.answer.close(&x.server.buffers)
	x.release()
}

// reply writes what the caller gets when nothing is streamed to it.
func (x *exchange) reply(in *engine.Finish) {
	switch in.Reply.Kind {
	case engine.ReplyUpstream:
		x.passFailure(in.Terminal == engine.TerminalSuccess)
	case engine.ReplyOwn:
		r := &in.Reply
		p := problem{status: r.Status, code: code(r.Code), message: r.Message, retryAfter: r.RetryAfter, final: true, recorded: true}
		if x.server.settings.DebugHeaders && r.Detail != "" {
			p.message += ": " + r.Detail
		}
		x.respond(&p)
	case engine.ReplyNone, engine.ReplyPartial:
		if in.Terminal == engine.TerminalSuccess {
			x.passWhole()
		} else {
			x.respondGone()
		}
	}
	x.debugHeaders()
}

// statusCallerGone is nginx's status for a caller that left. Nobody reads it but a
// caller that closed only its sending side.
const statusCallerGone = 499

// respondGone ends a request that was cancelled before anything was committed.
func (x *exchange) respondGone() {
	p := &problem{status: statusCallerGone, code: codeCallerGone, final: true, recorded: true, close: true,
		message: "the connection was closed by the caller's side, so the request was cancelled"}
	if x.leaving.why() == serverClosing {
		p.status, p.code = 503, codeDraining
		p.message = "the gateway was stopped before the request could end"
	}
	x.respond(p)
}
