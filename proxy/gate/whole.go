package gate

import (
	"bytes"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
)

// Answer is what [Whole] found in a body.
type Answer struct {
	// Finding says why the body is no answer to pass on; zero if it is one, or if it is
	// an error body.
	Finding engine.Finding
	// ErrorBody says that the body is an error under a status of success, for the
	// classifier to read.
	ErrorBody bool
	Model     string // that the answer names; empty if it names none
	Usage     engine.Usage
}

// Whole judges the body of a whole answer with a status of success. The accepts
// function says whether an answer may name this model; nil accepts all. It doesn't
// keep body.
//
// What the content type says matters only where the body doesn't speak for itself:
// servers that label good JSON as text are common.
func Whole(e engine.Endpoint, contentType string, body []byte, accepts func(model string) bool) Answer {
	p := protocolOf(e)
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte(byteOrderMark)))
	if len(body) == 0 {
		return Answer{Finding: schemaInvalid("empty_body")}
	}
	if e == engine.OpenAIAudio && !mediaType(contentType, "json") && !mediaType(contentType, "text/html") && !bytes.ContainsRune([]byte("{[<"), rune(body[0])) {
		return Answer{} // what was heard as plain text
	}
	r, bad := readBody(p, contentType, body)
	if bad != "" {
		return Answer{Finding: schemaInvalid(bad)}
	}
	a := Answer{Model: r.model, Usage: r.tally.usage()}
	switch {
	case r.sign == failure:
		a.ErrorBody = true
	case r.sign == invalid:
		a.Finding = schemaInvalid(r.reason)
	case r.model != "" && accepts != nil && !accepts(r.model):
		a.Finding = finding(engine.ClassContractViolation, "model_mismatch")
	case r.sign == ended:
		a.Finding = schemaInvalid("empty_answer")
	}
	return a
}

// Media says whether an endpoint's answers may be bytes of any type. They are read only
// where their content type says that they are JSON, a page or a stream of events.
func Media(e engine.Endpoint) bool { return e == engine.OpenAIImages || e == engine.OpenAIAudio }

// readBody reads a body that isn't empty. Where it is no object of valid JSON, bad says
// what it is instead.
func readBody(p protocol, contentType string, body []byte) (r reading, bad string) {
	s := strictjson.New(body, false)
	switch s.Peek() {
	case strictjson.Object:
		r = p.whole(&s)
	case strictjson.Array:
		if errorInArray(&s) {
			r.sign = failure
		} else {
			bad = "missing_fields"
		}
	default:
		s.Skip()
		bad = "missing_fields"
	}
	fault := s.End()
	switch begins := body[0]; {
	case fault == nil:
		return r, bad
	case begins == '<', mediaType(contentType, "text/html"):
		return r, "html_body"
	case begins == '{' || begins == '[':
		if fault.Code == strictjson.Truncated {
			return r, "truncated_json"
		}
		return r, "bad_json"
	case contentType == "", mediaType(contentType, "json"):
		return r, "bad_json"
	}
	return r, "wrong_content_type"
}

// errorInArray says whether the first object of an array has an error: some wrap
// theirs like that.
func errorInArray(s *strictjson.Scanner) bool {
	found, n := false, 0
	s.Array(func() {
		if n++; n == 1 {
			inside(s, "error", func() { found = truthy(s) || found })
		}
	})
	return found
}

// mediaType says whether a Content-Type names what is asked for, parameters left out.
func mediaType(contentType, what string) bool {
	name, _, _ := strings.Cut(contentType, ";")
	return strings.Contains(strings.ToLower(name), what)
}
