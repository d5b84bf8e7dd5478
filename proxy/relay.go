package proxy

import (
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// passWhole writes a whole answer byte for byte.
func (x *exchange) passWhole() {
	if x.answer.kind != answerWhole {
		// The engine took a failed attempt for a success: a refusal, or an answer that
		// only looks like a failure.
		x.passFailure(true)
		return
	}
	r := &x.ctx.Response
	r.SetStatusCode(x.answer.status)
	x.passHeaders(x.answer.headers, true)
	// It stops an SDK that would replay a 200 whose body it lost.
	r.Header.Set("X-Should-Retry", "false")
	x.stamp()
	if len(x.answer.first) <= maxCopied {
		r.SetBody(x.answer.first)
		return
	}
	x.memory.read = nil // it is the response's now
	r.SetBodyRaw(x.answer.first)
}

// maxCopied is up to which size a whole answer is copied into the response's own
// memory, which is cheaper than memory of its own for each answer.
const maxCopied = 16 << 10

// passFailure writes the last failed attempt's own answer. Its Retry-After stays
// behind: this error is final, and "don't retry, but later" would be read differently
// by each SDK.
func (x *exchange) passFailure(success bool) {
	f := &x.failure
	r := &x.ctx.Response
	r.SetStatusCode(f.callerStatus(success))
	x.passHeaders(f.headers, success)
	r.Header.Set("X-Should-Retry", "false")
	x.stamp()
	r.SetBody(f.body)
}

// passHeaders copies the upstream's end-to-end headers that mean something to a
// caller. retryAfter says whether its Retry-After is among them.
func (x *exchange) passHeaders(from engine.Headers, retryAfter bool) {
	h := &x.ctx.Response.Header
	for i := range from {
		f := &from[i]
		switch passed(f.Name) {
		case passAlways:
			h.Add(f.Name, f.Value)
		case passType:
			h.SetContentType(f.Value)
		case passRetryAfter:
			if retryAfter {
				h.Add(f.Name, f.Value)
			}
		case passNever:
		}
	}
}

type passing uint8

const (
	passNever passing = iota
	passAlways
	passType
	passRetryAfter
)

// passed is the allow-list of response headers. Cookies, ids, and everything about the
// upstream's connection, server and origin stay behind.
func passed(name string) passing {
	if len(name) == 0 {
		return passNever
	}
	switch name[0] | 0x20 {
	case 'a':
		if hasPrefix(name, "anthropic-") || hasPrefix(name, "apim-") || hasPrefix(name, "azureml-") {
			return passAlways
		}
	case 'c':
		switch {
		case strings.EqualFold(name, "Content-Type"):
			return passType
		case strings.EqualFold(name, "Content-Encoding"), strings.EqualFold(name, "Content-Language"),
			strings.EqualFold(name, "Cache-Control"):
			return passAlways
		}
	case 'o':
		if hasPrefix(name, "openai-") {
			return passAlways
		}
	case 'r':
		switch {
		case strings.EqualFold(name, "Retry-After"), strings.EqualFold(name, "Retry-After-Ms"):
			return passRetryAfter
		case strings.EqualFold(name, "RateLimit"), hasPrefix(name, "RateLimit-"):
			return passAlways
		}
	case 'x':
		if hasPrefix(name, "x-ratelimit-") || hasPrefix(name, "x-ms-") || hasPrefix(name, "x-groq-") {
			return passAlways
		}
	}
	return passNever
}

func hasPrefix(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}
