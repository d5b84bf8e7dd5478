package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/gate"
	"github.com/fourgate-dev/fourgate/proxy/sse"
)

// relay passes a committed answer to the caller as it comes. fasthttp drives it after
// the handler has returned, on the same goroutine, and closes it before the connection
// serves another request.
type relay struct {
	x       *exchange
	attempt int
	begun   bool
	over    bool
	marked  bool // the protocol's own end mark was seen
	sent    int64
	failed  error // ends the transfer without its last chunk
	tail    []byte
	conn    net.Conn // the caller's
	waiting *waiting // the call still runs
	early   string   // what goes out before anything else
}

// doneGrace is how long an upstream may take to end its body after the protocol's own
// end mark. The caller waits for it; only the connection's reuse is at stake.
const doneGrace = 500 * time.Millisecond

// startStream hands the committed answer to fasthttp.
func (x *exchange) startStream(in *engine.Relay) {
	r := &x.ctx.Response
	a := &x.answer
	a.attempt.Bound(time.Time{})
	r.SetStatusCode(a.attempt.Status())
	x.passHeaders(a.attempt.Header(), true)
	x.stamp()
	x.debugHeaders()
	length := -1
	if n := a.attempt.ContentLength(); n >= 0 && a.kind == answerUnread {
		length = int(n)
	}
	// A cut is told by what is missing of the length, so the head must be out by then.
	r.ImmediateHeaderFlush = length >= 0
	if a.buffer == nil {
		a.buffer = x.server.buffers.take()
	}
	x.memory.read = nil // the answer may be in it
	x.stream = relay{x: x, attempt: in.Attempt, conn: x.ctx.Conn()}
	x.ctx.Response.SetBodyStream(&x.stream, length)
	x.ctx = nil
}

// SupportsBodyWriteTo lets fasthttp frame the bytes from our buffer, one flushed chunk
// for each write, instead of copying them into its own.
func (r *relay) SupportsBodyWriteTo() bool { return true }

// WriteTo writes the answer to the caller. It is fasthttp's way for chunked bodies.
func (r *relay) WriteTo(w io.Writer) (written int64, err error) {
	for {
		b, err := r.next()
		if len(b) > 0 {
			n, err := w.Write(b)
			written += int64(n)
			if err != nil {
				return written, err // Close tells the engine that the caller has gone
			}
		}
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return written, err
		}
	}
}

// Read is fasthttp's way for bodies of a known length and for HTTP/1.0.
func (r *relay) Read(p []byte) (int, error) {
	if len(r.tail) == 0 {
		b, err := r.next()
		if len(b) == 0 {
			return 0, err
		}
		r.tail = b
	}
	n := copy(p, r.tail)
	r.tail = r.tail[n:]
	return n, nil
}

// recoverPanic ends the transfer after a defect of ours. It is deferred.
func (r *relay) recoverPanic(err *error) {
	if p := recover(); p != nil {
		r.over, r.failed = true, errDefect
		r.x.crashed(p)
		*err = errDefect
	}
}

// Close is called once the body was written or can't be. What has not ended then has a
// caller that no longer takes bytes.
func (r *relay) Close() (err error) {
	defer r.recoverPanic(&err)
	if r.waiting != nil {
		r.abandon()
	}
	if !r.over {
		// A body of a known length is written without a look at its end.
		a := &r.x.answer
		r.end(&engine.Ended{CallerGone: a.kind != answerUnread || r.sent != a.attempt.ContentLength()})
	}
	if half, ok := r.conn.(interface{ CloseRead() error }); ok && r.x.server.draining.Load() {
		// The head went out before the drain began and promised another request; none
		// will be read.
		_ = half.CloseRead()
	}
	return nil
}

// next gives the next bytes for the caller: what was held back, what the upstream
// sends, and at a broken end one error event. The bytes are valid until the next call.
func (r *relay) next() (b []byte, err error) {
	x := r.x
	if r.over {
		if r.failed != nil {
			return nil, r.failed
		}
		return nil, io.EOF
	}
	defer r.recoverPanic(&err)
	if r.waiting != nil {
		if b, over, err := r.await(); over {
			return b, err
		}
	}
	a := &x.answer
	if !r.begun {
		r.begun = true
		if a.gate != nil {
			b = a.gate.Release()
		} else {
			b = a.first
		}
		if len(b) > 0 {
			r.passed(b)
			return b, nil
		}
	}
	for {
		if a.gate != nil && a.gate.Errored() {
			return r.finish(nil) // what an upstream sends after its error is nothing
		}
		n, err := a.attempt.Read(a.buffer[:])
		if n == 0 {
			return r.finish(err)
		}
		b = a.buffer[:n]
		if a.gate != nil {
			b = a.gate.Pass(b)
		}
		r.passed(b)
		if len(b) > 0 {
			return b, nil
		}
	}
}

