# The failure matrix, row by row: what the default policy answers to each failure.
package fourgate_test

import data.fourgate

# A 503 before output with everything left: the question that every test varies.
_question := {
	"request": {
		"id": "r1",
		"caller": "team-a",
		"endpoint": "openai.chat",
		"model": "m",
		"stream": true,
		"tools": false,
		"sdk_retry": 0,
		"idempotency": {"key": null, "replay_safe": true, "effects": "none"},
	},
	"attempt": {
		"seq": 1,
		"group": "g",
		"channel": "a",
		"provider": "p",
		"key": "main",
		"route_attempts": 1,
	},
	"failure": {
		"class": "provider_transient",
		"reason": "overloaded",
		"scope": "channel",
		"status": 503,
		"retry_after_ms": null,
		"completion": "none",
		"family": "PROVIDER_TRANSIENT",
	},
	"phase": "before_output",
	"budget": {
		"attempts_used": 1,
		"attempts_left": 2,
		"elapsed_ms": 800,
		"remaining_ms": 59200,
		"min_useful_ms": 2000,
		"backoff_ms": 137,
		"retry_budget": true,
		"time": true,
	},
	"routes": {"same": true, "fallback": ["b"], "substitute": [], "spare_key": false},
	"params": {},
}

_ask(change) := decision if {
	decision := fourgate.decision with input as object.union(_question, change)
}

_failed(class, reason, scope, status) := {"failure": {
	"class": class,
	"reason": reason,
	"scope": scope,
	"status": status,
}}

_alone(failed) := object.union(failed, {"routes": {"fallback": []}})

_unsafe := {
	"request": {"idempotency": {"replay_safe": false}},
	"failure": {"completion": "unknown"},
}

_all_pass := {
	"failure_class": "pass",
	"response_phase": "pass",
	"idempotency": "pass",
	"attempt_budget": "pass",
}

_only_budget_stops := object.union(_all_pass, {"attempt_budget": "stop"})

_count := [{"kind": "count_failure"}]

_cool(ms) := [{"kind": "cool_key", "for_ms": ms}]

_evict := [{"kind": "evict_model", "for_ms": 600000}]

_quarantine := [{"kind": "quarantine_channel", "for_ms": 300000, "after": 3}]

# Row: caller's validation error, unsupported field, malformed request.

test_row_validation_error_is_not_replayed if {
	d := _ask(_failed("bad_request", "invalid_request", "request", 400))
	d.action == "abort"
	d.reason == "invalid_request"
	d.effects == []
	d.gates == object.union(_all_pass, {"failure_class": "stop"})
}

test_row_unsupported_field_is_not_replayed if {
	d := _ask(_failed("bad_request", "unsupported_parameter", "request", 422))
	d.action == "abort"
	d.reason == "unsupported_parameter"
}

test_row_malformed_request_is_not_replayed if {
	d := _ask(_failed("bad_request", "payload_too_large", "request", 413))
	d.action == "abort"
	d.effects == []
}

test_row_too_long_a_context_is_not_replayed if {
	d := _ask(_failed("bad_request", "context_length", "request", 400))
	d.action == "abort"
}

# Row: gateway's own auth, quota, policy denial.

test_row_denial_by_a_gateway_is_final if {
	d := _ask(_failed("denied", "policy", "request", 403))
	d.action == "abort"
	d.reason == "policy"
	d.effects == []
}

test_row_quota_denial_by_a_gateway_is_final if {
	d := _ask(_failed("denied", "budget", "request", 429))
	d.action == "abort"
	d.effects == []
}

# Row: upstream credential or account failure before output.

test_row_credential_failure_falls_back_and_cools_the_key if {
	d := _ask(_failed("key_fault", "invalid_credential", "key", 401))
	d.action == "fallback"
	d.reason == "invalid_credential"
	d.effects == _cool(600000)
	d.gates == _all_pass
}

test_row_account_failure_falls_back_and_cools_the_key if {
	d := _ask(_failed("key_fault", "billing", "key", 402))
	d.action == "fallback"
	d.effects == _cool(600000)
}

test_row_credential_failure_is_never_retried_on_its_route if {
	d := _ask(_alone(_failed("key_fault", "invalid_credential", "key", 401)))
	d.action == "abort"
	d.reason == "no_route_left"
	d.gates == _only_budget_stops
}

