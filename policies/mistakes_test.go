package policies

import (
	"errors"
	flags "flag" // flag is a kind of field here
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flags.Bool("update", false, "write the golden files anew")

// mistakes are what people get wrong, each as a policy that must be refused.
var mistakes = []struct{ name, text string }{
	{"misspelt fact", `decision := {"action": "abort", "reason": input.failure.raison}`},
	{"misspelt fact of the route", `route := {"channels": [c.nam | some c in input.channels], "reason": "r"}`},
	{"fact of another question", `route := {"attempts": 1, "reason": "r"} if input.failure.status == 503`},
	{"body without if", "decision := {\"action\": \"abort\", \"reason\": \"r\"} {\n\tinput.failure.status == 503\n}"},
	{"denied builtin", `decision := {"action": "abort", "reason": "r"} if time.now_ns() > 1`},
	{"misspelt builtin", `decision := {"action": "abort", "reason": uppr("r")}`},
	{"wrong type", `decision := {"action": "abort", "reason": upper(input.failure.status)}`},
	{"wrong comparison", `decision := {"action": "abort", "reason": "r"} if input.failure.status == "503"`},
	{"too many arguments", `decision := {"action": "abort", "reason": lower("r", "s")}`},
	{"fact without input", `decision := {"action": "abort", "reason": "r"} if status == 503`},
	{"variable set twice", "decision := {\"action\": \"abort\", \"reason\": \"r\"} if {\n\tx := 1\n\tx := 2\n}"},
	{"two defaults", "default decision := {}\n\ndefault decision := {}"},
	{"recursion", `decision := decision`},
	{"misspelt decision", `decison := {"action": "abort", "reason": "r"}`},
	{"misspelt package", "import data.fourgate.standrad\n\ndecision := standrad.decision"},
	{"misspelt rule", "import data.fourgate.standard\n\ndecision := standard.decison"},
	{"name of a package", "decision := {\"action\": \"abort\", \"reason\": \"r\"}\n\ngates := {}"},
	{"or as elsewhere", `decision := {"action": "abort", "reason": "r"} if input.failure.status == 503 || input.stream`},
	{"and as elsewhere", `decision := {"action": "abort", "reason": "r"} if input.failure.status == 503 and input.stream`},
	{"single quotes", `decision := {'action': 'abort', 'reason': 'r'}`},
	{"open brace", `decision := {"action": "abort", "reason": "r" if input.failure.status == 503`},
	{"misspelt schema", "# METADATA\n# schemas:\n#   - input: schema.inputs\ndecision := {\"action\": \"abort\", \"reason\": \"r\"}"},
	{"unification", "decision := {\"action\": \"abort\", \"reason\": y} if {\n\tx := input.failure.reason\n\ty = x\n}"},
}

// Every diagnostic has file, line and column, and says what to write instead.
func TestMistakes(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	show := func(name, text string, err error) {
		t.Helper()
		var refused *LoadError
		if !errors.As(err, &refused) {
			t.Errorf("%s: got %v, want it refused", name, err)
			return
		}
		fmt.Fprintf(&got, "== %s\n%s\n--\n", name, strings.TrimSpace(text))
		for _, p := range refused.Problems {
			fmt.Fprintf(&got, "%s\n", p)
			if text != "" && (p.File != "p.rego" || p.Line == 0 || p.Col == 0) {
				t.Errorf("%s: the problem %q has no place", name, p)
			}
			if text != "" && p.Hint == "" {
				t.Errorf("%s: the problem %q has no hint", name, p)
			}
		}
		got.WriteString("\n")
	}
	for _, m := range mistakes {
		text := "package fourgate\n\n" + m.text + "\n"
		_, err := Load(t.Context(), Options{Modules: map[string]string{"p.rego": text}})
		show(m.name, text, err)
	}
	_, err := Load(t.Context(), Options{Modules: map[string]string{"p.rego": "decision := 1\n"}})
	show("no package", "decision := 1", err)
	_, err = Load(t.Context(), Options{Query: "data.fourgate.decison"})
	show("misspelt query", "", err)
	_, err = Load(t.Context(), Options{Params: map[string]any{"cool_max": 1, "same_route_retry": "always"}})
	show("misspelt param", "", err)
	_, err = Load(t.Context(), Options{Profile: "studihub"})
	show("misspelt profile", "", err)

	const golden = "testdata/mistakes.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the diagnostics have changed; look at them and run with -update (-want +got):\n%s", diff)
	}
}
