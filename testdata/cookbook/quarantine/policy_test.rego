package fourgate_test

import data.fourgate

_default := {
	"action": "fallback",
	"reason": "model_mismatch",
	"effects": [{"kind": "quarantine_channel", "for_ms": 300000, "after": 3}],
}

_decide(class) := answer if {
	answer := fourgate.decision with fourgate.standard.decision as _default with input as {"failure": {"class": class}}
}

test_another_model_is_set_aside_at_once if {
	answer := _decide("contract_violation")
	answer.action == "fallback"
	answer.effects == [{"kind": "quarantine_channel", "for_ms": 3600000, "after": 1}]
}

test_other_failures_are_left_to_the_default if _decide("schema_invalid") == _default