test_row_credential_failure_cools_the_key_on_the_last_attempt_too if {
	d := _ask(object.union(
		_failed("key_fault", "invalid_credential", "key", 401),
		{"budget": {"attempts_left": 0}},
	))
	d.action == "abort"
	d.reason == "attempts_spent"
	d.effects == _cool(600000)
	d.gates == _only_budget_stops
}

test_row_credential_failure_cools_the_key_for_a_long_retry_after if {
	d := _ask({"failure": {
		"class": "key_fault",
		"reason": "rate_limit_key",
		"scope": "key",
		"status": 429,
		"retry_after_ms": 1800000,
	}})
	d.action == "fallback"
	d.effects == _cool(1800000)
}

# Row: network failure or 408 before output.

test_row_network_failure_falls_back_when_not_started if {
	d := _ask(_failed("provider_transient", "network", "channel", 0))
	d.action == "fallback"
	d.effects == _count
}

test_row_network_failure_falls_back_when_replay_safe if {
	d := _ask(object.union(
		_failed("provider_transient", "network", "channel", 0),
		{"failure": {"completion": "unknown"}},
	))
	d.action == "fallback"
}

test_row_network_failure_stops_when_neither if {
	d := _ask(object.union(_failed("provider_transient", "network", "channel", 0), _unsafe))
	d.action == "abort"
	d.reason == "not_replay_safe"
	d.gates == object.union(_all_pass, {"idempotency": "stop"})
	d.effects == _count
}

test_row_network_failure_is_retried_once_without_another_route if {
	d := _ask(_alone(_failed("provider_transient", "network", "channel", 0)))
	d.action == "retry"
	d.reason == "network"
	object.keys(d) == {"action", "reason", "effects", "gates"}
}

test_row_network_failure_is_not_retried_twice if {
	d := _ask(object.union(
		_alone(_failed("provider_transient", "network", "channel", 0)),
		{"attempt": {"route_attempts": 2}},
	))
	d.action == "abort"
	d.gates == _only_budget_stops
}

test_row_request_timeout_is_retried_once_without_another_route if {
	d := _ask(_alone(_failed("provider_transient", "timeout", "channel", 408)))
	d.action == "retry"
}

test_row_request_timeout_is_not_retried_twice if {
	d := _ask(object.union(
		_alone(_failed("provider_transient", "timeout", "channel", 408)),
		{"attempt": {"route_attempts": 2}},
	))
	d.action == "abort"
}

test_row_request_timeout_falls_back if {
	d := _ask(_failed("provider_transient", "timeout", "channel", 408))
	d.action == "fallback"
}

test_row_stream_cut_before_output_counts_as_network_failure if {
	d := _ask(object.union(
		_alone(_failed("provider_transient", "truncated", "channel", 200)),
		{"attempt": {"route_attempts": 2}},
	))
	d.action == "abort"
}

test_row_network_failure_stops_at_the_deadline if {
	d := _ask(object.union(
		_failed("provider_transient", "timeout", "channel", 0),
		{"budget": {"time": false}},
	))
	d.action == "abort"
	d.reason == "deadline"
	d.gates == _only_budget_stops
}

# Row: 429 before output.

test_row_rate_limit_takes_another_route if {
	d := _ask(_failed("rate_limited", "requests", "key", 429))
	d.action == "fallback"
	d.effects == _cool(10000)
}

test_row_rate_limit_cools_the_key_for_its_retry_after if {
	d := _ask({"failure": {
		"class": "rate_limited",
		"reason": "tokens",
		"scope": "key",
		"status": 429,
		"retry_after_ms": 7000,
	}})
	d.action == "fallback"
	d.effects == _cool(7000)
}

test_row_rate_limit_retries_its_route_after_the_wait if {
	d := _ask(_alone({"failure": {
		"class": "rate_limited",
		"reason": "tokens",
		"scope": "key",
		"status": 429,
		"retry_after_ms": 7000,
	}}))
	d.action == "retry"
	d.reason == "tokens"
	d.effects == []
	object.keys(d) == {"action", "reason", "effects", "gates"}
	d.gates == _all_pass
}

