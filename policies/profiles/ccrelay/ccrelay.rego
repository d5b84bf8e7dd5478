# METADATA
# title: CC Relay
# description: |
#   One coding assistant over a few relays, each with one key. What is the relay's fault
#   (429, 5xx, a timeout, a cut connection, an answer that is none) counts against the
#   relay's breaker and moves the request to the next one, never to the same one again.
#   Every other error, an unpaid account included, is the caller's to see and counts for
#   nothing. No key is cooled and no model evicted: the breaker is all there is.
# scope: package
# schemas:
#   - input: schema
package fourgate.profiles.ccrelay

import data.fourgate.gates.attempt_budget
import data.fourgate.gates.failure_class
import data.fourgate.gates.idempotency
import data.fourgate.gates.response_phase

# METADATA
# title: The answer to the engine's question
decision := _answer("abort", response_phase.reason) if {
	response_phase.mark == "stop"
} else := _answer("abort", failure_class.reason) if {
	_class_mark == "stop"
} else := _answer("abort", idempotency.reason) if {
	idempotency.mark == "stop"
} else := _answer("abort", attempt_budget.reason) if {
	_budget_mark == "stop"
} else := _answer("fallback", input.failure.reason)

# METADATA
# title: Classes that are the relay's fault and that another relay may not share
_relays_fault := {
	"rate_limited": true,
	"provider_transient": true,
	"schema_invalid": true,
	"contract_violation": true,
}

# METADATA
# title: What the class says in the place of the failure class gate
_class_mark := "stop" if {
	failure_class.final
} else := "pass" if {
	_relays_fault[input.failure.class]
} else := "stop"

# METADATA
# title: The budget gate's mark, by the only route that this policy uses
_budget_mark := "stop" if {
	not attempt_budget.affordable
} else := "pass" if {
	_class_mark == "stop"
} else := "pass" if {
	count(input.routes.fallback) > 0
} else := "stop"

# METADATA
# title: What the failure changes for requests to come
# description: |
#   A broken answer counts, too, although it can't be replayed. What the request itself
#   has brought about doesn't.
_effects := [] if {
	input.failure.scope == "request"
} else := [{"kind": "count_failure"}] if {
	_class_mark == "pass"
} else := [{"kind": "count_failure"}] if {
	input.failure.class == "partial"
} else := []

# METADATA
# title: An answer with the failure's effect and what each gate said
_answer(action, reason) := {
	"action": action,
	"reason": reason,
	"effects": _effects,
	"gates": {
		"failure_class": _class_mark,
		"response_phase": response_phase.mark,
		"idempotency": idempotency.mark,
		"attempt_budget": _budget_mark,
	},
}
