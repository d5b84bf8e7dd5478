package policies

import (
	"errors"
	"strings"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// maxWhy bounds what a log line says of a fault, in bytes.
const maxWhy = 400

// because says for a log what was wrong. OPA's messages may quote the values that they are
// about, so of a policy that reads the caller's own Idempotency-Key only the kind of the
// error and its place are told: callers may put anything there.
func (r *reads[Q]) because(err error) string {
	text := err.Error()
	if r.key {
		text = discreet(err)
	}
	return strings.ToValidUTF8(text[:min(len(text), maxWhy)], "")
}

func discreet(err error) string {
	const leftOut = " (what else is known may show the caller's key, which the policy reads)"
	var opa *topdown.Error
	var form *mistyped
	switch {
	case errors.As(err, &opa):
		what, _, _ := strings.Cut(opa.Message, ":") // the builtin's name, or a sentence of OPA's own
		text := opa.Code + ": " + what + leftOut
		if opa.Location != nil {
			text = opa.Location.String() + ": " + text
		}
		return text
	case errors.As(err, &form):
		return form.kind + leftOut
	case errors.Is(err, errUndefined):
		return errUndefined.Error()
	}
	return "the evaluation failed" + leftOut
}
