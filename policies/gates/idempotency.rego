# METADATA
# title: Idempotency gate
# description: |
#   A replay must not repeat work that matters: either the upstream certainly did not
#   start, or the request is known to be harmless when it is sent twice.
# scope: package
# schemas:
#   - input: schema
package fourgate.gates.idempotency

# METADATA
# title: The gate's mark
mark := "stop" if {
	input.request.idempotency.effects == "unknown"
} else := "pass" if {
	input.failure.completion == "none"
} else := "pass" if {
	input.request.idempotency.replay_safe
} else := "stop"

# METADATA
# title: Why the gate stopped
reason := "effects_unknown" if {
	input.request.idempotency.effects == "unknown"
} else := "not_replay_safe"
