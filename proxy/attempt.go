package proxy

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/gate"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
)

const (
	// maxErrorBody is how much of an error's body is read, for the classifier and for
	// the caller.
	maxErrorBody = 256 << 10
	// maxWhole is how much of a whole answer is held back to be judged. A larger one
	// commits and is passed on as it comes.
	maxWhole = 32 << 20
)

// send makes one upstream call and holds its answer back until it is decided whether
// it is one.
func (x *exchange) send(in *engine.Send) engine.Event {
	x.answer.close(&x.server.buffers)
	x.answer = answer{}
	x.channel, x.attempts = in.Channel, in.Attempt
	p := x.snapshot.providers[in.Channel.Provider()]
	limits := in.Limits
	if in.Last {
		// The only route left gets all the time: short limits are there to fail over.
		limits = engine.Limits{Idle: limits.Idle}
	}
	x.address(in, p)
	a := x.server.around.Client.Start(p.target, &x.upreq, limits, in.Deadline)
	x.answer.attempt = a
	if !x.leaving.attach(a) {
		return x.gone(engine.BeforeHeaders, true)
	}
	x.server.around.Ledger.Opened(x.call.Record())
	if err := a.Open(); err != nil {
		return x.unanswered(in, err)
	}
	switch {
	case a.Status() < 200 || a.Status() > 299:
		return x.readError(in)
	case encoded(a.Header()) && in.Hold.KeepAlive > 0 && x.request.Stream:
		// The head that the caller may have already says nothing of an encoding.
		ev := x.evidence(in, engine.TransportHTTP)
		ev.Finding = engine.Finding{Class: engine.ClassSchemaInvalid}
		return x.fail(in, ev)
	case encoded(a.Header()):
		return x.readUnread(in)
	case gate.Media(x.endpoint):
		return x.readMedia(in)
	case x.request.Stream:
		return x.readStream(in)
	}
	return x.readWhole(in)
}

// address builds the request that goes upstream. Only its body is the caller's as it
// came; the head is written anew from what is on the allow-list.
func (x *exchange) address(in *engine.Send, p *provider) {
	h := append(x.upreq.Header[:0], x.head.forward...)
	for i := range h {
		// A charset could make an upstream read another model than was judged.
		if h[i].Name == "Content-Type" && !x.body.BareModel {
			h[i].Value = "application/json"
		}
	}
	h = append(h, engine.Header{Name: "Accept-Encoding", Value: "identity"})
	if in.Key != nil {
		if shown := credential(in.Channel.Provider().Auth(), in.Key.Secret()); shown.Name != "" {
			h = append(h, shown)
		}
	}
	h = append(h,
		engine.Header{Name: "X-Request-Id", Value: x.id},
		engine.Header{Name: "X-Fourgate-Attempt", Value: strconv.Itoa(in.Attempt)})
	x.upreq = upstream.Request{
		Method: "POST",
		Path:   x.route.upstreamPath(p.versioned, in.ModelSent, x.head.target),
		Header: h,
		Body:   x.bodyFor(in.ModelSent),
	}
}

// bodyFor is the caller's body byte for byte, or with nothing but the model's name
// replaced where the channel declares another.
func (x *exchange) bodyFor(model string) [][]byte {
	b := &x.body
	if b.ModelEnd == 0 || model == x.request.Contract.Model {
		return append(x.upreq.Body[:0], x.raw)
	}
	name := []byte(model)
	if !b.BareModel {
		if strings.HasPrefix(b.Model, modelPrefix) && x.route.model != "" {
			model = modelPrefix + model
		}
		name = appendQuoted(nil, model)
	}
	return append(x.upreq.Body[:0], x.raw[:b.ModelStart], name, x.raw[b.ModelEnd:])
}

// readError reads the body of a response whose status is an error.
func (x *exchange) readError(in *engine.Send) engine.Event {
	body, _, err := x.readAll(nil, maxErrorBody)
	if x.leaving.why() != staying {
		return x.gone(engine.BeforeOutput, false)
	}
	ev := x.evidence(in, engine.TransportHTTP)
	ev.Body = body
	bodyError(ev, err)
	return x.fail(in, ev)
}

// readWhole holds a whole answer back and judges it.
func (x *exchange) readWhole(in *engine.Send) engine.Event {
	body, more, err := x.readAll(x.memory.read, maxWhole)
	x.memory.read = body
	if x.leaving.why() != staying {
		return x.gone(engine.BeforeOutput, false)
	}
	if err != nil {
		ev := x.evidence(in, engine.TransportHTTP)
		ev.Body = body
		bodyError(ev, err)
		return x.fail(in, ev)
	}
	x.answer.first = body
	if more {
		x.answer.kind = answerUnread
		return x.held(in, "")
	}
	contentType, _ := x.answer.attempt.Header().Get("Content-Type")
	got := gate.Whole(x.endpoint, contentType, body, x.accepts(in))
	if got.Finding != (engine.Finding{}) || got.ErrorBody {
		ev := x.evidence(in, engine.TransportHTTP)
		ev.Body, ev.Finding = body, got.Finding
		return x.fail(in, ev)
	}
	x.answer.kind = answerWhole
	x.answer.usage = got.Usage
	return x.held(in, got.Model)
}

