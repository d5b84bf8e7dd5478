package fourgate

# METADATA
# title: Streams begin on a fast channel
# description: The others follow, so that nothing is lost but the order.
route := {"channels": array.concat(fast, others), "reason": "watched"} if {
	input.request.stream
	count(fast) > 0
}

fast := [c.name | some c in input.channels; c.labels.first_token == "fast"]

others := [c.name | some c in input.channels; not c.name in fast]
