# METADATA
# title: Attempt budget gate
# description: Attempts, time, the group's retry budget, and a route that is left.
# scope: package
# schemas:
#   - input: schema
package fourgate.gates.attempt_budget

import data.fourgate.gates.failure_class

# METADATA
# title: The gate's mark
# description: |
#   A failure that its class already stops isn't asked for a route, so that this gate
#   speaks of the budget alone.
mark := "stop" if {
	not affordable
} else := "pass" if {
	failure_class.mark == "stop"
} else := "pass" if {
	fallback_left
} else := "pass" if {
	retry_left
} else := "pass" if {
	substitute_left
} else := "stop"

# METADATA
# title: Why the gate stopped
reason := "attempts_spent" if {
	input.budget.attempts_left < 1
} else := "deadline" if {
	not input.budget.time
} else := "retry_budget_spent" if {
	not input.budget.retry_budget
} else := "no_route_left"

# METADATA
# title: Another channel of the same contract is left
default fallback_left := false

fallback_left if {
	failure_class.fallback
	count(input.routes.fallback) > 0
}

# METADATA
# title: The same route may be called again
default retry_left := false

retry_left if {
	failure_class.retry == "backoff"
	input.routes.same
}

retry_left if {
	failure_class.retry == "once"
	input.routes.same
	input.attempt.route_attempts < 2
}

# METADATA
# title: A substitute that was declared and that the caller has accepted is left
default substitute_left := false

substitute_left if {
	failure_class.fallback
	count(input.routes.substitute) > 0
}

# METADATA
# title: One more attempt can be paid for
default affordable := false

affordable if {
	input.budget.attempts_left > 0
	input.budget.time
	input.budget.retry_budget
}
