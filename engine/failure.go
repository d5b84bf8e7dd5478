package engine

import "time"

// maxRetryAfter bounds a wait that an upstream asks for; a longer one is as good as
// never for a request, and would overflow sums.
const maxRetryAfter = 30 * 24 * time.Hour

// MakeFailure builds a failure from its parts, for tools that ask a policy about a
// failure which isn't happening now: a matrix, an explanation, a replayed record, a
// test. The engine itself makes failures from evidence.
func MakeFailure(class Class, scope Scope, reason Reason, retryAfter Wait, status int, phase Phase, completion Completion) Failure {
	return Failure{class: class, scope: scope, reason: reason, retryAfter: retryAfter, status: status, phase: phase, completion: completion}
}

// FailureOf makes a failure of a verdict. The engine decides itself what it knows
// better than any plugin: that the caller has gone, that output had been seen, that
// the answer named another model (corpus rules 1 and 2, and the interlock contract).
// Tools that test classifiers ask it, too, so that they judge what a request would meet.
func FailureOf(v Verdict, ev *Evidence) Failure {
	f := Failure{
		class: v.Class, scope: v.Scope, reason: v.Reason, status: ev.Status, phase: ev.Phase, fault: v.Fault,
	}
	if d, given := v.RetryAfter.Get(); given {
		f.retryAfter = WaitOf(min(d, maxRetryAfter))
	}
	switch {
	case ev.CallerGone:
		f.class, f.scope, f.reason = ClassCancelled, ScopeNone, reasonCallerCancelled
	case ev.Phase == AfterOutput:
		f.class, f.scope = ClassPartial, ScopeNone
		switch {
		case ev.Finding.Class == ClassContractViolation:
			f.reason = ev.Finding.Reason
		case v.Class == ClassUnknown || f.reason == (Reason{}):
			f.reason = causeOf(ev)
		}
		if ev.NetKind == NetContextCanceled {
			// We have ended it ourselves, at a drain: the channel is not to blame.
			f.scope = ScopeRequest
		}
	case ev.Finding.Class == ClassContractViolation:
		f.class, f.scope, f.reason = ClassContractViolation, ScopeModel, ev.Finding.Reason
	case ev.Finding.Class != ClassUnknown && (v.Class == ClassUnknown || v.Class == ClassOK):
		f.class, f.scope, f.reason = ev.Finding.Class, ScopeChannel, ev.Finding.Reason
	case v.Class == ClassCancelled || v.Class == ClassPartial,
		(v.Class == ClassRefusal || v.Class == ClassOK) && (!whole(ev) || ev.Status >= 300):
		// Not true, or a case above would have said so: nothing that never came, or
		// came in part, is a completion.
		f.class, f.scope, f.reason, f.fault = ClassUnknown, ScopeNone, Reason{}, "nonsense"
	}
	if f.class > ClassOK {
		f.class, f.fault = ClassUnknown, "nonsense"
	}
	if f.scope > ScopeProvider {
		f.scope, f.fault = ScopeNone, "nonsense"
	}
	if f.reason == (Reason{}) {
		f.reason = defaultReason(f.class)
	}
	f.completion = completionOf(f, ev)
	return f
}

// whole says that an answer came and ended in order.
func whole(ev *Evidence) bool {
	return ev.Transport != TransportNetwork && ev.NetKind == NetNone && ev.End == EndEOF && ev.Status != 0
}

// completionOf says what is known of the upstream's work. A refusal at the door proves
// that none was done; an answer that came back wrong, or silence, proves nothing.
func completionOf(f Failure, ev *Evidence) Completion {
	switch {
	case ev.Phase == AfterOutput:
		return CompletionPartial
	case ev.NotStarted:
		return CompletionNone
	case ev.Transport == TransportNetwork || ev.NetKind != NetNone:
		return CompletionUnknown
	}
	switch f.class {
	case ClassKeyFault, ClassRateLimited, ClassBadModel, ClassBadRequest, ClassDenied:
		return CompletionNone
	case ClassProviderTransient:
		if ev.Status == 503 || ev.Status == 529 || f.reason.text == "overloaded" || f.reason.text == "model_loading" {
			return CompletionNone
		}
	}
	return CompletionUnknown
}

var (
	reasonCallerCancelled = Reason{"caller_cancelled"}
	reasonTruncated       = Reason{"truncated"}
	reasonNetwork         = Reason{"network"}
	reasonTimeout         = Reason{"timeout"}
	reasonServerError     = Reason{"server_error"}
)

// causeOf names what broke a stream after output, in the corpus' vocabulary.
func causeOf(ev *Evidence) Reason {
	switch ev.NetKind {
	case NetIdleTimeout, NetHeaderTimeout, NetDeadlineExceeded:
		return reasonTimeout
	case NetConnReset, NetMalformedResponse:
		return reasonNetwork
	case NetNone:
		if ev.End == EndEOF && len(ev.Frames) > 0 {
			return reasonServerError
		}
	}
	return reasonTruncated
}

func defaultReason(c Class) Reason {
	if c == ClassUnknown {
		return Reason{"unrecognized"}
	}
	return Reason{c.String()}
}

// timedOut says whether the failure was a wait that ran out, which may have left work
// running upstream.
func timedOut(ev *Evidence) bool {
	switch ev.NetKind {
	case NetHeaderTimeout, NetIdleTimeout, NetDeadlineExceeded, NetDialTimeout, NetTLSTimeout:
		return true
	}
	return false
}
