package fourgate.gates.idempotency_test

import data.fourgate.gates.idempotency

_gate(effects, safe, completion) := gate if {
	gate := idempotency with input as {
		"request": {"idempotency": {"effects": effects, "replay_safe": safe}},
		"failure": {"completion": completion},
	}
}

test_not_started_passes if _gate("possible", false, "none").mark == "pass"

test_replay_safe_passes if _gate("none", true, "unknown").mark == "pass"

test_recorded_effect_passes if _gate("recorded", true, "unknown").mark == "pass"

test_neither_stops if {
	g := _gate("possible", false, "unknown")
	g.mark == "stop"
	g.reason == "not_replay_safe"
}

test_unknown_effect_stops_whatever_else_is_known if {
	g := _gate("unknown", true, "none")
	g.mark == "stop"
	g.reason == "effects_unknown"
}
