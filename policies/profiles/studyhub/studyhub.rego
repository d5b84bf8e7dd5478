# METADATA
# title: StudyHub
# description: |
#   Four families of failures, each with its own effect: a key fault cools the key and
#   stays with the provider while it has another one; a provider's trouble changes the
#   provider and leaves the key alone; a bad model is evicted from its channel; all else
#   stops. The gates of the default policy still guard what a replay may do, and its
#   knobs say for how long.
# scope: package
# schemas:
#   - input: schema
package fourgate.profiles.studyhub

import data.fourgate.gates.attempt_budget
import data.fourgate.gates.failure_class
import data.fourgate.gates.idempotency
import data.fourgate.gates.response_phase
import data.fourgate.knobs

# METADATA
# title: The answer to the engine's question
decision := _answer("abort", response_phase.reason) if {
	response_phase.mark == "stop"
} else := _answer("abort", failure_class.reason) if {
	_family_mark == "stop"
} else := _answer("abort", idempotency.reason) if {
	idempotency.mark == "stop"
} else := _answer("abort", attempt_budget.reason) if {
	not attempt_budget.affordable
} else := object.union(_answer("retry", input.failure.reason), {"delay_ms": 0}) if {
	_another_key
	input.failure.class == "key_fault"
} else := _answer("retry", input.failure.reason) if {
	_another_key
} else := _answer("fallback", input.failure.reason) if {
	count(input.routes.fallback) > 0
} else := _answer("abort", "no_route_left")

# METADATA
# title: The provider has another key for a failure of this one
# description: A dead key needs no wait; a rate limit keeps its Retry-After.
_another_key if {
	input.failure.family == "KEY_FAULT"
	input.routes.same
	input.routes.spare_key
	knobs.same_route_retry != "never"
}

# METADATA
# title: What the family changes for requests to come
_effects := [] if {
	failure_class.final
} else := [{"kind": "cool_key", "for_ms": _cool_ms}] if {
	input.failure.family == "KEY_FAULT"
} else := [{"kind": "count_failure"}] if {
	input.failure.family == "PROVIDER_TRANSIENT"
} else := [{"kind": "evict_model", "for_ms": knobs.evict_model_ms}] if {
	input.failure.family == "BAD_MODEL"
} else := []

# METADATA
# title: How long the key cools
# description: As long as the upstream says within reason; else by the class.
_cool_ms := knobs.cool_max_ms if {
	input.failure.retry_after_ms > knobs.cool_max_ms
} else := input.failure.retry_after_ms if {
	input.failure.retry_after_ms > 0
} else := knobs.cool_rate_limited_ms if {
	input.failure.class == "rate_limited"
} else := knobs.cool_key_fault_ms

# METADATA
# title: What the family says in the place of the failure class gate
_family_mark := "stop" if {
	failure_class.final
} else := "pass" if {
	_replayed[input.failure.family]
} else := "stop"

# METADATA
# title: Families that another key or another provider may not share
_replayed := {"KEY_FAULT": true, "PROVIDER_TRANSIENT": true, "BAD_MODEL": true}

# METADATA
# title: The budget gate's mark, by the routes that this policy uses
_budget_mark := "stop" if {
	not attempt_budget.affordable
} else := "pass" if {
	_family_mark == "stop"
} else := "pass" if {
	_another_key
} else := "pass" if {
	count(input.routes.fallback) > 0
} else := "stop"

# METADATA
# title: An answer with the family's effect and what each gate said
_answer(action, reason) := {
	"action": action,
	"reason": reason,
	"effects": _effects,
	"gates": {
		"failure_class": _family_mark,
		"response_phase": response_phase.mark,
		"idempotency": idempotency.mark,
		"attempt_budget": _budget_mark,
	},
}
