package policies

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// problemsOf loads a policy that must be refused.
func problemsOf(t *testing.T, opts Options) []Problem {
	t.Helper()
	_, err := Load(t.Context(), opts)
	var refused *LoadError
	if !errors.As(err, &refused) {
		t.Fatalf("got error %v, want a LoadError", err)
	}
	return refused.Problems
}

// directory writes files and returns their directory.
func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRefusedBuiltins(t *testing.T) {
	t.Parallel()
	f := func(builtin, call string) {
		t.Run(builtin, func(t *testing.T) {
			t.Parallel()
			name := writePolicy(t, "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": \"r\"} if {\n\t"+call+"\n}\n")
			problems := problemsOf(t, Options{Paths: []string{name}})
			p := problems[0]
			if p.File != name || p.Line != 4 || p.Col < 2 {
				t.Errorf("the place is %s:%d:%d, want line 4 of the file", p.File, p.Line, p.Col)
			}
			if !strings.Contains(p.Message, "cannot use builtin "+builtin) {
				t.Errorf("the message %q doesn't name the builtin", p.Message)
			}
		})
	}
	f("http.send", `http.send({"method": "GET", "url": "http://127.0.0.1"}).status_code == 200`)
	f("net.lookup_ip_addr", `net.lookup_ip_addr("localhost")`)
	f("net.cidr_contains", `net.cidr_contains("10.0.0.0/8", "10.0.0.1")`)
	f("opa.runtime", `opa.runtime().env.HOME`)
	f("time.now_ns", `time.now_ns() > 0`)
	f("rand.intn", `rand.intn("s", 2) == 1`)
	f("uuid.rfc4122", `uuid.rfc4122("s") != ""`)
	f("bits.lsh", `bits.lsh(1, 100000000) > 0`)
	f("numbers.range", `count(numbers.range(1, 100000000)) > 0`)
	f("json.match_schema", `json.match_schema({}, {"$ref": "http://127.0.0.1/s"})`)
	f("crypto.sha256", `crypto.sha256("s") != ""`)
	f("io.jwt.decode", `io.jwt.decode("s")`)
	f("trace", `trace("s")`)
	f("regex.template_match", `regex.template_match("{.*}", "s", "{", "}")`)
}

// Every name of the list is one that OPA has, or it would allow nothing.
func TestAllowedBuiltinsExist(t *testing.T) {
	t.Parallel()
	if got, want := len(capabilities().Builtins), len(allowed); got != want {
		t.Errorf("%d of the %d allowed builtins exist", got, want)
	}
}

func TestAllSyntaxErrorsAtOnce(t *testing.T) {
	t.Parallel()
	dir := directory(t, map[string]string{
		"a.rego":     "package fourgate\n\ndecision := {\n",
		"sub/b.rego": "package fourgate.b\n\nx := := 1\n",
	})
	problems := problemsOf(t, Options{Paths: []string{dir}})
	files := map[string]bool{}
	for _, p := range problems {
		files[filepath.Base(p.File)] = true
		if p.Line == 0 {
			t.Errorf("%v has no line", p)
		}
	}
	if !files["a.rego"] || !files["b.rego"] {
		t.Errorf("problems %v, want some of both files", problems)
	}
}

func TestAllTypeErrorsAtOnce(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("package fourgate\n\n")
	for range 15 {
		text.WriteString("decision := {\"action\": \"abort\", \"reason\": input.failure.raison}\n")
	}
	problems := problemsOf(t, Options{Paths: []string{writePolicy(t, text.String())}})
	if len(problems) != 15 {
		t.Errorf("%d problems, want one for each of the 15 lines", len(problems))
	}
	if !strings.Contains(problems[0].Message, "reason") || problems[0].Line != 3 {
		t.Errorf("problem %v, want line 3 with the names that exist", problems[0])
	}
}

func TestRefusedOptions(t *testing.T) {
	t.Parallel()
	f := func(name string, opts Options, want string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := problemsOf(t, opts)
			if len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
				t.Errorf("problems %v, want one with %q", problems, want)
			}
		})
	}
	empty := t.TempDir()
	f("missing path", Options{Paths: []string{filepath.Join(empty, "none")}}, "cannot find this path; name a directory or a .rego file")
	f("empty directory", Options{Paths: []string{empty}}, "cannot find any .rego file")
	f("empty file", Options{Paths: []string{writePolicy(t, "")}}, "p.rego: empty module")
	linked := t.TempDir()
	if err := os.Symlink(empty, filepath.Join(linked, "linked.rego")); err != nil {
		t.Fatal(err)
	}
	f("no file", Options{Paths: []string{linked}}, "a directory, a pipe or a device")
	f("huge file", Options{Paths: []string{writePolicy(t, strings.Repeat("#", maxFile+1))}}, "split it")
	f("query of no rule", Options{Query: "data.acme.decision"}, "cannot find a rule")
	f("query of input", Options{Query: "input.failure"}, "cannot use query")
	f("query with a variable", Options{Query: "data.fourgate[x]"}, "cannot use query")
	f("query that is none", Options{Query: "data."}, "cannot use query")
	f("params of no data", Options{Params: map[string]any{"f": func() {}}}, "cannot use policy params")
	f("reserved name", Options{Paths: []string{writePolicy(t, `package fourgate
decision := {"action": "abort", "reason": "r"}
gates := {}
`)}}, "conflicts")
}

