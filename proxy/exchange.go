package proxy

import (
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/judge"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
	"github.com/fourgate-dev/fourgate/proxy/watch"
)

// exchange is one request of a caller from its head to its last byte. One goroutine
// owns it: the one that fasthttp runs the handler on and later writes the stream on.
// Only its leaving is shared.
type exchange struct {
	server   *Server
	snapshot *snapshot
	ctx      *fasthttp.RequestCtx // until the handler has returned
	arrived  time.Time
	id       string

	head     head
	route    route
	shape    protocol
	endpoint engine.Endpoint

	caller   *engine.Caller
	body     judge.Body
	raw      []byte // the body itself
	bodyRead bool   // all of it
	request  engine.Request
	chain    engine.Chain
	outs     []engine.Out // for the debug headers alone

	call     *engine.Call
	channel  *engine.Channel // of the attempt that runs or ran last
	attempts int
	leaving  leaving
	conn     watch.Watched // the caller's connection; nil if it can't be watched
	answer   answer        // of the attempt that runs or was committed
	failure  failedAnswer
	stream   relay
	events   events
	upreq    upstream.Request

	prev, next *exchange // in the server's running set
	memory     exchangeMemory
}

// events holds one event of each kind, so that stepping the call allocates nothing.
type events struct {
	held       engine.Held
	failed     engine.Failed
	classified engine.Classified
	decided    engine.Decided
	woke       engine.Woke
	gone       engine.Gone
	ended      engine.Ended
	evidence   engine.Evidence
}

// begin takes an exchange for a request.
func (s *Server) begin(ctx *fasthttp.RequestCtx) *exchange {
	x := s.exchanges.Get().(*exchange)
	x.server, x.snapshot, x.ctx, x.arrived = s, s.snapshot.Load(), ctx, s.around.Clock()
	x.shape = openAIShape{}
	return x
}

// maxKept bounds the buffers that an exchange keeps for another request.
const maxKept = 64 << 10

// maxKeptChain bounds the chain whose memory an exchange keeps.
const maxKeptChain = 64

// recycle gives the exchange to another request. Nobody may hold it any more: neither
// the watch nor the running set, as release saw to, nor fasthttp, which is why the
// exchange of a stream is never recycled.
func (x *exchange) recycle() {
	kept := x.memory
	if cap(kept.raw) > maxKept {
		kept.raw = nil
	}
	if cap(kept.read) > maxKept {
		kept.read = nil
	}
	header, body := x.upreq.Header[:cap(x.upreq.Header)], x.upreq.Body[:cap(x.upreq.Body)]
	clear(header)
	clear(body)
	if chain := x.chain.Channels(); cap(chain) > cap(kept.room) && cap(chain) <= maxKeptChain {
		kept.room = chain
	}
	clear(kept.room[:cap(kept.room)])
	pool := &x.server.exchanges
	*x = exchange{memory: kept}
	x.upreq.Header, x.upreq.Body = header[:0], body[:0]
	pool.Put(x)
}

// exchangeMemory is what an exchange hands on to the next request: capacity, no
// content.
type exchangeMemory struct {
	raw  []byte            // a request's body
	read []byte            // an answer
	text []byte            // a head
	room []*engine.Channel // a chain
}

func (x *exchange) now() time.Time { return x.server.around.Clock() }

// frame checks the request's head and gives the request its id.
func (x *exchange) frame() *problem {
	h := &x.ctx.Request.Header
	// One copy holds target and fields: its pieces go upstream and into the record, and
	// fasthttp's own buffer is used again.
	text := append(append(x.memory.text[:0], h.RequestURI()...), h.RawHeaders()...)
	x.memory.text = text
	target, raw := string(text), ""
	target, raw = target[:len(h.RequestURI())], target[len(h.RequestURI()):]
	fault := x.head.read(known(h.Method()), target, known(h.Protocol()), raw)
	if x.id = x.head.requestID; x.id == "" {
		x.id = newID(x.arrived, x.server.around.Rand)
	}
	x.route = locate(x.head.target)
	x.shape = shapeOf(x.route)
	if fault != "" {
		return &problem{status: 400, code: codeBadFraming, close: true,
			message: "the request was refused: " + fault}
	}
	return nil
}

