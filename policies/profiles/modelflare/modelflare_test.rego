# The matrix itself is tested beside the default policy, row by row.
package fourgate.profiles.modelflare_test

import data.fourgate.profiles.modelflare

test_the_decision_is_the_default_policys if {
	d := {"action": "fallback", "reason": "overloaded"}
	modelflare.decision == d with data.fourgate.standard.decision as d
}
