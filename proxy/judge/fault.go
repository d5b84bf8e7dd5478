package judge

import (
	"bytes"
	"strconv"

	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
)

// Reason is a stable word for why a body was refused.
type Reason string

// The reasons.
const (
	InvalidJSON   Reason = "invalid_json"
	InvalidForm   Reason = "invalid_form"
	TrailingBytes Reason = "trailing_bytes"
	NotUTF8       Reason = "not_utf8"
	TooDeep       Reason = "too_deep"
	DuplicateName Reason = "duplicate_name"
	AmbiguousName Reason = "ambiguous_name" // differs only in case from one that is read
	MissingModel  Reason = "missing_model"
	BadModel      Reason = "bad_model" // too long, or not printable
	WrongType     Reason = "wrong_type"
)

// Fault says why a body was refused.
type Fault struct {
	Reason  Reason
	Message string // for a person; repeats nothing of the body
	Offset  int    // in bytes from 0: where in the body
}

func fault(reason Reason, at int, message string) *Fault {
	return &Fault{reason, message, at}
}

// jsonFault puts a fault of the text in words.
func jsonFault(f strictjson.Fault, body []byte) *Fault {
	at := " at byte " + strconv.Itoa(f.Offset) + "."
	switch f.Code {
	case strictjson.Duplicate:
		return fault(DuplicateName, f.Offset, "An object in the request body has two members of the same name; the second is"+at+" Send each name once.")
	case strictjson.NotUTF8:
		return fault(NotUTF8, f.Offset, "The request body is not valid UTF-8"+at)
	case strictjson.TooDeep:
		return fault(TooDeep, f.Offset, "The request body is nested deeper than "+strconv.Itoa(strictjson.MaxDepth)+" levels"+at)
	case strictjson.Trailing:
		return fault(TrailingBytes, f.Offset, "The request body goes on behind its JSON object"+at)
	case strictjson.Truncated:
		return fault(InvalidJSON, f.Offset, "The request body ends in the middle of its JSON"+at)
	}
	if bytes.HasPrefix(body, []byte("\xEF\xBB\xBF")) {
		return fault(InvalidJSON, f.Offset, "The request body begins with a byte order mark. Send it without one.")
	}
	return fault(InvalidJSON, f.Offset, "The request body is not valid JSON"+at)
}
