package fourgate

import data.fourgate.standard

# METADATA
# title: A strict group replays only what certainly hasn't begun
decision := object.union(standard.decision, {
	"action": "abort",
	"reason": "strict_group",
	"gates": {"idempotency": "stop"},
}) if {
	data.params.strict
	input.failure.completion != "none"
	standard.decision.action != "abort"
} else := standard.decision
