package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/judge"
)

// admit does everything that comes before the first attempt: method, caller, body,
// judgement of the body, chain.
func (x *exchange) admit() *problem {
	if x.head.method != fasthttp.MethodPost {
		return &problem{status: 405, code: codeWrongMethod, allow: "POST",
			message: fmt.Sprintf("this path is served for POST, not for %s", x.head.method)}
	}
	if x.server.draining.Load() {
		return &problem{status: 503, code: codeDraining, close: true, retryAfter: engine.WaitOf(time.Second),
			message: "the gateway is being stopped and takes no new requests; send it again, and another instance will serve it"}
	}
	if p := x.authenticate(); p != nil {
		return p
	}
	if x.server.stateDown() {
		return &problem{status: 503, code: codeStateDown, retryAfter: engine.WaitOf(time.Second),
			message: "the state that this gateway's instances share can't be used, and state.on_outage refuses requests then; send it again"}
	}
	raw, p := x.readBody()
	if p != nil {
		return p
	}
	x.bodyRead = true
	body, fault := x.judge(raw)
	if fault != nil {
		return &problem{status: 400, code: codeBadBody, message: fault.Message}
	}
	x.body, x.raw = body, raw
	return x.findChain()
}

// judge reads the body as its endpoint and content type say. Where the path names the
// model and the kind of answer, the path counts, and a body that names another model is
// refused: a provider might go by it.
func (x *exchange) judge(raw []byte) (judge.Body, *judge.Fault) {
	if (x.endpoint == engine.OpenAIImages || x.endpoint == engine.OpenAIAudio) && judge.IsForm(x.head.contentType) {
		return judge.Form(x.endpoint, x.head.contentType, raw)
	}
	body, fault := judge.Request(x.endpoint, raw)
	if fault != nil || x.route.model == "" {
		return body, fault
	}
	if body.Model != "" && strings.TrimPrefix(body.Model, modelPrefix) != x.route.model {
		return judge.Body{}, &judge.Fault{Reason: judge.BadModel, Offset: body.ModelStart,
			Message: `The body's "model" is another one than the path's. Leave it out of the body.`}
	}
	body.Stream = x.route.stream
	return body, nil
}

// modelPrefix is what Gemini's bodies put before a model's name.
const modelPrefix = "models/"

// contract is what the caller asks for.
func (x *exchange) contract() engine.Contract {
	if x.route.model != "" {
		return engine.Contract{Model: x.route.model, Endpoint: x.endpoint}
	}
	return engine.Contract{Model: x.body.Model, Endpoint: x.endpoint}
}

// authenticate finds the caller by whichever of its credentials is known.
func (x *exchange) authenticate() *problem {
	catalog := x.snapshot.Catalog
	if x.route.protocol == engine.ProtocolGemini {
		// Google's older clients show the key in the query.
		if _, query, _ := strings.Cut(x.head.target, "?"); query != "" {
			if key := queryValue(query, "key"); key != "" {
				x.head.credentials = append(x.head.credentials, key)
			}
		}
	}
	for _, shown := range x.head.credentials {
		if caller, ok := catalog.Caller(shown); ok {
			x.caller = caller
			return nil
		}
	}
	if caller, ok := catalog.Caller(""); ok {
		x.caller = caller
		return nil
	}
	message := "no key was shown; send this gateway's own key as Authorization: Bearer KEY, x-api-key: KEY or x-goog-api-key: KEY"
	if len(x.head.credentials) > 0 {
		message = "the key that was shown is not one of this gateway's callers; a provider's own key is not accepted here"
	}
	return &problem{status: 401, code: codeInvalidKey, message: message}
}

// trustedLength is up to which size a declared Content-Length is believed before its
// bytes have come.
const trustedLength = 1 << 20

// readBody reads the whole body into memory of its own.
func (x *exchange) readBody() ([]byte, *problem) {
	limit, declared := x.server.settings.MaxBody, x.head.contentLength
	if declared > limit {
		return nil, tooLarge(limit)
	}
	stream := x.ctx.RequestBodyStream()
	if declared == 0 || stream == nil {
		return nil, nil
	}
	if declared > 0 && declared <= trustedLength {
		if cap(x.memory.raw) < declared {
			x.memory.raw = make([]byte, declared)
		}
		body := x.memory.raw[:declared]
		if n, err := io.ReadFull(stream, body); n < declared {
			return nil, cutShort(err)
		}
		return body, nil
	}
	body := make([]byte, 0, 64<<10)
	for {
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		n, err := stream.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if len(body) > limit {
			return nil, tooLarge(limit)
		}
		if errors.Is(err, io.EOF) {
			if declared > 0 && len(body) < declared {
				return nil, cutShort(err)
			}
			return body, nil
		}
		if err != nil {
			return nil, cutShort(err)
		}
	}
}

func tooLarge(limit int) *problem {
	return &problem{status: 413, code: codeBodyTooLarge, close: true,
		message: fmt.Sprintf("the request body is over %d bytes; server.max_body sets this limit", limit)}
}

func cutShort(err error) *problem {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &problem{status: 408, code: codeRequestBroken, close: true, message: "the request body did not arrive in time"}
	}
	return &problem{status: 400, code: codeRequestBroken, close: true, message: "the request body ended early or its chunks are malformed"}
}

