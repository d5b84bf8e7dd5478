package fourgate.knobs_test

import data.fourgate.knobs

_set := {
	"retry_on_network": false,
	"same_route_retry": "first",
	"never_fallback_status": [400],
	"pass_through_status": [402],
	"cool_rate_limited_ms": 1,
	"cool_key_fault_ms": 2,
	"cool_max_ms": 3,
	"evict_model_ms": 4,
	"quarantine_ms": 5,
	"quarantine_after": 6,
}

test_defaults if {
	knobs == {
		"retry_on_network": true,
		"same_route_retry": "last",
		"never_fallback_status": [],
		"pass_through_status": [],
		"cool_rate_limited_ms": 10000,
		"cool_key_fault_ms": 600000,
		"cool_max_ms": 3600000,
		"evict_model_ms": 600000,
		"quarantine_ms": 300000,
		"quarantine_after": 3,
	}
}

test_params_win if {
	knobs == _set with data.params as _set
}
