package gate

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/fourgate-dev/fourgate/engine"
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
	if e == engine.EndpointNone {
		p = anyJSON{}
	}
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte(byteOrderMark)))
	if len(body) == 0 {
		return Answer{Finding: schemaInvalid("empty_body")}
	}
	if p == nil {
		if !mediaType(contentType, "json") && !mediaType(contentType, "text/html") {
			return Answer{}
		}
		p = anyJSON{}
	}
	if !valid(body) {
		return Answer{Finding: schemaInvalid(notJSON(contentType, body))}
	}
	root := gjson.ParseBytes(body)
	if !root.IsObject() {
		switch {
		case root.IsArray() && truthy(root.Get("0.error")):
			return Answer{ErrorBody: true}
		case e == engine.GeminiGenerate && root.IsArray():
			return Answer{}
		}
		return Answer{Finding: schemaInvalid("missing_fields")}
	}
	r := p.whole(root)
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

// notJSON names what is wrong with a body that is no JSON and not empty.
func notJSON(contentType string, body []byte) string {
	switch {
	case body[0] == '<', mediaType(contentType, "text/html"):
		return "html_body"
	case (body[0] == '{' || body[0] == '[') && cutShort(body):
		return "truncated_json"
	case body[0] == '{', body[0] == '[', contentType == "", mediaType(contentType, "json"):
		return "bad_json"
	}
	return "wrong_content_type"
}

// mediaType says whether a Content-Type names what is asked for, parameters left out.
func mediaType(contentType, what string) bool {
	name, _, _ := strings.Cut(contentType, ";")
	return strings.Contains(strings.ToLower(name), what)
}
