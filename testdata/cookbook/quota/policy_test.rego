package fourgate_test

import data.fourgate

_default := {"action": "fallback", "reason": "requests", "effects": [{"kind": "cool_key", "for_ms": 10000}]}

_decide(caller, class, same) := answer if {
	answer := fourgate.decision with fourgate.standard.decision as _default
		with data.params as {"quota": ["search"]}
		with input as {"request": {"caller": caller}, "failure": {"class": class}, "routes": {"same": same}}
}

test_it_waits_where_it_can if {
	_decide("search", "rate_limited", true) == {"action": "retry", "reason": "waits_for_quota", "effects": []}
}

test_it_ends_where_it_cannot if {
	_decide("search", "rate_limited", false) == {"action": "abort", "reason": "waits_for_quota", "effects": []}
}

test_other_failures_fall_back if _decide("search", "provider_transient", true) == _default

test_other_callers_fall_back if _decide("web", "rate_limited", true) == _default
