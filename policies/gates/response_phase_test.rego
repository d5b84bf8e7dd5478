package fourgate.gates.response_phase_test

import data.fourgate.gates.response_phase

_mark(phase, completion) := mark if {
	mark := response_phase.mark with input as {"phase": phase, "failure": {"completion": completion}}
}

test_before_headers_passes if _mark("before_headers", "none") == "pass"

test_before_output_passes if _mark("before_output", "unknown") == "pass"

test_after_output_stops if _mark("after_output", "none") == "stop"

test_partial_completion_stops if _mark("before_output", "partial") == "stop"

test_reason if response_phase.reason == "output_started"
