package fourgate

# METADATA
# title: The whole budget is for premium callers
# description: A limit above the group's own budget would be refused, so it isn't named.
route := object.union_n([{"reason": "standard_service"}, attempts, deadline]) if {
	not input.request.caller in data.params.premium
}

default attempts := {}

attempts := {"attempts": 2} if input.budget.attempts > 2

default deadline := {}

deadline := {"deadline_ms": 30000} if input.budget.deadline_ms > 30000