func TestDirectoryOfSeveralFiles(t *testing.T) {
	t.Parallel()
	dir := directory(t, map[string]string{
		"decision.rego":        "package fourgate\n\nimport data.acme.words\n\ndecision := {\"action\": \"abort\", \"reason\": words.reason}\n",
		"words/words.rego":     "package acme.words\n\nreason := \"from_another_file\"\n",
		"decision_test.rego":   "package fourgate_test\n\nthis is no Rego\n",
		".draft/decision.rego": "nor is this\n",
		".decision.rego":       "nor this\n",
		"data.json":            "{",
	})
	q := failed(t)
	got := load(t, Options{Paths: []string{dir}}).Decide(&q)
	if got.Reason.String() != "from_another_file" || got.Fault != "" {
		t.Errorf("got %+v", got)
	}
	if want := filepath.ToSlash(filepath.Join(dir, "decision.rego")) + ":5"; got.Rule != want {
		t.Errorf("rule is %q, want %q", got.Rule, want)
	}
}

func TestOwnDecisionUsesDefaultGates(t *testing.T) {
	t.Parallel()
	q := failed(t)
	q.Failure = failure(t, engine.ClassBadRequest, engine.ScopeRequest, "invalid_request", 400)
	got := load(t, Options{}, `package fourgate
import data.fourgate.gates.failure_class
decision := {"action": "abort", "reason": "r", "gates": {"failure_class": failure_class.mark}}
`).Decide(&q)
	if got.Gates.FailureClass != engine.GateStop {
		t.Errorf("got %+v, want the default gate's stop", got)
	}
}

func TestOwnGateReplacesDefaultGate(t *testing.T) {
	t.Parallel()
	q := failed(t)
	got := load(t, Options{}, `package fourgate.gates.idempotency
mark := "stop"
reason := "never_twice"
`).Decide(&q)
	if got.Action != engine.Abort || got.Reason.String() != "never_twice" {
		t.Errorf("got %+v, want the own gate's stop", got)
	}
	if !strings.HasPrefix(got.Rule, "builtin:decision.rego:") {
		t.Errorf("rule is %q, want one of the default decision", got.Rule)
	}
}

func TestOwnPackageBuildsOnDefaultDecision(t *testing.T) {
	t.Parallel()
	text := `package acme

decision := {"action": "abort", "reason": "frozen"} if {
	data.params.frozen
} else := data.fourgate.decision
`
	q := failed(t)
	query := "data.acme.decision"
	got := load(t, Options{Query: query}, text).Decide(&q)
	if got.Action != engine.Fallback || !strings.HasPrefix(got.Rule, "builtin:decision.rego:") {
		t.Errorf("got %+v, want the default policy's fallback and rule", got)
	}
	got = load(t, Options{Query: query, Params: map[string]any{"frozen": true}}, text).Decide(&q)
	if got.Reason.String() != "frozen" || !strings.HasSuffix(got.Rule, "p.rego:3") {
		t.Errorf("got %+v, want an abort by the parameter and its rule", got)
	}
}

func TestParamsAreData(t *testing.T) {
	t.Parallel()
	q := failed(t)
	params := map[string]any{"word": "given", "ms": 25.0}
	set := load(t, Options{Params: params}, `package fourgate
decision := {"action": "retry", "reason": data.params.word, "delay_ms": input.params.ms}
`)
	params["word"] = "changed_later"
	got := set.Decide(&q)
	delay, _ := got.Delay.Get()
	if got.Reason.String() != "given" || delay.Milliseconds() != 25 {
		t.Errorf("got %+v, want the parameters as they were given", got)
	}
}

// Setting a variable with = is fine where only one side can be set.
func TestUnificationInOneDirection(t *testing.T) {
	t.Parallel()
	q := failed(t)
	got := load(t, Options{}, `package fourgate
decision := {"action": "fallback", "reason": r, "channel": c} if {
	c = input.routes.fallback[_]
	r = concat("_", ["to", x])
	input.failure.class = x
	[1, y] = [z | some z in [1, 2]]
	y = 2
}
`).Decide(&q)
	if got.Channel != "azure-east" || got.Reason.String() != "to_provider_transient" {
		t.Errorf("got %+v", got)
	}
}

