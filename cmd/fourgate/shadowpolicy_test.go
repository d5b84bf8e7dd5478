package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCandidatePolicy asks a candidate beside the policy that decides: it decides nothing,
// and that it disagrees is counted and recorded.
func TestCandidatePolicy(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(trio)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "fourgate.hcl")
	for path, text := range map[string]string{
		config:                               string(text) + "\npolicy {\n  shadow {\n    paths = [\"candidate.rego\"]\n  }\n}\n",
		filepath.Join(dir, "candidate.rego"): "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": \"never_again\"}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, config, "", "a", "b", "c")
	r.script("a", "status=503")
	if got := post(t, r.base+"/v1/chat/completions", chat("model-1", false)); got.status != 200 || r.calls() != "a=1 b=1 c=0" {
		t.Errorf("%d after %s: %s", got.status, r.calls(), got.body)
	}
	const want = `fourgate_policy_shadow_disagreements_total{budget="left",class="provider_transient",completion="none",from="fallback",phase="before_output",replay_safe="true",to="abort"} 1`
	for limit := time.Now().Add(waitLimit); !strings.Contains(r.metrics(), want); {
		if time.Now().After(limit) {
			t.Fatalf("no %s in\n%s", want, r.metrics())
		}
	}
	if code := r.proxy.end(t); code != 0 { // which waits for the ledger
		t.Errorf("the proxy ended with %d", code)
	}
	list := startAt(t, r.clock, r.vars, "ledger", "list", "-ledger", r.ledger, "-disagreed")
	list.stdout.await(t, "provider_transient")
}
