package fourgate_test

import data.fourgate

_default := {"action": "fallback", "reason": "network", "gates": {"idempotency": "pass"}}

_decide(caller, tools, completion) := answer if {
	answer := fourgate.decision with fourgate.standard.decision as _default
		with input as {"request": {"caller": caller, "tools": tools}, "failure": {"completion": completion}}
}

test_unknown_work_stops[completion] if {
	some completion in ["unknown", "partial"]
	answer := _decide("payments", true, completion)
	answer.action == "abort"
	answer.reason == "payment_may_have_begun"
	answer.gates.idempotency == "stop"
}

test_work_that_never_began_is_replayed if _decide("payments", true, "none") == _default

test_without_tools_the_default_decides if _decide("payments", false, "unknown") == _default

test_others_are_left_to_the_default if _decide("search", true, "unknown") == _default

test_a_stop_keeps_its_own_reason if {
	stopped := {"action": "abort", "reason": "attempts_spent"}
	answer := fourgate.decision with fourgate.standard.decision as stopped
		with input as {"request": {"caller": "payments", "tools": true}, "failure": {"completion": "unknown"}}
	answer == stopped
}
