package proxy

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/gate"
)

// readMedia reads an answer that may be of any type, as its content type says. A provider
// may give a whole answer where a stream was asked for: not every model streams.
func (x *exchange) readMedia(in *engine.Send) engine.Event {
	contentType, _ := x.answer.attempt.Header().Get("Content-Type")
	name, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	switch name = strings.TrimSpace(name); {
	case name == "text/event-stream":
		return x.readStream(in)
	case name == "", strings.Contains(name, "json"), strings.HasPrefix(name, "text/"):
		return x.readWhole(in)
	}
	return x.readUnread(in)
}

// newGate makes the gate for the answer's stream.
func (x *exchange) newGate(in *engine.Send) *gate.Stream {
	if x.route.array {
		return gate.NewArray(x.endpoint, x.accepts(in))
	}
	g := gate.NewStream(x.endpoint, x.accepts(in))
	g.Expect(x.body.Choices)
	return g
}

// holdWhole goes on holding a stream that has output until it is whole, so that what
// breaks it can still fall back. Nothing of it has reached the caller. Past the bound it
// is committed as it is.
func (x *exchange) holdWhole(in *engine.Send) engine.Event {
	a := &x.answer
	g := a.gate
	a.attempt.Bound(in.Deadline)
	marked := false
	for !g.Errored() && int64(len(g.Held())) < in.Hold.Max {
		if g.Ended() && !marked {
			marked = true
			a.attempt.Bound(earlier(time.Now().Add(doneGrace), in.Deadline))
		}
		n, err := a.attempt.Read(a.buffer[:])
		switch {
		case n > 0:
			if g.Feed(a.buffer[:n]) == gate.Discard {
				return x.fail(in, x.discarded(in, nil))
			}
			continue
		case x.leaving.why() != staying:
			return x.gone(engine.BeforeOutput, false)
		case marked, g.Complete() && errors.Is(err, io.EOF):
			a.kind = answerStream
			return x.held(in, g.Model())
		}
		ev := x.evidence(in, engine.TransportSSE)
		if bodyError(ev, err); ev.NetKind == engine.NetNone {
			// An orderly end of the connection without the protocol's end mark.
			ev.NetKind, ev.NetOp = engine.NetUnexpectedEOF, engine.OpReadBody
		}
		return x.fail(in, ev)
	}
	if g.Errored() {
		ev := x.evidence(in, engine.TransportSSE)
		g.Release()
		putFrames(ev, g)
		ev.Finding = g.Finding()
		return x.fail(in, ev)
	}
	a.kind = answerStream
	return x.held(in, g.Model())
}

// putFrames puts a gate's frames into evidence: as events, or as the one body that they are.
func putFrames(ev *engine.Evidence, g *gate.Stream) {
	frames := g.Frames()
	if !g.Body() {
		ev.Frames = frames
		return
	}
	ev.Transport = engine.TransportHTTP
	if len(frames) > 0 {
		ev.Body = frames[len(frames)-1]
	}
}

func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}
