package fourgate.profiles.studyhub_test

import data.fourgate.profiles.studyhub

# The gates have tests of their own; here stand-ins let everything pass.
_gates := {
	"response_phase": {"mark": "pass", "reason": "output_started"},
	"idempotency": {"mark": "pass", "reason": "not_replay_safe"},
	"attempt_budget": {"affordable": true, "reason": "attempts_spent"},
}

_routes := {"same": true, "fallback": ["b"], "spare_key": true}

_ask(failure, routes, gates) := decision if {
	full := object.union({"reason": "r", "retry_after_ms": null, "class": "key_fault"}, failure)
	use := object.union(_gates, gates)
	decision := studyhub.decision with input as {"failure": full, "routes": object.union(_routes, routes)}
		with data.fourgate.gates.response_phase as use.response_phase
		with data.fourgate.gates.idempotency as use.idempotency
		with data.fourgate.gates.attempt_budget as use.attempt_budget
}

test_key_fault_rotates_the_key_at_once_and_stays if {
	d := _ask({"family": "KEY_FAULT"}, {}, {})
	d.action == "retry"
	d.delay_ms == 0
	d.effects == [{"kind": "cool_key", "for_ms": 600000}]
}

test_rate_limit_rotates_the_key_and_keeps_its_wait if {
	d := _ask({"family": "KEY_FAULT", "class": "rate_limited"}, {}, {})
	d.action == "retry"
	object.get(d, "delay_ms", "none") == "none"
	d.effects == [{"kind": "cool_key", "for_ms": 10000}]
}

test_rate_limit_cools_the_key_for_its_retry_after if {
	d := _ask({"family": "KEY_FAULT", "class": "rate_limited", "retry_after_ms": 3000}, {}, {})
	d.effects == [{"kind": "cool_key", "for_ms": 3000}]
}

test_key_fault_changes_the_provider_without_a_spare_key if {
	d := _ask({"family": "KEY_FAULT"}, {"spare_key": false}, {})
	d.action == "fallback"
	d.effects == [{"kind": "cool_key", "for_ms": 600000}]
}

test_key_fault_changes_the_provider_when_its_route_is_spent if {
	_ask({"family": "KEY_FAULT"}, {"same": false}, {}).action == "fallback"
}

test_key_fault_cools_the_key_when_nothing_is_left if {
	d := _ask({"family": "KEY_FAULT"}, {"spare_key": false, "fallback": []}, {})
	d.action == "abort"
	d.reason == "no_route_left"
	d.effects == [{"kind": "cool_key", "for_ms": 600000}]
	d.gates.attempt_budget == "stop"
	d.gates.failure_class == "pass"
}

test_provider_transient_changes_the_provider_and_leaves_the_key_alone if {
	d := _ask({"family": "PROVIDER_TRANSIENT", "class": "provider_transient"}, {}, {})
	d.action == "fallback"
	d.effects == [{"kind": "count_failure"}]
	d.gates.attempt_budget == "pass"
}

test_bad_model_is_evicted_and_falls_back if {
	d := _ask({"family": "BAD_MODEL", "class": "bad_model"}, {}, {})
	d.action == "fallback"
	d.effects == [{"kind": "evict_model", "for_ms": 600000}]
}

test_what_is_not_retryable_stops[family] if {
	some family in ["NON_RETRYABLE", "NONE"]
	d := _ask({"family": family}, {}, {})
	d.action == "abort"
	d.reason == "r"
	d.effects == []
	d.gates.failure_class == "stop"
	d.gates.attempt_budget == "pass"
}

test_after_output_stops if {
	d := _ask({"family": "PROVIDER_TRANSIENT"}, {}, {"response_phase": {"mark": "stop"}})
	d.action == "abort"
	d.reason == "output_started"
}

test_not_replay_safe_stops if {
	d := _ask({"family": "PROVIDER_TRANSIENT"}, {}, {"idempotency": {"mark": "stop"}})
	d.action == "abort"
	d.reason == "not_replay_safe"
}

test_spent_budget_stops if {
	d := _ask({"family": "PROVIDER_TRANSIENT"}, {}, {"attempt_budget": {"affordable": false}})
	d.action == "abort"
	d.reason == "attempts_spent"
	d.gates.attempt_budget == "stop"
}

test_status_can_be_passed_through if {
	d := _ask({"family": "PROVIDER_TRANSIENT", "status": 503}, {}, {}) with data.params as {"pass_through_status": [503]}
	d.action == "abort"
	d.reason == "status_passed_through"
	d.effects == []
}

test_knobs_say_how_long if {
	d := _ask({"family": "KEY_FAULT", "retry_after_ms": 9000}, {}, {}) with data.params as {"cool_max_ms": 5000}
	d.effects == [{"kind": "cool_key", "for_ms": 5000}]
}

test_keys_stay_where_they_are_without_same_route_retries if {
	d := _ask({"family": "KEY_FAULT"}, {}, {}) with data.params as {"same_route_retry": "never"}
	d.action == "fallback"
}
