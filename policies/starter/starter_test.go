package starter

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/policies"
)

func write(t *testing.T, profile string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "acme")
	files, err := Files("acme", "acme", profile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Content, f.Mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestStarterHasWhatAPolicyNeeds(t *testing.T) {
	t.Parallel()
	files, err := Files("acme", "policies/acme", "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
		if f.Name == "README.md" && !strings.Contains(string(f.Content), "\nfourgate policy test -v policies/acme\n") {
			t.Errorf("the README names another directory:\n%s", f.Content)
		}
	}
	want := []string{
		"README.md", "decision.jsonschema", "input.jsonschema", "policy.rego", "policy_test.rego",
		"route-decision.jsonschema", "route.jsonschema",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// The plain command must be content: these are the commands that the README shows.
func TestStarterPassesTheOPACommand(t *testing.T) {
	t.Parallel()
	mod, err := filepath.Abs(filepath.Join("..", "..", ".ci", "tools.mod"))
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, "")
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for line := range strings.Lines(string(readme)) {
		words, isOPA := strings.CutPrefix(strings.TrimSpace(line), "opa ")
		if !isOPA {
			continue
		}
		commands++
		args := append([]string{"tool", "-modfile=" + mod, "opa"}, strings.Fields(strings.ReplaceAll(words, "acme", dir))...)
		if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	if commands != 3 {
		t.Errorf("the README has %d opa commands, want 3", commands)
	}
}

func TestStarterIsFine(t *testing.T) {
	t.Parallel()
	for _, profile := range append([]string{""}, policies.Profiles()...) {
		dir := write(t, profile)
		checked, err := policies.Check(t.Context(), policies.Options{Paths: []string{dir}, Profile: profile}, true)
		if err != nil {
			t.Fatal(err)
		}
		if !checked.Fine() || len(checked.Data) > 0 {
			t.Errorf("profile %q: %+v", profile, checked)
		}
		for _, alone := range []bool{false, true} {
			tested, err := policies.RunTests(t.Context(), policies.TestOptions{Paths: []string{dir}, Profile: profile, Alone: alone, Coverage: true})
			if err != nil {
				t.Fatal(err)
			}
			if totals := tested.Totals(); totals != (policies.TestTotals{Passed: 5}) || tested.Coverage.Percent != 100 {
				t.Errorf("profile %q, alone %v: %+v, coverage %+v", profile, alone, totals, tested.Coverage)
			}
		}
	}
}

// Beside the real default policy it does what its tests say.
func TestStarterDecides(t *testing.T) {
	t.Parallel()
	for _, profile := range append([]string{""}, policies.Profiles()...) {
		set, err := policies.Load(t.Context(), policies.Options{Paths: []string{write(t, profile)}, Profile: profile})
		if err != nil {
			t.Fatal(err)
		}
		f := func(caller string, want engine.Action) {
			t.Helper()
			q, _, err := policies.ParsePartialQuestion([]byte(`{"request": {"caller": "`+caller+`", "idempotency": {"replay_safe": true}},
				"failure": {"class": "rate_limited", "scope": "key", "reason": "rate_limit", "status": 429, "completion": "none"}}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := set.Decide(&q); d.Action != want || d.Fault != "" {
				t.Errorf("profile %q, caller %s: got %+v, want %v", profile, caller, d, want)
			}
		}
		f("team-a", engine.Fallback)
		f("batch", engine.Abort)
	}
}

func TestRefusedNames(t *testing.T) {
	t.Parallel()
	f := func(name, profile, want string) {
		t.Helper()
		if _, err := Files(name, name, profile); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, profile %q: got %v, want %q", name, profile, err, want)
		}
	}
	f("", "", "1 to 64 characters")
	f(strings.Repeat("a", 65), "", "1 to 64 characters")
	f("Acme!", "", "use lower-case letters")
	f("1st", "", "begin with a letter")
	f("acme", "kunawo", `there is no profile "kunawo"; use one of ccrelay, kunavo`)
}
