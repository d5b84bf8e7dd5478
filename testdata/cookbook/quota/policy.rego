package fourgate

import data.fourgate.standard

# METADATA
# title: A rate limit of a caller with a quota waits or ends, and goes nowhere else
# description: |
#   Without effects: the limit is that of this caller's quota, so the key stays in use for the
#   others, and for the retry.
decision := object.union(standard.decision, {
	"action": next,
	"reason": "waits_for_quota",
	"effects": [],
}) if {
	input.failure.class == "rate_limited"
	input.request.caller in data.params.quota
	standard.decision.action == "fallback"
} else := standard.decision

default next := "abort"

next := "retry" if input.routes.same
