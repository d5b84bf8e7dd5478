package policies

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
)

// The input of docs/policies.md, name by name.
func TestInputIsAsDocumented(t *testing.T) {
	t.Parallel()
	const want = `{
  "request": {"id": "r1", "caller": "team-a", "endpoint": "openai.chat", "model": "gpt-4o-2024-08-06",
              "stream": true, "tools": false, "sdk_retry": 0,
              "idempotency": {"key": null, "replay_safe": true, "effects": "none"}},
  "attempt": {"seq": 1, "group": "gpt-4o", "channel": "openai", "provider": "openai", "key": "main",
              "route_attempts": 1},
  "failure": {"class": "provider_transient", "reason": "overloaded", "scope": "channel", "status": 503,
              "retry_after_ms": null, "completion": "none", "family": "PROVIDER_TRANSIENT"},
  "phase": "before_output",
  "budget": {"attempts_used": 1, "attempts_left": 2, "elapsed_ms": 812, "remaining_ms": 59188,
             "min_useful_ms": 2000, "backoff_ms": 137, "retry_budget": true, "time": true},
  "routes": {"same": true, "fallback": ["azure-east"], "substitute": [], "spare_key": false},
  "params": {"a": 1},
  "clock": {"date": "2026-11-30", "weekday": "monday", "hour": 23, "minute": 5}
}`
	q := failed(t)
	set := load(t, Options{Params: map[string]any{"a": 1}}, "package fourgate\ndecision := input")
	got, err := ast.JSON(set.decision.reads.input(&q, q.Now, set.params).Value)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(want)))
	decoder.UseNumber()
	var wanted any
	if err := decoder.Decode(&wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
}

// The schema names exactly what the engine gives, or a policy could be checked against
// facts that never come.
func TestSchemaHasTheSameNames(t *testing.T) {
	t.Parallel()
	var union struct {
		Definitions struct{ Decision, Route json.RawMessage }
	}
	if err := json.Unmarshal(readEmbedded(t, "input.jsonschema"), &union); err != nil {
		t.Fatal(err)
	}
	route := readEmbedded(t, "route.jsonschema")
	for _, c := range []struct {
		name   string
		schema json.RawMessage
		want   map[string]bool
	}{
		{"decision", union.Definitions.Decision, namesOf(fields())},
		{"route", union.Definitions.Route, namesOf(routeFields())},
		{"route alone", route, namesOf(routeFields())},
	} {
		got := map[string]bool{}
		schemaNames(t, "", c.schema, got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func readEmbedded(t *testing.T, name string) []byte {
	t.Helper()
	text, err := embedded.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func namesOf[Q any](all []field[Q]) map[string]bool {
	names := map[string]bool{"/params": true}
	for _, f := range all {
		names["/"+strings.Join(f.path, "/")] = true
	}
	return names
}

// A fact that may be null can be compared with null and with a value. OPA's checker has no
// type for that but "any", so an object keeps its own: its members' names are worth more.
func TestFactsThatMayBeNull(t *testing.T) {
	t.Parallel()
	const decision, route = `decision := {"action": "abort", "reason": "r"}`, `route := {"attempts": 1, "reason": "r"}`
	f := func(rule, condition, want string) {
		t.Helper()
		report, err := Check(t.Context(), Options{Paths: []string{writePolicy(t, "package fourgate\n\n"+rule+" if "+condition+"\n")}}, true)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range report.Problems {
			got += p.String()
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: problems %q, want %q", condition, got, want)
		}
	}
	f(decision, `input.failure.retry_after_ms == null`, "")
	f(decision, `input.failure.retry_after_ms > 1000`, "")
	f(decision, `input.request.idempotency.key == null`, "")
	f(decision, `input.request.idempotency.key == "k"`, "")
	f(route, `input.request.idempotency.key == null`, "")
	f(route, `is_null(input.channels[0].cost)`, "")
	f(route, `input.channels[0].cost == null`, "is_null")
	f(route, `input.channels[0].cost.input > 2.5`, "")
	f(route, `input.channels[0].cost.cached_input == null`, "")
	f(route, `input.channels[0].cost.inptu > 2.5`, "undefined ref")
}

// schemaNames collects the paths of all leaves and checks that no object is open.
func schemaNames(t *testing.T, path string, text []byte, names map[string]bool) {
	t.Helper()
	var o struct {
		Type       any                        `json:"type"`
		Required   []string                   `json:"required"`
		Properties map[string]json.RawMessage `json:"properties"`
		Additional *bool                      `json:"additionalProperties"`
	}
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	if o.Type != "object" || path == "/params" {
		names[path] = true
		return
	}
	if o.Additional == nil || *o.Additional {
		t.Errorf("the schema lets any name pass in %q", path)
	}
	if len(o.Required) != len(o.Properties) {
		t.Errorf("the schema requires %d of the %d names in %q", len(o.Required), len(o.Properties), path)
	}
	for name, text := range o.Properties {
		schemaNames(t, path+"/"+name, text, names)
	}
}

// FuzzReadAnswer: whatever a policy answers, reading it doesn't fail in another way than
// by saying so, and what it accepts keeps to its bounds.
func FuzzReadAnswer(f *testing.F) {
	f.Add(`{"action": "fallback", "reason": "r", "channel": "b", "delay_ms": 5}`)
	f.Add(`{"action": "abort", "reason": "r", "effects": [{"kind": "quarantine_channel", "for_ms": 1, "after": 2}]}`)
	f.Add(`{"action": "retry", "reason": "r", "gates": {"idempotency": "pass"}}`)
	f.Add(`{"action": "retry", "reason": "r", "delay_ms": 1e999}`)
	f.Add(`[[{}]]`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ast.ValueFromReader(bytes.NewReader([]byte(text)))
		if err != nil {
			return
		}
		d, err := readAnswer(v)
		if err != nil {
			return
		}
		if delay, _ := d.Delay.Get(); delay < 0 {
			t.Errorf("accepted a delay of %v", delay)
		}
		if d.Reason.String() == "" || len(d.Effects) > maxEffects {
			t.Errorf("accepted %+v", d)
		}
		for _, e := range d.Effects {
			if e.For < 0 || e.After < 0 {
				t.Errorf("accepted the effect %+v", e)
			}
		}
	})
}
