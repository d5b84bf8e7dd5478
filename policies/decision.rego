# METADATA
# title: The default policy
# description: |
#   It is a package of its own so that another policy can decide a few cases itself and
#   leave the others to it.
#
#   All four gates must pass; then another route of the same contract is tried before
#   the same route, because it costs no waiting, and a substitute that the caller has
#   accepted comes last.
# scope: package
# schemas:
#   - input: schema
package fourgate.standard

import data.fourgate.blame
import data.fourgate.gates.attempt_budget
import data.fourgate.gates.failure_class
import data.fourgate.gates.idempotency
import data.fourgate.gates.response_phase
import data.fourgate.knobs

# METADATA
# title: The answer to the engine's question
# description: |
#   A retry gives no delay: the engine then waits for its own full-jitter backoff, or
#   for the upstream's Retry-After where that is longer.
decision := _answer("abort", response_phase.reason) if {
	response_phase.mark == "stop"
} else := _answer("abort", failure_class.reason) if {
	failure_class.mark == "stop"
} else := _answer("abort", idempotency.reason) if {
	idempotency.mark == "stop"
} else := _answer("abort", attempt_budget.reason) if {
	attempt_budget.mark == "stop"
} else := _retry if {
	knobs.same_route_retry == "first"
	attempt_budget.retry_left
} else := _answer("fallback", input.failure.reason) if {
	attempt_budget.fallback_left
} else := _retry if {
	attempt_budget.retry_left
} else := _answer("substitute", input.failure.reason)

# METADATA
# title: A same-route retry
# description: |
#   A rate-limited key that has no spare isn't cooled, or nobody could make the retry;
#   the retry itself waits for the Retry-After.
_retry := {
	"action": "retry",
	"reason": input.failure.reason,
	"effects": [],
	"gates": _marks,
} if {
	input.failure.class == "rate_limited"
	not input.routes.spare_key
} else := _answer("retry", input.failure.reason)

# METADATA
# title: An answer with the failure's own effects
_answer(action, reason) := {
	"action": action,
	"reason": reason,
	"effects": blame.effects,
	"gates": _marks,
}

# METADATA
# title: What each gate said
_marks := {
	"failure_class": failure_class.mark,
	"response_phase": response_phase.mark,
	"idempotency": idempotency.mark,
	"attempt_budget": attempt_budget.mark,
}
