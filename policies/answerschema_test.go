package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// matches validates a document with a schema file, by the validator inside OPA.
func matches(t *testing.T, schema, document string) bool {
	t.Helper()
	valid := false
	match := topdown.GetBuiltin("json.match_schema")
	err := match(topdown.BuiltinContext{}, []*ast.Term{ast.StringTerm(document), ast.StringTerm(string(readEmbedded(t, schema)))},
		func(t *ast.Term) error {
			verdict := t.Value.(*ast.Array).Elem(0)
			valid = verdict.Equal(ast.InternedTerm(true))
			return nil
		})
	if err != nil {
		t.Fatalf("%s of %s: %v", schema, document, err)
	}
	return valid
}

// The schemas of the answers accept what is accepted when a policy answers, and refuse
// what is refused then.
func TestAnswerSchemas(t *testing.T) {
	t.Parallel()
	f := func(schema string, read func(ast.Value) error, good, bad []string) {
		t.Helper()
		for _, list := range []struct {
			fine bool
			docs []string
		}{{true, good}, {false, bad}} {
			for _, doc := range list.docs {
				v, ok := valueOf(doc)
				if !ok {
					t.Fatalf("%s is no JSON", doc)
				}
				if got := matches(t, schema, doc); got != list.fine {
					t.Errorf("%s: the schema says %v of %s", schema, got, doc)
				}
				if err := read(v); (err == nil) != list.fine {
					t.Errorf("%s: reading %s gives %v", schema, doc, err)
				}
			}
		}
	}
	with := func(member string) string { return `{"action": "retry", "reason": "r", ` + member + `}` }
	effects := func(list ...string) string { return with(`"effects": [` + strings.Join(list, ", ") + `]`) }
	nine := make([]string, maxEffects+1)
	for i := range nine {
		nine[i] = fmt.Sprintf(`{"kind": "cool_key", "for_ms": %d}`, i)
	}
	f("decision.jsonschema", func(v ast.Value) error { _, err := readAnswer(v); return err }, []string{
		`{"action": "abort", "reason": "r"}`, `{"action": "substitute", "reason": "a_1"}`,
		`{"action": "fallback", "reason": "r", "channel": "b"}`,
		with(`"delay_ms": 0`), with(`"delay_ms": 1.5e3`), with(`"delay_ms": 9223372036854`),
		effects(), effects(`{"kind": "count_failure"}`), effects(nine[:maxEffects]...),
		effects(`{"kind": "quarantine_channel", "for_ms": 1}`, `{"kind": "quarantine_channel", "for_ms": 1, "after": 2}`, `{"kind": "evict_model", "for_ms": 0}`),
		with(`"gates": {}`), with(`"gates": {"failure_class": "pass", "response_phase": "stop", "idempotency": "pass", "attempt_budget": "stop"}`),
		fmt.Sprintf(`{"action": "abort", "reason": %q}`, strings.Repeat("a", 64)),
	}, []string{
		`"retry"`, `[]`, `{}`, `null`, `{"action": "retry"}`, `{"reason": "r"}`, `{"action": "replay", "reason": "r"}`, `{"action": 1, "reason": "r"}`,
		with(`"delay": 5`), with(`"channel": "b"`), `{"action": "fallback", "reason": "r", "channel": ""}`,
		`{"action": "retry", "reason": ""}`, `{"action": "retry", "reason": "because of"}`, `{"action": "retry", "reason": "R"}`, `{"action": "retry", "reason": "r\n"}`,
		fmt.Sprintf(`{"action": "abort", "reason": %q}`, strings.Repeat("a", 65)),
		with(`"delay_ms": -1`), with(`"delay_ms": 1.5`), with(`"delay_ms": 1e300`), with(`"delay_ms": 9223372036855`), with(`"delay_ms": "5"`), with(`"delay_ms": null`),
		with(`"effects": {}`), effects(`"count_failure"`), effects(`{"kind": "delete_key", "for_ms": 1}`), effects(`{"for_ms": 1}`), effects(`{}`), effects(nine...),
		effects(`{"kind": "cool_key"}`), effects(`{"kind": "cool_key", "for_ms": 1, "after": 2}`), effects(`{"kind": "count_failure", "for_ms": 1}`),
		effects(`{"kind": "quarantine_channel", "for_ms": 1, "after": -1}`), effects(`{"kind": "quarantine_channel", "for_ms": 1, "after": 2147483648}`),
		with(`"gates": {"quota": "pass"}`), with(`"gates": {"idempotency": "maybe"}`), with(`"gates": {"idempotency": ""}`), with(`"gates": "pass"`),
	})
	f("route-decision.jsonschema", func(v ast.Value) error { _, err := readRouteAnswer(v); return err }, []string{
		`{}`, `{"reason": "r"}`, `{"channels": [], "reason": "r"}`, `{"channels": ["a", "g/b"], "reason": "r"}`,
		`{"attempts": 1, "per_route": 2, "deadline_ms": 3e3, "reason": "r"}`,
	}, []string{
		`"a"`, `[]`, `null`, `{"attempts": 1}`, `{"channels": []}`, `{"chanels": [], "reason": "r"}`, `{"channels": ["a", "a"], "reason": "r"}`,
		`{"channels": [""], "reason": "r"}`, `{"channels": "a", "reason": "r"}`, `{"channels": [1], "reason": "r"}`,
		`{"attempts": 0, "reason": "r"}`, `{"attempts": 1.5, "reason": "r"}`, `{"attempts": 2147483648, "reason": "r"}`, `{"per_route": -1, "reason": "r"}`,
		`{"deadline_ms": 0, "reason": "r"}`, `{"deadline_ms": "1s", "reason": "r"}`, `{"deadline_ms": 9223372036855, "reason": "r"}`, `{"attempts": 1, "reason": "Because"}`,
	})
}

// What the engine asks is what the schemas of the questions accept.
func TestQuestionsKeepToTheirSchemas(t *testing.T) {
	t.Parallel()
	q, r := failed(t), routed()
	set := load(t, Options{Params: map[string]any{"a": 1}}, "package fourgate\n\ndecision := input\n\nroute := input\n")
	decision := set.decision.reads.input(&q, q.Now, set.params).String()
	route := set.route.reads.input(&r, r.Now, set.params).String()
	for _, c := range []struct {
		schema, document string
		want             bool
	}{
		{"input.jsonschema", decision, true}, {"input.jsonschema", route, true},
		{"route.jsonschema", route, true}, {"route.jsonschema", decision, false},
		{"input.jsonschema", `{}`, false}, {"input.jsonschema", strings.Replace(route, `"channels"`, `"chanels"`, 1), false},
	} {
		if got := matches(t, c.schema, c.document); got != c.want {
			t.Errorf("%s says %v of %s", c.schema, got, c.document)
		}
	}
}
