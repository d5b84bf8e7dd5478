package fourgate

import data.fourgate.standard

# METADATA
# title: An unknown 420 of provider a says that it is busy
# description: |
#   The default policy is asked as if the class were another one, so that the other gates, the
#   budget and the effects hold as they always do.
decision := object.union(answer, {"reason": "provider_busy"}) if {
	input.attempt.provider == "a"
	input.failure.class == "unknown"
	input.failure.status == 420
	answer := standard.decision with input.failure.class as "provider_transient"
} else := standard.decision
