package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestExplainWhatWasRecorded asks why about requests that a proxy has served.
func TestExplainWhatWasRecorded(t *testing.T) {
	t.Parallel()
	r := outage(t, trio)
	f := func(code int, args []string, want ...string) {
		t.Helper()
		text := endsWith(t, r.vars, code, append([]string{"policy", "explain"}, args...)...)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%v: no %q in\n%s", args, w, text)
			}
		}
	}
	f(exitOK, []string{"-c", r.config, "-request", "second"},
		"request    second: model-1 of openai.chat for anonymous",
		"attempt    1 of 3, on a (group m",
		"decision   fallback (",
		"rule       builtin:decision.rego:",
		"gates      failure_class   pass  builtin:gates/failure_class.rego:",
		"interlock  none; another attempt follows at once",
		"budget.retry_budget = false → abort (retry_budget_spent)",
	)
	f(exitOK, []string{"-ledger", r.ledger, "-request", "nob", "-attempt", "2"}, "attempt    2 of 3, on b")
	f(exitOK, []string{"-ledger", r.ledger, "-request", "nobody"}, "attempt    3 of 3, on c", "decision   abort (attempts_spent)")
	f(exitOK, []string{"-ledger", r.ledger, "-request", "cut"}, "after_output", "response_phase  stop")

	// Another policy is asked the same, and says so where it differs.
	stop := writeFile(t, "stop.rego", "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": \"never_again\"}\n")
	f(exitOK, []string{"-ledger", r.ledger, "-request", "second", stop},
		"decision   abort (never_again)", "recorded   fallback (", "this policy decides differently", "stop.rego:3", "No single change")

	// What a policy wishes is held by the interlocks.
	again := writeFile(t, "again.rego", "package fourgate\n\ndecision := {\"action\": \"fallback\", \"reason\": \"once_more\"}\n")
	f(exitOK, []string{"-ledger", r.ledger, "-request", "cut", again}, "interlock  committed; the caller has had output, so no attempt follows")
	f(exitOK, []string{"-ledger", r.ledger, "-request", "nobody", again}, "interlock  budget; attempts or useful time are spent, so no attempt follows")

	f(exitFailure, []string{"-ledger", r.ledger, "-request", "well"}, "cannot explain request well: none of its attempts has failed")
	f(exitFailure, []string{"-ledger", r.ledger, "-request", "second", "-attempt", "2"}, "attempt 2 has not failed")
	f(exitFailure, []string{"-ledger", r.ledger, "-request", "second", "-attempt", "3"}, "request second has 2 attempts")
	f(exitFailure, []string{"-ledger", r.ledger, "-request", "unheard-of"}, "fourgate ledger list")

	var got struct {
		Input    struct{ Request struct{ ID string } }
		Decision struct{ Action, Reason, Rule string }
		Recorded struct{ Same bool }
		Gates    []struct{ Gate, Mark, Rule string }
		Changes  []struct{ Path, Action string }
	}
	text := endsWith(t, r.vars, exitOK, "policy", "explain", "-json", "-c", r.config, "-request", "second")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if got.Input.Request.ID != "second" || got.Decision.Action != "fallback" || !got.Recorded.Same || len(got.Gates) != 4 || len(got.Changes) < 5 {
		t.Errorf("got %+v", got)
	}
}