// known makes a string of b without memory of its own where b is what nearly all
// requests have.
func known(b []byte) string {
	switch string(b) {
	case "POST":
		return "POST"
	case "GET":
		return "GET"
	case "HTTP/1.1":
		return "HTTP/1.1"
	}
	return string(b)
}

// refuse answers with an error of ours before any call was begun.
func (x *exchange) refuse(p *problem) {
	x.server.metrics.refusals.of(refusalLabels{x.endpoint, p.code}).Inc()
	x.respond(p)
	if x.outs != nil {
		x.debugHeaders()
	}
}

// respond writes an error of ours as the whole response.
func (x *exchange) respond(p *problem) {
	r := &x.ctx.Response
	r.ResetBody()
	r.SetStatusCode(p.status)
	r.Header.SetContentType("application/json")
	x.stamp()
	shouldRetry, seconds, millis := p.advice()
	if !shouldRetry {
		r.Header.Set("X-Should-Retry", "false")
	}
	if seconds != "" {
		r.Header.Set("Retry-After", seconds)
	}
	if millis != "" {
		r.Header.Set("Retry-After-Ms", millis)
	}
	if p.allow != "" {
		r.Header.Set("Allow", p.allow)
	}
	r.SetBodyRaw(x.shape.appendError(make([]byte, 0, 256), p, x.id))
	if p.close || x.unread() > maxDrained {
		x.ctx.SetConnectionClose()
		if x.unread() > 0 {
			linger(x.ctx)
		}
	}
}

// maxDrained is how much of an unwanted body fasthttp reads by itself to keep the
// connection.
const maxDrained = 256 << 10

// unread is how much of the request's body may still be on its way.
func (x *exchange) unread() int {
	switch {
	case x.bodyRead || x.head.contentLength == 0:
		return 0
	case x.head.contentLength < 0:
		return maxDrained + 1
	}
	return x.head.contentLength
}

// stamp puts the request's id on the response, under the name that each SDK reads.
func (x *exchange) stamp() {
	h := &x.ctx.Response.Header
	h.Set("X-Request-Id", x.id)
	if x.endpoint == engine.AnthropicMessages {
		h.Set("Request-Id", x.id)
	}
}

// recoverPanic turns a defect of ours into a 500 and a log line with its stack, and
// leaves nothing of the request running. It is deferred.
func (x *exchange) recoverPanic() {
	r := recover()
	if r == nil {
		return
	}
	x.crashed(r)
	if x.ctx != nil {
		_ = x.ctx.Response.CloseBodyStream()
		x.ctx.Response.Reset()
		x.respond(&problem{status: 500, code: codeInternal, final: true, close: true,
			message: "the gateway has a defect and could not finish this request"})
	}
}

// crashed logs and counts a panic and lets go of everything the request holds. Its
// record is closed as if the caller had gone: nobody is to blame for a defect of ours.
func (x *exchange) crashed(r any) {
	x.server.metrics.panics.Inc()
	x.server.around.Logger.Error("request ended by a defect; please report it with this stack",
		"request_id", x.id, "panic", r, "stack", string(debug.Stack()))
	defer x.release()
	defer x.answer.close(&x.server.buffers)
	defer func() {
		if again := recover(); again != nil {
			x.server.around.Logger.Error("record left open by a defect", "request_id", x.id, "panic", again)
		}
	}()
	if x.call != nil && x.call.Record().Terminal() == engine.TerminalNone {
		x.perform(x.call.Step(x.now(), &engine.Gone{Timing: x.timing()}))
	}
}

// release ends the watch over the caller and takes the request off the running set. It
// may be called twice.
func (x *exchange) release() {
	if x.call == nil {
		return
	}
	if x.conn != nil {
		x.conn.Disarm()
	}
	x.server.running.remove(x)
	x.call = nil
}
