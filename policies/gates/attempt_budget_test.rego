package fourgate.gates.attempt_budget_test

import data.fourgate.gates.attempt_budget

_budget := {"attempts_left": 2, "time": true, "retry_budget": true}

_routes := {"same": true, "fallback": ["b"], "substitute": []}

_gate(class, budget, routes) := gate if {
	gate := attempt_budget with input as {
		"attempt": {"route_attempts": 1},
		"failure": {"class": class, "reason": "r", "status": 500, "completion": "none"},
		"budget": object.union(_budget, budget),
		"routes": object.union(_routes, routes),
	}
}

test_all_left_passes if _gate("provider_transient", {}, {}).mark == "pass"

test_same_route_alone_passes if {
	g := _gate("provider_transient", {}, {"fallback": []})
	g.mark == "pass"
	g.retry_left
	not g.fallback_left
}

test_same_route_alone_stops_a_class_without_retry if {
	g := _gate("bad_model", {}, {"fallback": []})
	g.mark == "stop"
	g.reason == "no_route_left"
}

test_substitute_alone_passes if {
	g := _gate("bad_model", {}, {"fallback": [], "substitute": ["mini"]})
	g.mark == "pass"
	g.substitute_left
}

test_no_attempts_stop if {
	g := _gate("provider_transient", {"attempts_left": 0}, {})
	g.mark == "stop"
	g.reason == "attempts_spent"
}

test_no_time_stops if {
	g := _gate("provider_transient", {"time": false}, {})
	g.mark == "stop"
	g.reason == "deadline"
}

test_no_retry_budget_stops if {
	g := _gate("provider_transient", {"retry_budget": false}, {})
	g.mark == "stop"
	g.reason == "retry_budget_spent"
}

test_class_that_stops_needs_no_route if {
	_gate("bad_request", {}, {"same": false, "fallback": []}).mark == "pass"
}

test_network_failure_has_one_retry_left if {
	g := attempt_budget with input as {
		"attempt": {"route_attempts": 1},
		"failure": {"class": "provider_transient", "reason": "network", "status": 0},
		"budget": _budget,
		"routes": {"same": true, "fallback": [], "substitute": []},
	}
	g.retry_left
	g.mark == "pass"
}

test_network_failure_has_no_second_retry_left if {
	g := attempt_budget with input as {
		"attempt": {"route_attempts": 2},
		"failure": {"class": "provider_transient", "reason": "network", "status": 0},
		"budget": _budget,
		"routes": {"same": true, "fallback": [], "substitute": []},
	}
	not g.retry_left
	g.mark == "stop"
}
