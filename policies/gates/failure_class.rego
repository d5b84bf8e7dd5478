# METADATA
# title: Failure class gate
# description: |
#   Which failures may be replayed at all, and where. Everything that isn't named here
#   stops, so an unknown failure is never replayed.
# scope: package
# schemas:
#   - input: schema
package fourgate.gates.failure_class

import data.fourgate.knobs

# METADATA
# title: The gate's mark
# description: Passes when the failure allows a same-route retry or another route.
mark := "pass" if {
	fallback
} else := "pass" if {
	retry != "no"
} else := "stop"

# METADATA
# title: Why the gate stopped
# description: The failure's own reason, unless a status was set to be passed through.
reason := "status_passed_through" if {
	_passed_through
} else := "status_never_falls_back" if {
	_kept_here
} else := input.failure.reason

# METADATA
# title: Another route of the same contract may be tried
default fallback := false

fallback if {
	_other_route_helps[input.failure.class]
	not final
}

# METADATA
# title: Same-route retries that the failure allows
# description: |
#   "no", "once" (the channel is called at most twice), or "backoff" (as often as the
#   budget allows, each after its wait).
retry := "no" if {
	_passed_through
} else := "no" if {
	knobs.same_route_retry == "never"
} else := "backoff" if {
	input.failure.class == "rate_limited"
} else := "no" if {
	input.failure.class != "provider_transient"
} else := "once" if {
	_network
	knobs.retry_on_network
} else := "no" if {
	_network
} else := "backoff"

# METADATA
# title: The caller sees this failure as it is, and nothing is blamed
default final := false

final if _passed_through

final if _kept_here

# METADATA
# title: Classes that another route may not share
_other_route_helps := {
	"key_fault": true,
	"rate_limited": true,
	"provider_transient": true,
	"bad_model": true,
	"schema_invalid": true,
	"contract_violation": true,
}

# METADATA
# title: No HTTP answer, a request timeout, or a stream that ended before it began
# description: |
#   Nothing proves that the provider is in trouble, so one more call of the same route
#   is all that is worth its time.
_network if input.failure.status == 0

_network if input.failure.status == 408

_network if {
	input.failure.status == 200
	_cut[input.failure.reason]
}

# METADATA
# title: Reasons of a stream that ended before its first output
_cut := {"network": true, "timeout": true, "truncated": true}

# METADATA
# title: The status is one that the caller shall see
_passed_through if input.failure.status in knobs.pass_through_status

# METADATA
# title: The status is one that no other route is tried for
_kept_here if input.failure.status in knobs.never_fallback_status