// print is for authors: it must neither fail nor reach the process' output.
func TestPrintIsRemoved(t *testing.T) {
	t.Parallel()
	q := failed(t)
	got := load(t, Options{}, `package fourgate
decision := {"action": "abort", "reason": "r"} if print("why", input.failure.class)
`).Decide(&q)
	if got.Fault != "" {
		t.Errorf("got %+v", got)
	}
}

func TestSchemaAnnotationsOfBothKinds(t *testing.T) {
	t.Parallel()
	q := failed(t)
	for _, name := range []string{"schema", "schema.input"} {
		got := load(t, Options{}, `# METADATA
# scope: package
# schemas:
#   - input: `+name+`
package fourgate
decision := {"action": "abort", "reason": input.failure.reason}
`).Decide(&q)
		if got.Fault != "" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestRuleOfDefaultAnswer(t *testing.T) {
	t.Parallel()
	q := failed(t)
	got := load(t, Options{}, `package fourgate

default decision := {"action": "abort", "reason": "otherwise"}

decision := {"action": "retry", "reason": "r"} if input.failure.status == 1
`).Decide(&q)
	if !strings.HasSuffix(got.Rule, "p.rego:3") {
		t.Errorf("rule is %q, want the default's line 3", got.Rule)
	}
}

func TestKnobsThatCannotBe(t *testing.T) {
	t.Parallel()
	f := func(name string, value any, want string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := problemsOf(t, Options{Params: map[string]any{name: value}})
			if len(problems) != 1 || !strings.Contains(problems[0].Message, want) {
				t.Errorf("problems %v, want one with %q", problems, want)
			}
		})
	}
	f("retry_on_netwrok", true, "the default policy has retry_on_network, same_route_retry")
	f("retry_on_network", "yes", "write a value of type boolean, such as true")
	f("same_route_retry", "always", "write one of [last first never]")
	f("cool_max_ms", -1, "less than zero")
	f("pass_through_status", 402, "write a value of type array")
}

func TestOwnPolicyHasItsOwnParams(t *testing.T) {
	t.Parallel()
	q := failed(t)
	got := load(t, Options{Params: map[string]any{"mine": "word"}}, answering(`{"action": "abort", "reason": data.params.mine}`)).Decide(&q)
	if got.Reason.String() != "word" {
		t.Errorf("got %+v", got)
	}
}

func TestKnobsTurnTheDefaultPolicy(t *testing.T) {
	t.Parallel()
	q := failed(t)
	got := load(t, Options{Params: map[string]any{"same_route_retry": "first"}}).Decide(&q)
	if got.Action != engine.Retry {
		t.Errorf("got %+v, want a retry of the same route first", got)
	}
	q.Failure = failure(t, engine.ClassKeyFault, engine.ScopeKey, "billing", 402)
	got = load(t, Options{Params: map[string]any{"pass_through_status": []int{402}}}).Decide(&q)
	if got.Action != engine.Abort || len(got.Effects) != 0 {
		t.Errorf("got %+v, want the 402 passed through and nothing blamed", got)
	}
}

func TestRuleThatUsesPartsOfTheDefaultAnsweredItself(t *testing.T) {
	t.Parallel()
	text := `package fourgate

import data.fourgate.standard

decision := {"action": "abort", "reason": "batch_waits", "gates": standard.decision.gates} if {
	input.failure.status == 503
} else := standard.decision
`
	q := failed(t)
	got := load(t, Options{}, text).Decide(&q)
	if got.Reason.String() != "batch_waits" || !strings.HasSuffix(got.Rule, "p.rego:5") {
		t.Errorf("got %+v, want the abort of line 5", got)
	}
}

func TestFaultSaysWhichMember(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		q := failed(t)
		got := load(t, Options{}, "package fourgate\n\ndecision := "+text+"\n").Decide(&q)
		if got.Fault == "" || !strings.Contains(got.Why, want) {
			t.Errorf("%s: fault %q because %q, want %q", text, got.Fault, got.Why, want)
		}
	}
	f(`{"action": "retri", "reason": "x"}`, "action: ")
	f(`{"action": "retry", "reason": "x", "delay_ms": "5"}`, "delay_ms: ")
	f(`{"action": "retry", "reason": "x", "gates": {"attempt_budget": "no"}}`, "gates: attempt_budget: ")
	f(`{"action": "retry"}`, "reason: missing")
	f(`{"action": "abort", "reason": "x"} if false`, "no rule of the entry point holds")
	f(`{"action": "abort", "reason": sprintf("%d", [1 / (input.failure.status - 503)])}`, "p.rego:3")
}
