package fourgate

import data.fourgate.standard

# METADATA
# title: A payment's tool call that may have begun is never sent again
decision := object.union(standard.decision, {
	"action": "abort",
	"reason": "payment_may_have_begun",
	"gates": {"idempotency": "stop"},
}) if {
	input.request.caller == "payments"
	input.request.tools
	input.failure.completion != "none"
	standard.decision.action != "abort"
} else := standard.decision
