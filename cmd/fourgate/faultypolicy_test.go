package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// withPolicy writes the three channels' configuration with a policy of one file, and
// perhaps more arguments of its block.
func withPolicy(t *testing.T, rego, arguments string) string {
	t.Helper()
	text, err := os.ReadFile(trio)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "fourgate.hcl")
	text = fmt.Appendf(text, "\npolicy {\n  paths = [\"policy.rego\"]\n%s\n}\n", arguments)
	for path, text := range map[string]string{config: string(text), filepath.Join(dir, "policy.rego"): rego} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

// metrics are the proxy's, as text.
func (r *rig) metrics() string {
	r.t.Helper()
	_, admin, _ := strings.Cut(r.proxy.stdout.await(r.t, "metrics and health on "), "metrics and health on ")
	admin, _, _ = strings.Cut(admin, "\n")
	return fetch(r.t, admin+"/metrics")
}

// TestPolicyErrors runs policies that give no usable answer: the upstream's own error
// reaches the caller as it came, the error is counted and recorded, and no attempt
// follows.
func TestPolicyErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, kind, rego, arguments string }{
		{name: "undefined", kind: "undefined", rego: `decision := {"action": "retry", "reason": "r"} if input.failure.status == 1`},
		{name: "conflicting", kind: "conflict", rego: `decision := {"action": "retry", "reason": "a"} if input.failure.status > 1
decision := {"action": "fallback", "reason": "b"} if input.failure.status > 2`},
		{name: "mistyped", kind: "mistyped", rego: `decision := {"action": "fallback", "reason": "r", "delay_ms": "soon"}`},
		{name: "no object", kind: "mistyped", rego: `decision := true`},
		{name: "unknown word", kind: "mistyped", rego: `decision := {"action": "try_harder", "reason": "r"}`},
		{name: "failing", kind: "error", rego: `decision := {"action": "fallback", "reason": "r", "delay_ms": 1 / (input.failure.status - 503)}`},
		{name: "too slow", kind: "timeout", arguments: `  timeout = "5ms"`, rego: `digits := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

decision := {"action": "fallback", "reason": "r"} if {
	some a in digits
	some b in digits
	some c in digits
	some d in digits
	some e in digits
	some f in digits
	some g in digits
	((((a + b) + c) + d) + e) + (f * g) == input.failure.status + 1000
}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, withPolicy(t, "package fourgate\n\n"+c.rego+"\n", c.arguments), "", "a", "b", "c")
			const own = `{"error":{"message":"the upstream's own words","code":"own"}}`
			r.script("a", fmt.Sprintf("status=503 body=%q", own))
			got := post(t, r.base+"/v1/chat/completions", chat("model-1", false))
			if got.status != 503 || got.body != own {
				t.Errorf("the caller got %d: %s", got.status, got.body)
			}
			if got.header.Get("X-Should-Retry") != "false" {
				t.Error("SDKs are not told to stay away")
			}
			if calls := r.calls(); calls != "a=1 b=0 c=0" {
				t.Errorf("calls of the upstreams: %s", calls)
			}
			if want := fmt.Sprintf("fourgate_policy_errors_total{kind=%q} 1\n", c.kind); !strings.Contains(r.metrics(), want) {
				t.Errorf("%s is not in the metrics", want)
			}
			rec := r.record(got.header.Get("X-Request-Id"))
			d, decided := rec.Attempts()[0].Decision()
			if !decided || d.Fault() != c.kind || d.Action() != engine.Abort || rec.Terminal() != engine.TerminalPolicyStop {
				t.Errorf("recorded: %s", rec.AppendJSON(nil))
			}
			log := r.proxy.stderr.await(t, "policy_error="+c.kind)
			if strings.Count(log, "policy_error=") != 1 {
				t.Error(log)
			}
		})
	}
}