// passed counts bytes that go to the caller, and gives the upstream little time once the
// end mark is among them. A finish reason ends one choice of several, and usage may follow
// it; after the mark nothing does.
func (r *relay) passed(b []byte) {
	r.sent += int64(len(b))
	a := &r.x.answer
	if !r.marked && a.gate != nil && a.gate.Ended() {
		r.marked = true
		a.attempt.Bound(time.Now().Add(doneGrace))
	}
}

var (
	errDefect     = errors.New("the gateway has a defect")
	errCallerGone = errors.New("the caller has gone")
	errCut        = errors.New("the upstream's answer was cut and has no form for an error")
)

// finish tells the engine how the stream ended and gives the bytes that are left for
// the caller.
func (r *relay) finish(err error) ([]byte, error) {
	x := r.x
	a := &x.answer
	eof := errors.Is(err, io.EOF)
	ended := &engine.Ended{}
	switch {
	case a.gate == nil && eof, a.gate != nil && a.gate.Complete() && !a.gate.Errored() && (eof || r.marked):
		// All of it has come, whatever the connections did after it.
	case x.leaving.why() == callerGone:
		r.end(&engine.Ended{CallerGone: true})
		r.failed = errCallerGone
		return nil, r.failed
	case a.gate == nil:
		ended.Broken = r.broken(engine.TransportHTTP, err)
	default:
		ended.Broken = r.broken(engine.TransportSSE, err)
	}
	g := a.gate
	said := ""
	if g != nil && g.Errored() {
		said = x.saidBy(g)
	}
	reply := r.end(ended)
	if g == nil {
		if reply.Kind == engine.ReplyPartial {
			r.failed = errCut
			return nil, r.failed
		}
		return nil, io.EOF
	}
	at := streamPlace{open: g.Open(), events: g.Given()}
	tail := g.Leftover()
	if reply.Kind != engine.ReplyPartial || g.Errored() && !g.Withheld() && g.Finding() == (engine.Finding{}) {
		return tail, io.EOF
	}
	if x.route.array {
		at.open = at.open || len(tail) > 0
	} else {
		tail = nil // half an event, which nobody has seen
	}
	p := problem{status: 502, code: code(reply.Code), message: reply.Message + said, final: true, recorded: true}
	if x.leaving.why() == serverClosing {
		p.code, p.message = codeDraining, "the gateway was stopped before the stream could end"
	}
	return x.shape.appendEvent(tail, &p, x.id, at), nil
}

// maxSaid bounds what is quoted of an upstream's error, in bytes.
const maxSaid = 300

// saidBy quotes the message of the error that broke a stream, for the error that takes its
// place.
func (x *exchange) saidBy(g *gate.Stream) string {
	f := failedAnswer{body: bytes.Join(g.Frames(), nil)}
	for _, key := range x.channel.Provider().Keys() {
		f.hide(key.Secret())
	}
	return f.said()
}

// said is the upstream's own message in a body or an event, if it can be found.
func (f *failedAnswer) said() string {
	text := f.body
	if data := sse.Parse(text, false).Data; len(data) > 0 {
		text = data
	}
	for _, path := range [...]string{"error.message", "message", "response.error.message", "0.error.message"} {
		if m := gjson.GetBytes(text, path); m.Type == gjson.String && m.Str != "" {
			return "; the upstream said: " + strings.ToValidUTF8(m.Str[:min(len(m.Str), maxSaid)], "")
		}
	}
	return ""
}

// broken is the evidence of a committed attempt that broke.
func (r *relay) broken(over engine.Transport, err error) *engine.Evidence {
	x := r.x
	ev := &x.events.evidence
	*ev = engine.Evidence{
		Provider: x.channel.Provider().Name(), Contract: x.request.Contract, Stream: x.request.Stream,
		Transport: over, Status: x.answer.attempt.Status(), Headers: x.answer.attempt.Header(), Phase: engine.AfterOutput,
	}
	bodyError(ev, err)
	if x.answer.gate != nil && x.answer.gate.Errored() {
		putFrames(ev, x.answer.gate)
		ev.Finding = x.answer.gate.Finding()
	}
	if ev.NetKind == engine.NetNone && (x.answer.gate == nil || !x.answer.gate.Errored()) {
		// An orderly end of the connection without the protocol's end mark.
		ev.NetKind, ev.NetOp = engine.NetUnexpectedEOF, engine.OpReadBody
	}
	return ev
}

// end steps the call to its end and closes everything.
func (r *relay) end(ended *engine.Ended) engine.Reply {
	x := r.x
	r.over = true
	ended.Attempt = r.attempt
	ended.Timing = x.timing()
	if x.answer.gate != nil {
		ended.Usage = x.answer.gate.Usage()
	}
	x.events.ended = *ended
	ins := x.perform(x.step(&x.events.ended))
	if fin, ok := ins.(*engine.Finish); ok {
		return fin.Reply
	}
	panic(fmt.Sprintf("BUG: a committed call goes on with %T", ins))
}

var _ interface {
	io.ReadCloser
	io.WriterTo
	SupportsBodyWriteTo() bool
} = (*relay)(nil)
