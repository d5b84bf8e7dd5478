package fourgate_test

import data.fourgate

_question(provider, class, status) := {
	"attempt": {"provider": provider},
	"failure": {"class": class, "status": status},
}

_default := {"action": "abort", "reason": "attempts_spent", "effects": []}

_decide(question) := answer if {
	answer := fourgate.decision with fourgate.standard.decision as _default with input as question
}

test_a_busy_provider_is_named if _decide(_question("a", "unknown", 420)) == object.union(_default, {"reason": "provider_busy"})

test_others_are_left_to_the_default[name] if {
	some name, question in {
		"another provider": _question("b", "unknown", 420),
		"another class": _question("a", "bad_request", 420),
		"another status": _question("a", "unknown", 421),
	}
	_decide(question) == _default
}
