package fourgate.gates.failure_class_test

import data.fourgate.gates.failure_class

_gate(failure, params) := gate if {
	full := object.union(
		{"class": "provider_transient", "reason": "server_error", "scope": "channel", "status": 500},
		failure,
	)
	gate := failure_class with input as {"failure": full} with data.params as params
}

_open := {"key_fault", "rate_limited", "provider_transient", "bad_model", "schema_invalid", "contract_violation"}

_closed := {"bad_request", "denied", "refusal", "cancelled", "partial", "unknown", "ok"}

test_classes_that_allow_another_route[class] if {
	some class in _open
	g := _gate({"class": class}, {})
	g.mark == "pass"
	g.fallback
}

test_classes_that_stop[class] if {
	some class in _closed
	g := _gate({"class": class}, {})
	g.mark == "stop"
	not g.fallback
	g.retry == "no"
	g.reason == "server_error"
}

test_class_of_the_future_stops if {
	_gate({"class": "something_new"}, {}).mark == "stop"
}

test_retry_with_backoff[class] if {
	some class in ["rate_limited", "provider_transient"]
	_gate({"class": class}, {}).retry == "backoff"
}

test_no_same_route_retry[class] if {
	some class in ["key_fault", "bad_model", "schema_invalid", "contract_violation"]
	_gate({"class": class}, {}).retry == "no"
}

test_network_failures_retry_once[note] if {
	some note, failure in {
		"no answer": {"status": 0, "reason": "network"},
		"no handshake": {"status": 0, "reason": "tls"},
		"request timeout": {"status": 408, "reason": "timeout"},
		"stream ended early": {"status": 200, "reason": "truncated"},
		"stream reset": {"status": 200, "reason": "network"},
		"stream silent": {"status": 200, "reason": "timeout"},
	}
	_gate(failure, {}).retry == "once"
}

test_error_event_in_a_stream_is_no_network_failure if {
	_gate({"status": 200, "reason": "overloaded"}, {}).retry == "backoff"
}

test_retry_on_network_off_keeps_other_routes if {
	g := _gate({"status": 0, "reason": "network"}, {"retry_on_network": false})
	g.retry == "no"
	g.fallback
	g.mark == "pass"
}

test_same_route_retry_never if {
	g := _gate({"class": "rate_limited"}, {"same_route_retry": "never"})
	g.retry == "no"
	g.fallback
}

test_status_passed_through_stops if {
	g := _gate({"status": 503}, {"pass_through_status": [402, 503]})
	g.mark == "stop"
	g.reason == "status_passed_through"
	g.final
}

test_status_that_never_falls_back_keeps_its_retry if {
	g := _gate({"status": 503}, {"never_fallback_status": [503]})
	g.mark == "pass"
	g.retry == "backoff"
	not g.fallback
	g.final
}

test_status_that_never_falls_back_stops_a_class_without_retry if {
	g := _gate({"class": "bad_model", "status": 404}, {"never_fallback_status": [400, 404]})
	g.mark == "stop"
	g.reason == "status_never_falls_back"
}

test_other_statuses_are_untouched if {
	g := _gate({"status": 500}, {"never_fallback_status": [400], "pass_through_status": [402]})
	g.fallback
	not g.final
}
