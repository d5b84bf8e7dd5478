package proxy

import (
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// waiting is a call that goes on after its caller's status was sent, with a comment now
// and then. Until done gives its outcome, the exchange belongs to the call's goroutine.
type waiting struct {
	done chan outcome
	tick *time.Ticker
}

// outcome is what a call came to: a [engine.Relay], a [engine.Finish], or a defect.
type outcome struct {
	ins    engine.Instruction
	defect any
	stack  []byte
}

// keepAlive is an event that clients skip.
const keepAlive = ": keep-alive\n\n"

// driveAlive runs the call with a comment to the caller after each interval, the first of
// which commits the status. A call that ends before is answered as any other.
func (x *exchange) driveAlive(ins engine.Instruction, every time.Duration) {
	done := make(chan outcome, 1)
	go func() {
		var out outcome
		defer func() {
			if p := recover(); p != nil {
				out = outcome{defect: p, stack: debug.Stack()}
			}
			done <- out
		}()
		out.ins = x.perform(ins)
	}()
	first := time.NewTimer(every)
	defer first.Stop()
	select {
	case out := <-done:
		x.conclude(out.unwrap())
	case <-first.C:
		r := &x.ctx.Response
		r.SetStatusCode(200)
		r.Header.SetContentType("text/event-stream")
		r.Header.Set("Cache-Control", "no-cache")
		x.stamp()
		// A relay of its own: the exchange's is for the call, which may look at it.
		stream := &relay{x: x, conn: x.ctx.Conn(), waiting: &waiting{done: done, tick: time.NewTicker(every)}, early: keepAlive}
		r.SetBodyStream(stream, -1)
		x.ctx = nil
	}
}

// unwrap gives the instruction, or goes on with the panic that there was instead.
func (o outcome) unwrap() engine.Instruction {
	if o.defect != nil {
		panic(fmt.Sprintf("%v\n%s", o.defect, o.stack))
	}
	return o.ins
}

// await gives the next comment, or what the call came to. It returns false once there is
// an answer to be relayed.
func (r *relay) await() (b []byte, over bool, err error) {
	if r.early != "" {
		b, r.early = []byte(r.early), ""
		return b, true, nil
	}
	select {
	case <-r.waiting.tick.C:
		return []byte(keepAlive), true, nil
	case out := <-r.waiting.done:
		r.stopWaiting()
		switch ins := out.unwrap().(type) {
		case *engine.Relay:
			r.adopt(ins)
			return nil, false, nil
		case *engine.Finish:
			b, err = r.concluded(ins)
			return b, true, err
		}
		panic("BUG: a call ended without an outcome")
	}
}

func (r *relay) stopWaiting() {
	r.waiting.tick.Stop()
	r.waiting = nil
}

// adopt makes the relay that of a committed answer.
func (r *relay) adopt(ins *engine.Relay) {
	x := r.x
	r.attempt = ins.Attempt
	x.answer.attempt.Bound(time.Time{})
	if x.answer.buffer == nil {
		x.answer.buffer = x.server.buffers.take()
	}
	x.stream.x = x // from here on the call's end is the stream's
}

// concluded gives the error event of a call that came to nothing.
func (r *relay) concluded(fin *engine.Finish) ([]byte, error) {
	x := r.x
	r.over = true
	p := problem{status: fin.Reply.Status, code: code(fin.Reply.Code), message: fin.Reply.Message, final: true, recorded: true}
	switch {
	case x.leaving.why() == serverClosing:
		p.status, p.code, p.message = 503, codeDraining, "the gateway was stopped before the request could end"
	case fin.Terminal == engine.TerminalCancelled:
		r.failed = errCallerGone
		return nil, r.failed
	case fin.Reply.Kind == engine.ReplyUpstream:
		f := &x.failure
		if p.status, p.code = f.callerStatus(false), codeUpstreamError; p.status < 300 {
			p.status = 502 // of the stream's own status nothing is an error
		}
		p.message = fmt.Sprintf("the upstream answered with status %d%s", f.status, f.said())
	}
	return x.shape.appendEvent(nil, &p, x.id, streamPlace{}), io.EOF
}

// abandon ends a call whose caller can't be reached any more.
func (r *relay) abandon() {
	r.x.leaving.leave(callerGone)
	out := <-r.waiting.done
	r.stopWaiting()
	if ins, ok := out.unwrap().(*engine.Relay); ok {
		r.adopt(ins)
		r.end(&engine.Ended{CallerGone: true})
	}
	r.over = true
}
