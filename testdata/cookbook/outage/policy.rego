package fourgate

import data.fourgate.standard

# METADATA
# title: Two overloads in one request are an outage, not bad luck
decision := object.union(standard.decision, {"action": "abort", "reason": "outage"}) if {
	input.failure.class == "provider_transient"
	input.attempt.seq >= 2
	standard.decision.action != "abort"
} else := standard.decision

# METADATA
# title: A request that comes again after it has failed gets one attempt
route := {"attempts": 1, "reason": "comes_again"} if {
	input.request.sdk_retry > 0
	input.budget.attempts > 1
}
