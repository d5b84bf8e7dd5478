package fourgate

import data.fourgate.standard

# METADATA
# title: One answer of another model is one too many
decision := object.union(standard.decision, {
	"reason": "another_model",
	"effects": [{"kind": "quarantine_channel", "for_ms": 3600000, "after": 1}],
}) if {
	input.failure.class == "contract_violation"
} else := standard.decision
