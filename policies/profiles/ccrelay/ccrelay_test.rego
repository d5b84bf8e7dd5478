# CC Relay's rules, over the real gates.
package fourgate.profiles.ccrelay_test

import data.fourgate.profiles.ccrelay

_question := {
	"request": {"idempotency": {"replay_safe": true, "effects": "none"}},
	"failure": {"reason": "r", "scope": "channel", "completion": "none"},
	"phase": "before_output",
	"budget": {"attempts_left": 2, "time": true, "retry_budget": true},
	"routes": {"same": true, "spare_key": true, "fallback": ["b"], "substitute": []},
}

_ask(change) := decision if {
	decision := ccrelay.decision with input as object.union(_question, change)
}

_failure(class, status) := {"failure": {"class": class, "status": status}}

test_the_relays_fault_moves_on_and_counts[note] if {
	some note, failure in {
		"rate limit": _failure("rate_limited", 429),
		"overloaded": _failure("provider_transient", 529),
		"server error": _failure("provider_transient", 500),
		"no answer": _failure("provider_transient", 0),
		"no answer at all": _failure("schema_invalid", 200),
		"another model": _failure("contract_violation", 200),
	}
	d := _ask(failure)
	d.action == "fallback"
	d.effects == [{"kind": "count_failure"}]
	d.gates.failure_class == "pass"
}

test_any_other_error_is_the_callers_to_see[note] if {
	some note, failure in {
		"bad request": _failure("bad_request", 400),
		"credential": _failure("key_fault", 401),
		"account": _failure("key_fault", 402),
		"model": _failure("bad_model", 404),
		"unknown": _failure("unknown", 418),
	}
	d := _ask(failure)
	d.action == "abort"
	d.reason == "r"
	d.effects == []
	d.gates.failure_class == "stop"
	d.gates.attempt_budget == "pass"
}

test_never_the_same_relay_again if {
	d := _ask(object.union(_failure("provider_transient", 503), {"routes": {"fallback": []}}))
	d.action == "abort"
	d.reason == "no_route_left"
	d.gates.attempt_budget == "stop"
	d.effects == [{"kind": "count_failure"}]
}

test_spent_budget_stops if {
	d := _ask(object.union(_failure("provider_transient", 503), {"budget": {"attempts_left": 0}}))
	d.action == "abort"
	d.reason == "attempts_spent"
}

test_broken_answer_counts_and_stops if {
	d := _ask(object.union({"phase": "after_output"}, _failure("partial", 200)))
	d.action == "abort"
	d.reason == "output_started"
	d.effects == [{"kind": "count_failure"}]
}

test_what_the_request_brought_about_counts_for_nothing if {
	d := _ask({"failure": {"class": "provider_transient", "status": 500, "scope": "request"}})
	d.action == "fallback"
	d.effects == []
}

test_not_replay_safe_stops if {
	d := _ask({
		"request": {"idempotency": {"replay_safe": false}},
		"failure": {"class": "provider_transient", "status": 0, "completion": "unknown"},
	})
	d.action == "abort"
	d.reason == "not_replay_safe"
}

test_status_can_be_passed_through if {
	d := _ask(_failure("rate_limited", 429)) with data.params as {"pass_through_status": [429]}
	d.action == "abort"
	d.effects == []
}
