# METADATA
# title: Blame
# description: |
#   What a failure changes for requests to come. A key's fault cools that key only, a
#   provider's trouble counts against that channel only, a missing model leaves that
#   channel only. What a caller did changes nothing, so that no crafted request can
#   close a route for others.
# scope: package
# schemas:
#   - input: schema
package fourgate.blame

import data.fourgate.gates.failure_class
import data.fourgate.knobs

# METADATA
# title: The effects of the failure, whatever is done about it
effects := [] if {
	failure_class.final
} else := [] if {
	input.failure.scope == "request"
} else := [{"kind": "cool_key", "for_ms": _cool_ms}] if {
	input.failure.class == "key_fault"
} else := [{"kind": "cool_key", "for_ms": _cool_ms}] if {
	input.failure.class == "rate_limited"
	_of_key[input.failure.scope]
} else := [{"kind": "count_failure"}] if {
	_of_channel[input.failure.class]
} else := [{"kind": "evict_model", "for_ms": knobs.evict_model_ms}] if {
	input.failure.class == "bad_model"
} else := [_quarantine] if {
	_of_protocol[input.failure.class]
} else := []

# METADATA
# title: How long the key cools
# description: As long as the upstream asks for within reason, else by the class.
_cool_ms := knobs.cool_max_ms if {
	input.failure.retry_after_ms > knobs.cool_max_ms
} else := input.failure.retry_after_ms if {
	input.failure.retry_after_ms > 0
} else := knobs.cool_key_fault_ms if {
	input.failure.class == "key_fault"
} else := knobs.cool_rate_limited_ms

# METADATA
# title: Scopes of a rate limit that another key may not share
_of_key := {"key": true, "channel": true}

# METADATA
# title: Classes that count against the channel's breaker
_of_channel := {"provider_transient": true, "rate_limited": true, "partial": true}

# METADATA
# title: Classes of a channel that doesn't keep to the protocol or the contract
_of_protocol := {"schema_invalid": true, "contract_violation": true}

# METADATA
# title: The quarantine that repeats lead to
_quarantine := {
	"kind": "quarantine_channel",
	"for_ms": knobs.quarantine_ms,
	"after": knobs.quarantine_after,
}
