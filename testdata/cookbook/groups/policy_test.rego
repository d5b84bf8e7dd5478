package fourgate_test

import data.fourgate

_default := {"action": "fallback", "reason": "network", "gates": {"idempotency": "pass"}}

_decide(params, completion) := answer if {
	answer := fourgate.decision with fourgate.standard.decision as _default
		with data.params as params
		with input as {"failure": {"completion": completion}}
}

test_a_strict_group_stops if {
	answer := _decide({"strict": true}, "unknown")
	answer.action == "abort"
	answer.gates.idempotency == "stop"
}

test_a_strict_group_replays_what_never_began if _decide({"strict": true}, "none") == _default

test_other_groups_are_left_to_the_default if {
	_decide({"strict": false}, "unknown") == _default
	_decide({}, "unknown") == _default
}
