package fourgate

import data.fourgate.standard

# METADATA
# title: A batch job makes one attempt and comes again when it likes
# description: |
#   The effects stay, so that a broken channel or key is set aside for everybody.
decision := object.union(standard.decision, {"action": "abort", "reason": "batch_comes_again"}) if {
	input.request.caller == "batch"
	standard.decision.action != "abort"
} else := standard.decision
