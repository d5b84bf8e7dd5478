package hcl

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fourgate-dev/fourgate/engine"
)

const digest = "0000000000000000000000000000000000000000000000000000000000000001"

// What isn't there is reported in the run that reports everything else, each with its
// place, and what is there can be checked in spite of it.
func TestNamedInSpiteOfErrors(t *testing.T) {
	t.Parallel()
	cfg, named, diags := LoadNamed("x.hcl", inMemory(map[string]string{
		"here.rego": "package fourgate", "here.wasm": "",
		"x.hcl": fmt.Sprintf(`server {
  listn = "127.0.0.1:1"
}
classifier "good" {
  module = "here.wasm"
  sha256 = %[1]q
}
classifier "gone" {
  module = "gone.wasm"
  sha256 = %[1]q
}
classifier "candidate_gone" {
  module = "builtin:openai"
  shadow {
    module = "gone.wasm"
    sha256 = %[1]q
  }
}
classifier "misspelt" {
  module = "builtin:openai"
  memori = "1MiB"
}
classifier "layout_gone" {
  module = "oci-layout://gone@sha256:%[1]s"
}
policy {
  query = "data.house.decision"
  paths = [
    "here.rego",
    "gone.rego",
  ]
}
`, digest)}))
	if cfg != nil {
		t.Error("a configuration in spite of errors")
	}
	want := []string{
		"2 error: Unknown argument",
		"9 error: Module cannot be read",
		"15 error: Module cannot be read",
		"21 error: Unknown argument",
		"24 error: Module cannot be read",
		"30 error: Policy path cannot be read",
	}
	var got []string
	for _, line := range found(diags) {
		if line != "1 error: No route group" {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, picture(t, diags))
	}
	if len(named.Policies) != 1 || !named.Policies[0].Partial {
		t.Fatalf("%+v", named)
	}
	if diff := cmp.Diff([]string{"here.rego"}, named.Policies[0].Policy.Paths); diff != "" {
		t.Error(diff)
	}
	var classifiers []string
	for _, c := range named.Classifiers {
		classifiers = append(classifiers, c.Name)
	}
	if diff := cmp.Diff([]string{"good"}, classifiers); diff != "" {
		t.Error(diff)
	}
	const drawn = "Error: Wrong\n\n  on x.hcl line 5, column 12, in classifier \"good\":\n   5:   module = \"here.wasm\"\n\nSo it is.\n\n"
	if diff := cmp.Diff(drawn, picture(t, Diagnostics{named.ModuleError("good", "Wrong", "So it is.")})); diff != "" {
		t.Error(diff)
	}
}

// A good configuration names all of it, and one that was never read nothing.
func TestNamed(t *testing.T) {
	t.Parallel()
	cfg, named, _ := LoadNamed("testdata/valid/full.hcl", testEnvironment())
	want := Named{
		Policies: []NamedPolicy{
			{Policy: cfg.Policy}, {Group: "gpt-4o", Policy: cfg.PolicyOf("gpt-4o")}, {Group: "gpt-4.1", Policy: cfg.PolicyOf("gpt-4.1")},
		},
		Classifiers: cfg.Classifiers, Ledger: &cfg.Ledger, Server: &cfg.Server,
	}
	if diff := cmp.Diff(want, named, cmpopts.IgnoreUnexported(Named{}), cmp.AllowUnexported(engine.Secret{}), cmp.Comparer(func(a, b *time.Location) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	where := func(group, argument string, line int) {
		t.Helper()
		if got := named.PolicyError(group, argument, "Wrong", "So it is."); got.Line != line || got.Severity != Error {
			t.Errorf("%s of %q: %s, want line %d", argument, group, got, line)
		}
	}
	line := lineIn(t, "testdata/valid/full.hcl")
	where("gpt-4.1", "profile", line(`profile  = "kunavo"`))
	where("gpt-4.1", "shadow.profile", line(`profile = "ccrelay"`))
	where("gpt-4.1", "query", line(`query    = "data.house.decision"`)) // its own block has none
	where("gpt-4.1", "shadow.paths", line("    shadow {"))
	where("", "paths", line(`paths    =`))
	where("other", "", line("policy {\n  paths"))
	if _, named, _ := LoadNamed("gone.hcl", testEnvironment()); named.Policies != nil || named.Classifiers != nil {
		t.Errorf("%+v", named)
	}
}

// On the file system a directory is no module, and a missing path is missing.
func TestReach(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, want := range map[string]bool{dir: true, "named_test.go": false} {
		if isDir, err := (Environment{}).reach(path); err != nil || isDir != want {
			t.Errorf("%s: %t, %v", path, isDir, err)
		}
	}
	if _, err := (Environment{}).reach(dir + "/gone"); err == nil {
		t.Error("a missing file can be read")
	}
	_, diags := Load("x.hcl", Environment{
		ReadDir: testEnvironment().ReadDir,
		ReadFile: func(string) ([]byte, error) {
			return []byte("classifier \"x\" {\n  module = \"testdata\"\n  sha256 = \"" + digest + "\"\n}\n"), nil
		},
	})
	if got := found(diags); len(got) == 0 || got[len(got)-1] != "2 error: Module cannot be read" {
		t.Errorf("a directory is a module: %v", got)
	}
}

// lineIn finds the last line of a file with a text in it.
func lineIn(t *testing.T, path string) func(text string) int {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) int {
		before, _, _ := strings.Cut(string(src), text)
		if at := strings.LastIndex(string(src), text); at >= 0 {
			before = string(src)[:at]
		}
		return strings.Count(before, "\n") + 1
	}
}

// A candidate that is a profile can stand beside a policy with words of its own.
func TestProfileTakesNoStrangersParams(t *testing.T) {
	t.Parallel()
	for name, outer := range map[string]string{"files": `paths = ["here.rego"]`, "the default": ``} {
		_, named, _ := LoadNamed("x.hcl", inMemory(map[string]string{
			"here.rego": "package fourgate",
			"x.hcl": fmt.Sprintf(`policy {
  %s
  params = { regions = ["eu"] }
  shadow {
    profile = "kunavo"
    params  = { retry_on_network = false }
  }
}
`, outer)}))
		want := map[string]any{"retry_on_network": false}
		if name == "the default" {
			want["regions"] = []any{"eu"}
		}
		if diff := cmp.Diff(want, named.Policies[0].Policy.Shadow.Params); diff != "" {
			t.Errorf("beside %s (-want +got):\n%s", name, diff)
		}
	}
}
