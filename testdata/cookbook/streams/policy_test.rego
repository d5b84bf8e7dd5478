package fourgate_test

import data.fourgate

_channels := [{"name": "a", "labels": {}}, {"name": "b", "labels": {"first_token": "fast"}}, {"name": "c", "labels": {}}]

test_a_stream_begins_on_a_fast_channel if {
	answer := fourgate.route with input as {"request": {"stream": true}, "channels": _channels}
	answer.channels == ["b", "a", "c"]
}

test_a_whole_answer_keeps_the_chain if {
	not fourgate.route with input as {"request": {"stream": false}, "channels": _channels}
}

test_without_a_fast_channel_the_chain_stays if {
	not fourgate.route with input as {"request": {"stream": true}, "channels": [{"name": "a", "labels": {}}]}
}
