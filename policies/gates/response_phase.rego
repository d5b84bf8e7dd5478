# METADATA
# title: Response phase gate
# description: Once the caller has seen output, the answer can't be begun again.
# scope: package
# schemas:
#   - input: schema
package fourgate.gates.response_phase

# METADATA
# title: The gate's mark
# description: Stops after output, and when output is known to have been produced.
mark := "stop" if {
	input.phase == "after_output"
} else := "stop" if {
	input.failure.completion == "partial"
} else := "pass"

# METADATA
# title: Why the gate stopped
reason := "output_started"
