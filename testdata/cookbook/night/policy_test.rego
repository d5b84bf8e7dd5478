package fourgate_test

import data.fourgate

_question(hour) := {
	"clock": {"hour": hour},
	"channels": [
		{"name": "a", "cost": {"output": 10}},
		{"name": "b", "cost": {"output": 4}},
		{"name": "c", "cost": null},
	],
}

test_at_night_only_cheap_channels[hour] if {
	some hour in [22, 23, 0, 5]
	answer := fourgate.route with input as _question(hour) with data.params as {"night_usd": 5}
	answer.channels == ["b"]
}

test_by_day_all_channels[hour] if {
	some hour in [6, 12, 21]
	not fourgate.route with input as _question(hour) with data.params as {"night_usd": 5}
}

test_without_a_cheap_one_all_channels if {
	not fourgate.route with input as _question(23) with data.params as {"night_usd": 1}
}
