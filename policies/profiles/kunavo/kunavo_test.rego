package fourgate.profiles.kunavo_test

import data.fourgate.profiles.kunavo

_default := {
	"action": "fallback",
	"reason": "overloaded",
	"effects": [{"kind": "count_failure"}],
	"gates": {
		"failure_class": "pass",
		"response_phase": "pass",
		"idempotency": "pass",
		"attempt_budget": "pass",
	},
}

# The default policy has tests of its own; here a stand-in answers for it.
_ask(class, status) := decision if {
	decision := kunavo.decision with input as {"failure": {"class": class, "status": status}}
		with data.fourgate.standard.decision as _default
}

test_bad_request_never_falls_back if {
	d := _ask("bad_request", 400)
	d.action == "abort"
	d.reason == "caller_mistake"
	d.effects == []
	d.gates.failure_class == "stop"
	d.gates.attempt_budget == "pass"
}

test_not_found_never_falls_back_and_evicts_nothing if {
	d := _ask("bad_model", 404)
	d.action == "abort"
	d.reason == "caller_mistake"
	d.effects == []
}

test_payment_required_reaches_the_caller_and_cools_no_key if {
	d := _ask("key_fault", 402)
	d.action == "abort"
	d.reason == "payment_required"
	d.effects == []
}

test_everything_else_is_the_default_policys[note] if {
	some note, failure in {
		"overloaded": ["provider_transient", 503],
		"rate limit": ["rate_limited", 429],
		"no answer": ["provider_transient", 0],
		"dead key": ["key_fault", 401],
	}
	_ask(failure[0], failure[1]) == _default
}
