package fourgate_test

import data.fourgate

_route(attempts, deadline_ms) := answer if {
	answer := fourgate.route with data.params as {"premium": ["gold"]}
		with input as {"request": {"caller": "web"}, "budget": {"attempts": attempts, "deadline_ms": deadline_ms}}
}

test_others_get_less if {
	_route(3, 60000) == {"reason": "standard_service", "attempts": 2, "deadline_ms": 30000}
}

test_what_is_tight_already_stays[name] if {
	some name, c in {
		"attempts": {"budget": [2, 60000], "want": {"reason": "standard_service", "deadline_ms": 30000}},
		"deadline": {"budget": [3, 20000], "want": {"reason": "standard_service", "attempts": 2}},
		"both": {"budget": [1, 1000], "want": {"reason": "standard_service"}},
	}
	_route(c.budget[0], c.budget[1]) == c.want
}

test_premium_callers_get_all if {
	not fourgate.route with data.params as {"premium": ["gold"]}
		with input as {"request": {"caller": "gold"}, "budget": {"attempts": 3, "deadline_ms": 60000}}
}
