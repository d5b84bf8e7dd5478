package fourgate_test

import data.fourgate

_channels := [
	{"name": "a", "labels": {"region": "us"}},
	{"name": "b", "labels": {"region": "eu"}},
	{"name": "overflow/c", "labels": {"region": "eu"}},
	{"name": "d", "labels": {}},
]

_route(caller) := answer if {
	answer := fourgate.route with input as {"request": {"caller": caller}, "channels": _channels}
		with data.params as {"region": {"clinic": "eu", "moon": "moon"}}
}

test_a_bound_caller_stays if _route("clinic").channels == ["b", "overflow/c"]

test_nobody_is_better_than_another_region if _route("moon").channels == []

test_others_use_the_whole_chain if {
	not fourgate.route with input as {"request": {"caller": "search"}, "channels": _channels}
		with data.params as {"region": {"clinic": "eu"}}
}
