package matrix

import "github.com/fourgate-dev/fourgate/engine"

// Typical is the failure that stands for its class in the matrix. A policy may look at
// more than the class, so what it is asked about is shown with its answers.
type Typical struct {
	Reason engine.Reason
	Scope  engine.Scope
	Status int // 0 for no HTTP answer
}

// asked is the failure in a few words: its status, and its reason.
func (t Typical) asked() string {
	if t.Status == 0 {
		return "no answer, " + t.Reason.String()
	}
	return number(t.Status) + " " + t.Reason.String()
}

// typical are the failures that are seen most often in each class: of the reasons of a
// class the most frequent in the corpus of recorded failures, with the scope and the
// status that it mostly has there. Network failures, which are provider_transient as
// well, are asked about with the facts failure.status=0 and failure.reason=network.
func typical() [len(classes)]Typical {
	var t [len(classes)]Typical
	for _, row := range []struct {
		class  engine.Class
		reason string
		scope  engine.Scope
		status int
	}{
		{engine.ClassKeyFault, "invalid_credential", engine.ScopeKey, 401},
		{engine.ClassRateLimited, "requests", engine.ScopeKey, 429},
		{engine.ClassProviderTransient, "overloaded", engine.ScopeChannel, 503},
		{engine.ClassBadModel, "not_found", engine.ScopeModel, 404},
		{engine.ClassSchemaInvalid, "empty_body", engine.ScopeChannel, 200},
		{engine.ClassContractViolation, "model_mismatch", engine.ScopeChannel, 200},
		{engine.ClassBadRequest, "invalid_request", engine.ScopeRequest, 400},
		{engine.ClassDenied, "policy", engine.ScopeRequest, 403},
		{engine.ClassRefusal, "content_filter", engine.ScopeNone, 200},
		{engine.ClassCancelled, "caller_cancelled", engine.ScopeNone, 0},
		{engine.ClassPartial, "server_error", engine.ScopeNone, 200},
		{engine.ClassUnknown, "unrecognized", engine.ScopeRequest, 418},
		{engine.ClassOK, "complete", engine.ScopeNone, 200},
	} {
		reason, err := engine.ParseReason(row.reason)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		t[row.class] = Typical{reason, row.scope, row.status}
	}
	return t
}
