package fourgate

# METADATA
# title: At night only cheap channels, if there is one
route := {"channels": cheap, "reason": "cheap_at_night"} if {
	night
	count(cheap) > 0
}

night if input.clock.hour >= 22

night if input.clock.hour < 6

# METADATA
# title: Channels whose output costs at most params.night_usd for a million tokens
# description: One without a price isn't cheap.
cheap := [c.name | some c in input.channels; c.cost.output <= data.params.night_usd]
