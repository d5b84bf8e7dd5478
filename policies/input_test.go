package policies

import (
	"bytes"
	"encoding/json"
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
  "params": {"a": 1}
}`
	q := failed(t)
	set := load(t, Options{Params: map[string]any{"a": 1}}, "package fourgate\ndecision := input")
	got, err := ast.JSON(set.reads.input(&q, set.params).Value)
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
	text, err := embedded.ReadFile("input.jsonschema")
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Type       any                        `json:"type"`
		Required   []string                   `json:"required"`
		Properties map[string]json.RawMessage `json:"properties"`
		Additional *bool                      `json:"additionalProperties"`
	}
	schema := map[string]bool{}
	var walk func(path string, text []byte)
	walk = func(path string, text []byte) {
		var o object
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatal(err)
		}
		if o.Type != "object" || path == "/params" {
			schema[path] = true
			return
		}
		if o.Additional == nil || *o.Additional {
			t.Errorf("the schema lets any name pass in %q", path)
		}
		if len(o.Required) != len(o.Properties) {
			t.Errorf("the schema requires %d of the %d names in %q", len(o.Required), len(o.Properties), path)
		}
		for name, text := range o.Properties {
			walk(path+"/"+name, text)
		}
	}
	walk("", text)

	given := map[string]bool{"/params": true}
	for _, f := range fields() {
		path := ""
		for _, name := range f.path {
			path += "/" + name
		}
		given[path] = true
	}
	if diff := cmp.Diff(given, schema); diff != "" {
		t.Error(diff)
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
