# METADATA
# title: Knobs of the default policy
# description: |
#   Each is a name of `params` in the configuration's policy block, and has a default
#   here.
# scope: package
package fourgate.knobs

# METADATA
# title: retry_on_network
# description: Whether a network failure or a 408 may be tried once more on its own route.
default retry_on_network := true

retry_on_network := data.params.retry_on_network

# METADATA
# title: same_route_retry
# description: |
#   "last": when no other route is left, because another route costs no waiting;
#   "first": before another route; "never".
# custom:
#   one_of: [last, first, never]
default same_route_retry := "last"

same_route_retry := data.params.same_route_retry

# METADATA
# title: never_fallback_status
# description: Statuses for which no other route is tried and nothing is blamed.
default never_fallback_status := []

never_fallback_status := data.params.never_fallback_status

# METADATA
# title: pass_through_status
# description: Statuses that are never replayed at all; the caller sees them, nothing is blamed.
default pass_through_status := []

pass_through_status := data.params.pass_through_status

# METADATA
# title: cool_rate_limited_ms
# description: |
#   How long a rate-limited key cools without a Retry-After: 10 s, a sixth of the minute
#   that the large providers count requests and tokens by.
default cool_rate_limited_ms := 10000

cool_rate_limited_ms := data.params.cool_rate_limited_ms

# METADATA
# title: cool_key_fault_ms
# description: |
#   How long a refused or unpaid key cools: 10 min. A person has to mend it, and one
#   lost attempt in ten minutes is what it costs to notice that it was mended.
default cool_key_fault_ms := 600000

cool_key_fault_ms := data.params.cool_key_fault_ms

# METADATA
# title: cool_max_ms
# description: |
#   The longest that a Retry-After can cool a key: 1 h, from where on a wait is a fault
#   of the key and no rate limit.
default cool_max_ms := 3600000

cool_max_ms := data.params.cool_max_ms

# METADATA
# title: evict_model_ms
# description: How long a channel goes without a model that it said it doesn't serve, 10 min.
default evict_model_ms := 600000

evict_model_ms := data.params.evict_model_ms

# METADATA
# title: quarantine_ms
# description: |
#   How long a channel that breaks the protocol is set aside, and the window in which
#   its repeats count: 5 min, as long as a breaker's usual window.
default quarantine_ms := 300000

quarantine_ms := data.params.quarantine_ms

# METADATA
# title: quarantine_after
# description: How many broken answers within quarantine_ms begin a quarantine.
default quarantine_after := 3

quarantine_after := data.params.quarantine_after
