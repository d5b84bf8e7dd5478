package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Codes of the engine's own errors. They are stable: applications may test for them.
const (
	CodeExhausted         = "fourgate_exhausted"
	CodeDeadline          = "fourgate_deadline"
	CodeUpstreamNetwork   = "upstream_network"
	CodeUpstreamTimeout   = "upstream_timeout"
	CodeUpstreamInvalid   = "upstream_schema_invalid"
	CodeUpstreamKey       = "upstream_credential"
	CodeUpstreamRedirect  = "upstream_redirect"
	CodeContractViolation = "contract_violation"
	CodeStreamBroken      = "upstream_stream_broken"
)

// Statuses of RFC 9110 that the engine answers with or looks for.
const (
	statusUnauthorized       = 401
	statusForbidden          = 403
	statusTooManyRequests    = 429
	statusBadGateway         = 502
	statusServiceUnavailable = 503
	statusGatewayTimeout     = 504
)

// reply is what the caller gets of a failure that nothing follows: the upstream's own
// answer as it is, unless there is none or it must not be passed on.
func (f Failure) reply(attempt int, ev *Evidence) Reply {
	own := func(status int, code, message string) Reply {
		return Reply{Kind: ReplyOwn, Attempt: attempt, Status: status, Code: code, Message: message}
	}
	switch {
	case f.class == ClassContractViolation:
		return own(statusBadGateway, CodeContractViolation, "the upstream answered with another model than the one asked for")
	case f.class == ClassSchemaInvalid || ev.Finding.Class != ClassUnknown && f.class != ClassRefusal && f.class != ClassOK && ev.Status < 300:
		// What came has the status of a success and is none: an SDK would take it for one.
		return own(statusBadGateway, CodeUpstreamInvalid, "the upstream's answer is no valid answer of the protocol: "+f.reason.String())
	case f.class == ClassKeyFault && (f.status == statusUnauthorized || f.status == statusForbidden):
		// The caller's own credential is fine, and the upstream may quote ours.
		return own(statusBadGateway, CodeUpstreamKey, "the upstream refused the gateway's credential: "+f.reason.String())
	case f.status >= 300 && f.status <= 399:
		return own(statusBadGateway, CodeUpstreamRedirect, "the upstream redirects instead of answering; set the provider's base_url to where it leads")
	case timedOut(ev):
		return own(statusGatewayTimeout, CodeUpstreamTimeout, "the upstream did not answer in time")
	case !whole(ev):
		return own(statusBadGateway, CodeUpstreamNetwork, "the connection to the upstream failed: "+f.reason.String())
	}
	return Reply{Kind: ReplyUpstream, Attempt: attempt}
}

// partialReply ends a stream that broke after output.
func (f Failure) partialReply() Reply {
	return Reply{Kind: ReplyPartial, Code: CodeStreamBroken, Message: "the upstream's stream broke after a part of it was passed on (" + f.reason.String() + "); nothing was replayed"}
}

// exhausted is the one clear error after the last attempt.
func (s *asking) exhausted(t *trace, now time.Time) Reply {
	reply := s.plan.spent(t, now)
	reply.Attempt = s.seq
	if s.failure.status >= 500 || s.failure.status == statusTooManyRequests {
		reply.Status = s.failure.status
	}
	if s.evidence.NetKind == NetDeadlineExceeded || !s.plan.timeAt(now) {
		reply.Status, reply.Code, reply.RetryAfter = statusGatewayTimeout, CodeDeadline, Wait{}
	}
	return reply
}

// lacks says what a call would need to go on. Whoever reads that no route is left looks
// for channels that are out.
func (p *plan) lacks(t *trace, now time.Time) string {
	switch {
	case len(t.record.attempts) == 0:
	case !p.timeAt(now):
		return "no time is left"
	case t.decision().unpaid():
		return "the retry budget has no token left"
	case p.used >= p.attempts && slices.Contains(p.tries[:len(p.chain.channels)], 0):
		return "no attempt is left"
	}
	return "no route is left"
}

// unpaid says that there was somebody to go on with, and no token to pay for it.
func (d *DecisionRecord) unpaid() bool {
	q := d.asked
	return d.interlock == InterlockRetryBudget ||
		q != nil && q.attemptsLeft > 0 && q.time && !q.retryBudget && (q.same || len(q.fallback) > 0)
}

// unstarted is the error of a call whose first attempt could not start.
func (p *plan) unstarted(t *trace, now time.Time, lock Interlock) Reply {
	reply := p.spent(t, now)
	switch lock {
	case InterlockRetryBudget:
		if was := t.req.replay.status; was >= 500 || was == statusTooManyRequests {
			reply.Status = was
		}
		wait := t.standing.affordable(now, p.bill(priceOfAttempt))
		reply.RetryAfter = WaitOf(max(wait, time.Second))
		reply.Message = fmt.Sprintf("this request failed a moment ago (%d) and repeats itself, and the route group's retry budget is spent; no attempt was made", t.req.replay.status)
	case InterlockBudget:
		reply.Status, reply.Code, reply.RetryAfter = statusGatewayTimeout, CodeDeadline, Wait{}
		reply.Message = fmt.Sprintf("the time limit leaves less than the minimum useful time of %s; no attempt was made", p.budget.MinUseful)
	}
	return reply
}

// spent says what was tried, and when the chain has somebody again.
func (p *plan) spent(t *trace, now time.Time) Reply {
	r := Reply{Kind: ReplyOwn, Status: statusServiceUnavailable, Code: CodeExhausted}
	if at, known := t.standing.soonest(now, &p.chain); known {
		// A whole second at least: a chain that is free at once has just failed.
		r.RetryAfter = WaitOf(max(at.Sub(now), time.Second))
	}
	r.Message = fmt.Sprintf("%s for model %q", p.lacks(t, now), t.want.Model)
	switch n := len(t.record.attempts); n {
	case 0:
	case 1:
		r.Message += " after 1 failed attempt"
	default:
		r.Message += fmt.Sprintf(" after %d failed attempts", n)
	}
	var b strings.Builder
	for i := range t.record.attempts {
		a := &t.record.attempts[i]
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %s", a.channel, a.reason)
		if a.status != 0 {
			fmt.Fprintf(&b, " (%d)", a.status)
		}
	}
	r.Detail = b.String()
	return r
}
