package fourgate.blame_test

import data.fourgate.blame

_effects(failure, params) := effects if {
	full := object.union(
		{"reason": "r", "status": 500, "retry_after_ms": null, "completion": "none", "scope": "channel"},
		failure,
	)
	effects := blame.effects with input as {"failure": full} with data.params as params
}

test_provider_trouble_counts_against_the_channel if {
	_effects({"class": "provider_transient"}, {}) == [{"kind": "count_failure"}]
}

test_dead_key_cools_ten_minutes if {
	_effects({"class": "key_fault", "scope": "key"}, {}) == [{"kind": "cool_key", "for_ms": 600000}]
}

test_dead_key_cooling_is_a_knob if {
	_effects({"class": "key_fault", "scope": "key"}, {"cool_key_fault_ms": 5}) == [{"kind": "cool_key", "for_ms": 5}]
}

test_rate_limited_key_cools_ten_seconds if {
	_effects({"class": "rate_limited", "scope": "key"}, {}) == [{"kind": "cool_key", "for_ms": 10000}]
}

test_rate_limited_cooling_is_a_knob if {
	_effects({"class": "rate_limited", "scope": "key"}, {"cool_rate_limited_ms": 5}) == [{"kind": "cool_key", "for_ms": 5}]
}

test_retry_after_is_how_long_a_key_cools if {
	_effects(
		{"class": "rate_limited", "scope": "key", "retry_after_ms": 1234},
		{},
	) == [{"kind": "cool_key", "for_ms": 1234}]
}

test_retry_after_of_nothing_cools_by_class if {
	_effects(
		{"class": "rate_limited", "scope": "key", "retry_after_ms": 0},
		{},
	) == [{"kind": "cool_key", "for_ms": 10000}]
}

test_retry_after_is_bounded if {
	_effects(
		{"class": "rate_limited", "scope": "key", "retry_after_ms": 999999999},
		{},
	) == [{"kind": "cool_key", "for_ms": 3600000}]
}

test_bound_of_cooling_is_a_knob if {
	_effects(
		{"class": "rate_limited", "scope": "key", "retry_after_ms": 999999999},
		{"cool_max_ms": 7},
	) == [{"kind": "cool_key", "for_ms": 7}]
}

test_rate_limit_of_the_channel_cools_its_key if {
	_effects({"class": "rate_limited", "scope": "channel"}, {}) == [{"kind": "cool_key", "for_ms": 10000}]
}

test_rate_limit_of_the_model_counts_against_the_channel if {
	_effects({"class": "rate_limited", "scope": "model"}, {}) == [{"kind": "count_failure"}]
}

test_missing_model_leaves_the_channel if {
	_effects({"class": "bad_model", "scope": "model"}, {"evict_model_ms": 9}) == [{"kind": "evict_model", "for_ms": 9}]
}

test_broken_protocol_quarantines_after_repeats if {
	_effects(
		{"class": "schema_invalid"},
		{"quarantine_ms": 9, "quarantine_after": 2},
	) == [{"kind": "quarantine_channel", "for_ms": 9, "after": 2}]
}

test_request_scope_changes_nothing[class] if {
	some class in ["key_fault", "provider_transient", "bad_model", "schema_invalid"]
	_effects({"class": class, "scope": "request"}, {}) == []
}

test_callers_doing_changes_nothing[class] if {
	some class in ["bad_request", "refusal", "cancelled", "denied", "unknown", "ok"]
	_effects({"class": class}, {}) == []
}

test_passed_through_status_changes_nothing if {
	_effects({"class": "provider_transient"}, {"pass_through_status": [500]}) == []
}

test_kept_status_changes_nothing if {
	_effects({"class": "provider_transient"}, {"never_fallback_status": [500]}) == []
}
