package proxy

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
)

// unanswered tells the engine of an attempt without a response.
func (x *exchange) unanswered(in *engine.Send, err *upstream.Error) engine.Event {
	if x.leaving.why() != staying {
		return x.gone(engine.BeforeHeaders, err.NotStarted)
	}
	ev := x.evidence(in, engine.TransportNetwork)
	ev.NetKind, ev.NetOp, ev.NotStarted = err.Kind, err.Op, err.NotStarted
	ev.Phase = engine.BeforeHeaders
	return x.fail(in, ev)
}

// fail tells the engine that the attempt failed, and keeps its answer.
func (x *exchange) fail(in *engine.Send, ev *engine.Evidence) engine.Event {
	x.failure = failedAnswer{status: ev.Status, headers: ev.Headers, body: ev.Body}
	if ev.Transport == engine.TransportSSE {
		x.failure.stream = true
		for _, f := range ev.Frames {
			x.failure.body = append(x.failure.body, f...)
		}
	}
	if in.Key != nil {
		x.failure.hide(in.Key.Secret())
	}
	x.events.failed = engine.Failed{Attempt: in.Attempt, Evidence: ev, Timing: x.timing()}
	x.answer.close(&x.server.buffers)
	return &x.events.failed
}

// hide masks a credential that an upstream quotes in its error, also in the spelling of
// JSON writers that escape the slash.
func (f *failedAnswer) hide(secret engine.Secret) {
	plain := secret.Reveal()
	if plain == "" {
		return
	}
	for _, text := range []string{plain, strings.ReplaceAll(plain, "/", `\/`)} {
		if bytes.Contains(f.body, []byte(text)) {
			f.body = bytes.ReplaceAll(f.body, []byte(text), []byte("***"))
		}
	}
	for i := range f.headers {
		if strings.Contains(f.headers[i].Value, plain) {
			f.headers[i].Value = "***"
		}
	}
}

// gone tells the engine that the request is to end.
func (x *exchange) gone(phase engine.Phase, notStarted bool) engine.Event {
	x.events.gone = engine.Gone{Phase: phase, NotStarted: notStarted, Timing: x.timing()}
	x.answer.close(&x.server.buffers)
	return &x.events.gone
}

// evidence starts the evidence of a failure of the running attempt.
func (x *exchange) evidence(in *engine.Send, over engine.Transport) *engine.Evidence {
	ev := &x.events.evidence
	*ev = engine.Evidence{
		Provider:  in.Channel.Provider().Name(),
		Contract:  x.request.Contract,
		Stream:    x.request.Stream,
		Transport: over,
		Status:    x.answer.attempt.Status(),
		Headers:   x.answer.attempt.Header(),
		Phase:     engine.BeforeOutput,
	}
	return ev
}

// bodyError puts into evidence how a body ended, nil for an orderly end.
func bodyError(ev *engine.Evidence, err error) {
	var e *upstream.Error
	if !errors.As(err, &e) {
		return
	}
	ev.NetKind, ev.NetOp = e.Kind, e.Op
	switch e.Kind {
	case engine.NetIdleTimeout, engine.NetDeadlineExceeded:
		ev.End = engine.EndIdle
	case engine.NetContextCanceled:
		ev.End = engine.EndCancelled
	default:
		ev.End = engine.EndReset
	}
}

// timing gives the attempt's milestones as times since the request arrived.
func (x *exchange) timing() engine.Timing {
	if x.answer.attempt == nil {
		return engine.Timing{}
	}
	m := x.answer.attempt.Milestones()
	return engine.Timing{
		Connected: x.since(m.Connected),
		Sent:      x.since(m.Sent),
		Headers:   x.since(m.HeadersAt),
		FirstByte: x.since(m.FirstByte),
		Committed: x.since(x.answer.committed),
	}
}

func (x *exchange) since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(t.Sub(x.arrived), 1)
}
