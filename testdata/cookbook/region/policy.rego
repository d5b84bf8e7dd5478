package fourgate

# METADATA
# title: Only channels of the caller's region, whatever else would be free
# description: A caller that isn't in params.region may use the whole chain.
route := {"channels": [c.name | some c in input.channels; c.labels.region == region], "reason": "stays_in_region"} if {
	region := data.params.region[input.request.caller]
}