// expect decides before the body is sent whether it is wanted. fasthttp calls it for
// Expect: 100-continue.
func (s *Server) expect(ctx *fasthttp.RequestCtx) int {
	x := s.begin(ctx)
	p := x.frame()
	if p == nil {
		if x.endpoint = x.route.endpoint; x.route.place == placeEndpoint {
			if p = x.authenticate(); p == nil && x.head.contentLength > s.settings.MaxBody {
				p = tooLarge(s.settings.MaxBody)
			}
		}
	}
	if p == nil {
		return fasthttp.StatusContinue
	}
	p.close = true
	x.refuse(p)
	return p.status
}

// findChain builds the engine's view of the request and asks for its chain.
func (x *exchange) findChain() *problem {
	retries, _ := strconv.Atoi(x.head.retryCount)
	x.request = engine.Request{
		ID:       x.id,
		Caller:   x.caller,
		Contract: x.contract(),
		Stream:   x.body.Stream,
		Tools:    x.body.Tools,
		SDKRetry: min(max(retries, 0), maxSDKRetry),
		Idempotency: engine.Idempotency{
			Key:        saneKey(x.head.idempotency),
			ReplaySafe: x.body.ReplaySafe,
			Effects:    x.body.Effects,
		},
		Arrived:   x.arrived,
		TimeLimit: timeLimit(x.head.serverTimeout, x.head.sdkTimeout),
		Estimate:  x.estimate(),
		Uncut:     x.snapshot.routed,
		Room:      x.memory.room,
	}
	x.recognise()
	x.explain()
	chain, refusal := x.snapshot.Catalog.Route(x.now(), x.server.around.Standing, &x.request, x.server.around.Rand)
	if refusal != nil {
		return x.turnAway(refusal)
	}
	x.chain = chain
	x.request.Policy = x.snapshot.policies[chain.Group()].revision
	if x.head.nested {
		// The outer gateway has a budget of its own. A second one would multiply it, so
		// its attempt gets one of ours.
		x.request.MaxAttempts = 1
	}
	if x.snapshot.routed {
		return x.narrow()
	}
	return nil
}

// estimate is what the request will probably use, from what the body says of it. Only
// those pay for it whose channels are chosen by price.
func (x *exchange) estimate() engine.Estimate {
	if !x.caller.Compares() {
		return engine.Estimate{}
	}
	switch x.endpoint {
	case engine.OpenAIImages, engine.OpenAIAudio:
		return engine.Estimate{} // the bytes of a picture or a recording are no measure of tokens
	}
	cached := x.body.Cached || x.endpoint == engine.AnthropicMessages && bytes.Contains(x.raw, cacheMark)
	return engine.EstimateOf(len(x.raw), x.body.MaxOutput, cached)
}

// cacheMark stands within the blocks of a message whose beginning is to be cached.
var cacheMark = []byte(`"cache_control"`)

// turnAway refuses a request that gets no chain.
func (x *exchange) turnAway(refusal *engine.Refusal) *problem {
	p := refused(refusal)
	x.server.metrics.admissions.of(admissionLabels{x.caller.Name(), p.code}).Inc()
	switch refusal.Kind {
	case engine.RefusalNoChannel, engine.RefusalRate, engine.RefusalPolicy:
		// What an outage or a policy turned away belongs to its evidence; a wrong key or
		// model is noise that anybody can make.
		x.server.around.Ledger.Closed(engine.RecordRefusal(x.now(), &x.request, refusal, p.status))
		p.recorded = true
	}
	return p
}

// maxSDKRetry bounds what a caller can claim; LangChain's 6 is the most that any SDK
// makes by default.
const maxSDKRetry = 100

func refused(r *engine.Refusal) *problem {
	p := &problem{message: r.Message, retryAfter: r.RetryAfter}
	switch r.Kind {
	case engine.RefusalUnknownModel:
		p.status, p.code = 404, codeUnknownModel
	case engine.RefusalNotAllowed:
		p.status, p.code = 403, codeNotAllowed
	case engine.RefusalRate:
		p.status, p.code = 429, codeRateLimited
		if wait, given := p.retryAfter.Get(); given {
			// A rate is one of a minute: whoever is told longer doesn't come back by itself.
			p.retryAfter = engine.WaitOf(min(wait, maxInvitedWait))
		}
	case engine.RefusalNoChannel:
		p.status, p.code = 503, codeNoChannel
	case engine.RefusalPolicy:
		p.status, p.code = 503, codePolicyRefused
		if n := r.Narrowing; n != nil && n.Fault() != "" {
			p.code = codePolicyError
		}
	}
	return p
}

// saneKey reads an Idempotency-Key, quoted as the draft has it or bare as Stripe does.
// What is not 1 to 255 printable characters counts as none.
func saneKey(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	if len(s) > 255 {
		return ""
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return ""
		}
	}
	return s
}

// timeLimit is the shorter of the deadlines that an SDK shows, in seconds. Some builds
// send words such as NOT_GIVEN; those say nothing.
func timeLimit(values ...string) engine.Wait {
	limit := engine.Wait{}
	shortest := math.Inf(1)
	for _, v := range values {
		if v == "" {
			continue
		}
		seconds, err := strconv.ParseFloat(v, 64)
		if err != nil || !(seconds > 0) || seconds > 86400 || seconds >= shortest {
			continue
		}
		shortest = seconds
		limit = engine.WaitOf(time.Duration(seconds * float64(time.Second)))
	}
	return limit
}
