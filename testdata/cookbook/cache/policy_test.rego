package fourgate_test

import data.fourgate

_default := {"action": "fallback", "reason": "overloaded", "effects": [{"kind": "count_failure"}]}

_question := {"failure": {"class": "provider_transient"}, "routes": {"same": true}, "attempt": {"route_attempts": 1}}

_decide(params, changed) := answer if {
	answer := fourgate.decision with fourgate.standard.decision as _default
		with data.params as params
		with input as object.union(_question, changed)
}

test_a_warm_route_is_asked_once_more if {
	answer := _decide({"warm_cache": true}, {})
	answer.action == "retry"
	answer.effects == _default.effects
}

test_the_default_decides[name] if {
	some name, c in {
		"in other groups": {"params": {}, "changed": {}},
		"after the second attempt": {"params": {"warm_cache": true}, "changed": {"attempt": {"route_attempts": 2}}},
		"where no retry is possible": {"params": {"warm_cache": true}, "changed": {"routes": {"same": false}}},
		"about other failures": {"params": {"warm_cache": true}, "changed": {"failure": {"class": "bad_model"}}},
	}
	_decide(c.params, c.changed) == _default
}
