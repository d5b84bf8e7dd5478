package fourgate_test

import data.fourgate

_default := {"action": "retry", "reason": "overloaded", "effects": [{"kind": "count_failure"}]}

_decide(caller, default_answer) := answer if {
	answer := fourgate.decision with fourgate.standard.decision as default_answer
		with input as {"request": {"caller": caller}}
}

test_batch_makes_one_attempt if {
	answer := _decide("batch", _default)
	answer.action == "abort"
	answer.reason == "batch_comes_again"
	answer.effects == _default.effects
}

test_a_stop_keeps_its_own_reason if {
	_decide("batch", {"action": "abort", "reason": "invalid_request"}).reason == "invalid_request"
}

test_others_are_left_to_the_default if _decide("web", _default) == _default
