package fourgate

import data.fourgate.standard

# METADATA
# title: A group with warm prompt caches asks the same route once more
decision := object.union(standard.decision, {"action": "retry", "reason": "keeps_prompt_cache"}) if {
	data.params.warm_cache
	input.failure.class == "provider_transient"
	input.routes.same
	input.attempt.route_attempts < 2
	standard.decision.action == "fallback"
} else := standard.decision
