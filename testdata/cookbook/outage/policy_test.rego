package fourgate_test

import data.fourgate

_default := {"action": "fallback", "reason": "overloaded", "effects": [{"kind": "count_failure"}]}

_decide(class, seq) := answer if {
	answer := fourgate.decision with fourgate.standard.decision as _default
		with input as {"failure": {"class": class}, "attempt": {"seq": seq}}
}

test_the_second_overload_ends_it if {
	answer := _decide("provider_transient", 2)
	answer.action == "abort"
	answer.reason == "outage"
	answer.effects == _default.effects
}

test_the_first_one_falls_back if _decide("provider_transient", 1) == _default

test_other_failures_fall_back if _decide("key_fault", 2) == _default

test_what_comes_again_gets_one_attempt if {
	answer := fourgate.route with input as {"request": {"sdk_retry": 1}, "budget": {"attempts": 3}}
	answer.attempts == 1
}

test_the_first_time_gets_all if {
	not fourgate.route with input as {"request": {"sdk_retry": 0}, "budget": {"attempts": 3}}
}

test_a_budget_of_one_stays if {
	not fourgate.route with input as {"request": {"sdk_retry": 2}, "budget": {"attempts": 1}}
}