test_row_rate_limit_cools_the_key_when_a_spare_makes_the_retry if {
	d := _ask(object.union(
		_alone(_failed("rate_limited", "tokens", "key", 429)),
		{"routes": {"spare_key": true}},
	))
	d.action == "retry"
	d.effects == _cool(10000)
}

test_row_rate_limit_beyond_the_deadline_is_not_retried_here if {
	d := _ask(object.union(
		_alone(_failed("rate_limited", "requests", "key", 429)),
		{"routes": {"same": false}},
	))
	d.action == "abort"
	d.reason == "no_route_left"
	d.gates == _only_budget_stops
	d.effects == _cool(10000)
}

test_row_rate_limit_stops_when_the_budget_is_spent if {
	d := _ask(object.union(
		_failed("rate_limited", "requests", "key", 429),
		{"budget": {"attempts_left": 0}},
	))
	d.action == "abort"
	d.reason == "attempts_spent"
	d.gates == _only_budget_stops
}

test_row_rate_limit_of_a_shared_pool_counts_against_the_channel if {
	d := _ask(_failed("rate_limited", "shared_pool", "provider", 429))
	d.action == "fallback"
	d.effects == _count
}

# Row: 500, 502, 503, 504, 529 before output.

test_row_500_falls_back if {
	d := _ask(_failed("provider_transient", "server_error", "channel", 500))
	d.action == "fallback"
	d.effects == _count
}

test_row_502_falls_back if {
	_ask(_failed("provider_transient", "edge_error", "channel", 502)).action == "fallback"
}

test_row_503_falls_back if {
	d := _ask({})
	d.action == "fallback"
	d.reason == "overloaded"
	d.effects == _count
	d.gates == _all_pass
}

test_row_504_falls_back if {
	_ask(_failed("provider_transient", "timeout", "channel", 504)).action == "fallback"
}

test_row_529_falls_back if {
	_ask(_failed("provider_transient", "overloaded", "provider", 529)).action == "fallback"
}

test_row_503_retries_its_route_with_backoff_without_another if {
	d := _ask(_alone({}))
	d.action == "retry"
	d.reason == "overloaded"
	d.effects == _count
	object.keys(d) == {"action", "reason", "effects", "gates"}
}

test_row_503_retries_its_route_as_often_as_the_budget_allows if {
	_ask(_alone({"attempt": {"route_attempts": 4}})).action == "retry"
}

test_row_503_stops_when_its_route_is_spent if {
	d := _ask({"routes": {"same": false, "fallback": []}})
	d.action == "abort"
	d.reason == "no_route_left"
	d.gates == _only_budget_stops
}

test_row_error_event_in_a_stream_before_output_falls_back if {
	_ask(_failed("provider_transient", "overloaded", "channel", 200)).action == "fallback"
}

test_row_503_stops_when_not_replay_safe if {
	_ask(_unsafe).reason == "not_replay_safe"
}

# Row: model missing or retired on this channel.

test_row_missing_model_falls_back_and_is_evicted if {
	d := _ask(_failed("bad_model", "not_found", "model", 404))
	d.action == "fallback"
	d.effects == _evict
}

test_row_retired_model_falls_back_and_is_evicted if {
	d := _ask(_failed("bad_model", "retired", "model", 410))
	d.action == "fallback"
	d.effects == _evict
}

test_row_missing_model_is_never_retried_on_its_route if {
	d := _ask(_alone(_failed("bad_model", "not_found", "model", 404)))
	d.action == "abort"
	d.effects == _evict
	d.gates == _only_budget_stops
}

# Row: schema-invalid answer, contract violation before output.

test_row_schema_invalid_falls_back_and_quarantines_after_repeats if {
	d := _ask(_failed("schema_invalid", "bad_json", "channel", 200))
	d.action == "fallback"
	d.effects == _quarantine
}

test_row_schema_invalid_is_never_retried_on_its_route if {
	d := _ask(_alone(_failed("schema_invalid", "bad_json", "channel", 200)))
	d.action == "abort"
	d.gates == _only_budget_stops
}

test_row_contract_violation_falls_back_and_quarantines_after_repeats if {
	d := _ask(_failed("contract_violation", "model_mismatch", "channel", 200))
	d.action == "fallback"
	d.effects == _quarantine
}

test_row_contract_violation_is_never_retried_on_its_route if {
	_ask(_alone(_failed("contract_violation", "model_mismatch", "channel", 200))).action == "abort"
}

