# METADATA
# title: Kunavo
# description: |
#   Resellers of one model, the cheapest first. A caller's mistake is never hidden by
#   another route, and an unpaid account is the caller's to see. Everything else is the
#   default policy's, knobs included.
# scope: package
# schemas:
#   - input: schema
package fourgate.profiles.kunavo

import data.fourgate.standard

# METADATA
# title: The answer to the engine's question
# description: |
#   What the caller shall see blames neither key nor model, so that the same mistake gets
#   the same answer the next time.
decision := _seen("caller_mistake") if {
	input.failure.status == 400
} else := _seen("caller_mistake") if {
	input.failure.status == 404
} else := _seen("payment_required") if {
	input.failure.status == 402
} else := standard.decision

# METADATA
# title: The caller gets the upstream's own error
_seen(reason) := {
	"action": "abort",
	"reason": reason,
	"effects": [],
	"gates": object.union(standard.decision.gates, {"failure_class": "stop"}),
}
