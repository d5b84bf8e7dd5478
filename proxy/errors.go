package proxy

import (
	"strconv"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// code is the stable machine name of an error of ours. Those of a call that began are
// the engine's.
type code string

const (
	codeBadFraming    code = "bad_request_framing"
	codeBadBody       code = "invalid_request_body"
	codeBodyTooLarge  code = "request_too_large"
	codeHeadTooLarge  code = "request_head_too_large"
	codeInvalidKey    code = "invalid_api_key"
	codeNotAllowed    code = "model_not_allowed"
	codeUnknownModel  code = "model_not_found"
	codeRateLimited   code = "rate_limit_exceeded"
	codeNoChannel     code = "fourgate_no_channel"
	codePolicyRefused code = "policy_refused"
	codePolicyError   code = "policy_error"
	codeDraining      code = "fourgate_draining"
	codeStateDown     code = "shared_state_down"
	codeInternal      code = "fourgate_internal"
	codeUnknownPath   code = "unknown_path"
	codeWrongMethod   code = "method_not_allowed"
	codeRequestBroken code = "request_incomplete"
	codeCallerGone    code = "fourgate_cancelled"
	codeUpstreamError code = "upstream_error"
)

// problem is an error of the gateway's own, before a protocol gives it a shape.
type problem struct {
	status  int
	code    code
	message string
	// retryAfter is when the same request may do better. Only a refusal that cost no
	// upstream call invites SDKs to come back by themselves.
	retryAfter engine.Wait
	final      bool // attempts were made: SDKs must not multiply them
	recorded   bool // the ledger has a record under the request's id
	close      bool // the connection can't be used any more
	allow      string
}

// text is the message with what leads from an application's log to the evidence.
func (p *problem) text(id string) string {
	if p.recorded {
		return p.message + " (request " + id + "; see: fourgate ledger show " + id + ")"
	}
	return p.message + " (request " + id + ")"
}

// maxInvitedWait is the longest Retry-After that official SDKs all obey; above it they
// split between waiting, retrying at once and giving up.
const maxInvitedWait = 60 * time.Second

// advice says what a client that retries by itself is told. The two answers exclude
// each other with one exception: an error after attempts that also knows when the
// chain has somebody again says both "not by yourself" and when.
func (p *problem) advice() (shouldRetry bool, seconds, millis string) {
	wait, given := p.retryAfter.Get()
	if !given || p.status != 429 && p.status != 503 {
		return false, "", ""
	}
	seconds = strconv.FormatInt(max(int64((wait+time.Second-1)/time.Second), 1), 10)
	if p.final || wait > maxInvitedWait {
		return false, seconds, ""
	}
	return true, seconds, strconv.FormatInt(max(wait.Milliseconds(), 1), 10)
}

// protocol is one family of error shapes. Every value is stateless.
type protocol interface {
	// appendError appends a whole error body.
	appendError(dst []byte, p *problem, id string) []byte
	// appendEvent appends one error event for a stream that has come to a place. A stream
	// ends after it, without the protocol's own end mark.
	appendEvent(dst []byte, p *problem, id string, at streamPlace) []byte
}

// streamPlace is how far a caller's stream has come.
type streamPlace struct {
	open   bool // within an event, or an element of an array
	events int  // that were sent whole
}

// shapeOf returns the error shapes of what a target leads to.
func shapeOf(r route) protocol {
	switch {
	case r.array:
		return geminiArrayShape{}
	case r.endpoint == engine.OpenAIResponses:
		return responsesShape{}
	case r.protocol == engine.ProtocolAnthropic:
		return anthropicShape{}
	case r.protocol == engine.ProtocolGemini:
		return geminiShape{}
	}
	return openAIShape{}
}

// separate ends the event that a stream stands in, so that the next one is read alone.
func (at streamPlace) separate(dst []byte) []byte {
	if at.open {
		return append(dst, "\n\n"...)
	}
	return dst
}

// appendQuoted appends s as a JSON string. Bytes that are no UTF-8 become the
// replacement character, so that an error is JSON whatever it quotes.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}