# Row: refusal or filtered completion.

test_row_refusal_is_no_failure if {
	d := _ask(_failed("refusal", "model_refusal", "none", 200))
	d.action == "abort"
	d.effects == []
}

test_row_filtered_completion_is_no_failure if {
	d := _ask(_failed("refusal", "content_filter", "none", 200))
	d.action == "abort"
	d.effects == []
}

# Row: caller cancelled.

test_row_cancelled_stops_at_once if {
	d := _ask(_failed("cancelled", "caller_cancelled", "none", 0))
	d.action == "abort"
	d.reason == "caller_cancelled"
	d.effects == []
}

# Row: anything after output.

test_row_after_output_nothing_is_replayed[class] if {
	some class in [
		"provider_transient",
		"key_fault",
		"rate_limited",
		"bad_model",
		"schema_invalid",
		"contract_violation",
		"partial",
	]
	d := _ask({"phase": "after_output", "failure": {"class": class}})
	d.action == "abort"
	d.reason == "output_started"
	d.gates.response_phase == "stop"
}

test_row_partial_counts_against_the_channel if {
	d := _ask({
		"phase": "after_output",
		"failure": {"class": "partial", "reason": "truncated", "scope": "channel", "completion": "partial"},
	})
	d.action == "abort"
	d.effects == _count
}

# Row: tool side effect unknown.

test_row_unknown_tool_effect_is_never_replayed if {
	d := _ask({"request": {"idempotency": {"effects": "unknown"}}})
	d.action == "abort"
	d.reason == "effects_unknown"
	d.gates == object.union(_all_pass, {"idempotency": "stop"})
}

test_row_unknown_tool_effect_is_not_replayed_even_if_not_started if {
	d := _ask({
		"request": {"idempotency": {"effects": "unknown"}},
		"failure": {"completion": "none", "status": 429, "class": "rate_limited"},
	})
	d.action == "abort"
}

test_row_recorded_tool_effect_may_be_replayed if {
	d := _ask({"request": {"idempotency": {"effects": "recorded"}}, "failure": {"completion": "unknown"}})
	d.action == "fallback"
}

# Row: unknown failure.

test_row_unknown_failure_is_not_replayed if {
	d := _ask(_failed("unknown", "unrecognized", "request", 418))
	d.action == "abort"
	d.reason == "unrecognized"
	d.effects == []
	d.gates == object.union(_all_pass, {"failure_class": "stop"})
}

test_row_unknown_failure_of_a_channel_blames_nothing if {
	_ask(_failed("unknown", "redirect", "channel", 302)).effects == []
}

# Beyond the matrix.

test_substitute_comes_last if {
	d := _ask({"routes": {"same": false, "fallback": [], "substitute": ["mini"]}})
	d.action == "substitute"
	d.reason == "overloaded"
	d.gates == _all_pass
}

test_substitute_does_not_replace_another_route if {
	_ask({"routes": {"substitute": ["mini"]}}).action == "fallback"
}

test_empty_retry_budget_stops if {
	d := _ask({"budget": {"retry_budget": false}})
	d.action == "abort"
	d.reason == "retry_budget_spent"
	d.gates == _only_budget_stops
}

test_knob_same_route_first if {
	d := _ask({}) with data.params as {"same_route_retry": "first"}
	d.action == "retry"
}

test_knob_same_route_never if {
	d := _ask(_alone({})) with data.params as {"same_route_retry": "never"}
	d.action == "abort"
	d.gates == _only_budget_stops
}

test_knob_retry_on_network_off if {
	d := _ask(_alone(_failed("provider_transient", "network", "channel", 0))) with data.params as {"retry_on_network": false}
	d.action == "abort"
	d.gates == _only_budget_stops
}

test_knob_never_fallback_status[note] if {
	some note, status in {"validation": 400, "missing model": 404}
	d := _ask(_failed("bad_model", "not_found", "model", status)) with data.params as {"never_fallback_status": [400, 404]}
	d.action == "abort"
	d.reason == "status_never_falls_back"
	d.effects == []
}

test_knob_pass_through_status if {
	d := _ask(_failed("key_fault", "billing", "key", 402)) with data.params as {"pass_through_status": [402]}
	d.action == "abort"
	d.reason == "status_passed_through"
	d.effects == []
}