// readUnread commits an answer that can't be judged at its first byte.
func (x *exchange) readUnread(in *engine.Send) engine.Event {
	a := &x.answer
	a.buffer = x.server.buffers.take()
	n, err := a.attempt.Read(a.buffer[:])
	if x.leaving.why() != staying {
		return x.gone(engine.BeforeOutput, false)
	}
	if err != nil {
		ev := x.evidence(in, engine.TransportHTTP)
		if bodyError(ev, err); ev.NetKind == engine.NetNone {
			ev.Finding = gate.Whole(x.endpoint, "", nil, nil).Finding // nothing came
		}
		return x.fail(in, ev)
	}
	a.kind = answerUnread
	a.first = append([]byte(nil), a.buffer[:n]...)
	return x.held(in, "")
}

// readStream holds the opening frames of a stream back until one of them decides.
func (x *exchange) readStream(in *engine.Send) engine.Event {
	a := &x.answer
	a.gate = x.newGate(in)
	a.buffer = x.server.buffers.take()
	until := x.boundGate(in)
	for {
		n, err := a.attempt.Read(a.buffer[:])
		verdict := gate.Wait
		switch {
		case n > 0:
			verdict = a.gate.Feed(a.buffer[:n])
			if verdict == gate.Wait && a.gate.Full() {
				verdict = gate.Commit
			}
		case x.leaving.why() != staying:
			return x.gone(engine.BeforeOutput, false)
		case errors.Is(err, io.EOF):
			if verdict = a.gate.End(); verdict == gate.Wait {
				verdict = gate.Discard
			}
		case elapsed(err, until, x.now()) && !in.GateFallback && !a.gate.Foreign():
			// A slow model is no error: from here on the caller sees what comes.
			verdict = gate.Commit
		default:
			verdict = gate.Discard
			a.gate.End()
		}
		switch verdict {
		case gate.Commit:
			if in.Hold.Complete {
				return x.holdWhole(in)
			}
			a.kind = answerStream
			return x.held(in, a.gate.Model())
		case gate.Discard:
			ev := x.discarded(in, err)
			if elapsed(err, until, x.now()) {
				ev.NetKind = engine.NetIdleTimeout // not the request's deadline
			}
			return x.fail(in, ev)
		}
	}
}

// discarded is the evidence of a stream that never got past the gate. err is how
// reading ended, nil or [io.EOF] if a frame decided.
func (x *exchange) discarded(in *engine.Send, err error) *engine.Evidence {
	g := x.answer.gate
	ev := x.evidence(in, engine.TransportSSE)
	if g.Foreign() {
		// A whole body where a stream was asked for: SDKs read it as an empty success.
		ev.Transport, ev.Body = engine.TransportHTTP, g.Held()
	} else {
		putFrames(ev, g)
	}
	bodyError(ev, err)
	if ev.NetKind == engine.NetNone || g.Foreign() {
		ev.Finding = g.Finding()
	}
	return ev
}

// elapsed says whether a read ended at the gate's time limit, which ends nothing else.
func elapsed(err error, until, now time.Time) bool {
	var e *upstream.Error
	return !until.IsZero() && !now.Before(until) && errors.As(err, &e) && e.Kind == engine.NetDeadlineExceeded
}

// boundGate keeps reads from blocking past the gate's time limit and returns it; zero
// is none. The last attempt has none but the deadline.
func (x *exchange) boundGate(in *engine.Send) time.Time {
	if in.Last || in.Limits.Gate <= 0 || in.Hold.Complete && !in.GateFallback {
		return time.Time{} // a stream that is held to its end commits no earlier
	}
	until := x.now().Add(in.Limits.Gate)
	if !until.Before(in.Deadline) {
		return time.Time{}
	}
	x.answer.attempt.Bound(until)
	return until
}

// readAll reads the body to its end, or to limit bytes; more says that it goes on. It
// uses the capacity of into.
func (x *exchange) readAll(into []byte, limit int) (body []byte, more bool, err error) {
	a := x.answer.attempt
	size := a.ContentLength()
	if size == 0 {
		return nil, false, nil
	}
	room := 4 << 10
	if size > 0 {
		// One byte more, so that the end is read without growing.
		room = int(min(size+1, int64(limit), trustedLength))
	}
	if body = into[:0]; cap(body) < room {
		body = make([]byte, 0, room)
	}
	for {
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		n, err := a.Read(body[len(body):min(cap(body), limit)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, false, nil
		case err != nil:
			return body, false, err
		case int64(len(body)) == size:
			// The end is known; reading it makes the connection usable again.
			if _, err := a.Read(body[len(body):cap(body)]); err != nil && !errors.Is(err, io.EOF) {
				return body, false, err
			}
			return body, false, nil
		case len(body) >= limit:
			return body, true, nil
		}
	}
}

// held tells the engine that the attempt has an answer.
func (x *exchange) held(in *engine.Send, model string) engine.Event {
	a := &x.answer
	a.committed, a.status, a.headers = x.now(), a.attempt.Status(), a.attempt.Header()
	x.events.held = engine.Held{Attempt: in.Attempt, Status: a.status, Model: model, Timing: x.timing()}
	return &x.events.held
}

func (x *exchange) accepts(in *engine.Send) func(string) bool {
	channel, model := in.Channel, x.request.Contract.Model
	return func(answered string) bool { return channel.Accepts(model, answered) }
}

func encoded(h engine.Headers) bool {
	v, ok := h.Get("Content-Encoding")
	return ok && v != "" && !strings.EqualFold(v, "identity")
}
