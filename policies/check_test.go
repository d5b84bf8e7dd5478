package policies

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckFindsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	dir := directory(t, map[string]string{
		"a.rego": `package fourgate

import data.fourgate.standard
import data.unused

decision := {"action": "abort", "reason": "batch"} if {
	input.failure.clas == "rate_limited"
} else := standard.decision
`,
		"b.rego":      "package acme.b\n\nx := http.send({})\n",
		"a_test.rego": "package fourgate_test\n\ntest_a if {\n\tx := 1\n\ttrue\n}\n",
		"c.rego":      "package acme.c\n\nx   :=   1\n",
		"data.json":   "{}",
	})
	r, err := Check(t.Context(), Options{Paths: []string{dir}}, true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range r.Problems {
		text, _, _ := strings.Cut(strings.TrimPrefix(p.String(), dir+string(filepath.Separator)), "\n")
		got = append(got, text)
	}
	want := []string{
		"a.rego:4:1: import data.unused unused",
		"a.rego:7:2: undefined ref: input.failure.clas",
		"a_test.rego:4:2: assigned var x unused",
		"b.rego:3:6: cannot use builtin http.send",
	}
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], w) {
			t.Errorf("problem %d: want %s\ngot %s", i, w, strings.Join(got, "\n"))
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d problems: %s", len(got), strings.Join(got, "\n"))
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "c.rego")}, r.Unformatted); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "data.json")}, r.Data); diff != "" {
		t.Error(diff)
	}
}

func TestCheckOfGoodPolicies(t *testing.T) {
	t.Parallel()
	f := func(opts Options, strict bool, want CheckReport) {
		t.Helper()
		r, err := Check(t.Context(), opts, strict)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, *r); diff != "" {
			t.Errorf("%v (-want +got):\n%s", opts.Paths, diff)
		}
	}
	dir := directory(t, map[string]string{
		"policy.rego":      "package fourgate\n\nimport data.fourgate.standard\n\ndecision := standard.decision\n",
		"policy_test.rego": "package fourgate_test\n\ntest_table[name] if {\n\tsome name in [\"a\"]\n\tprint(name)\n}\n",
		"loose.rego":       "package acme\n\nimport data.unused\n\nx := 1\n",
	})
	f(Options{Paths: []string{filepath.Join(dir, "policy.rego")}}, true, CheckReport{Files: 1, Rules: 1})
	f(Options{Paths: []string{dir}}, false, CheckReport{Files: 3, Rules: 2, Tests: 1})
}

func TestCheckOfNoPolicy(t *testing.T) {
	t.Parallel()
	r, err := Check(t.Context(), Options{Paths: []string{filepath.Join(t.TempDir(), "none")}}, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "cannot find this path; name a directory or a .rego file") {
		t.Errorf("got %v", r.Problems)
	}
}

func TestDefaultPolicyPassesItsOwnCheck(t *testing.T) {
	t.Parallel()
	r, err := Check(t.Context(), Options{Paths: []string{"."}}, true)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Fine() {
		t.Errorf("got %v, not formatted %v", r.Problems, r.Unformatted)
	}
}
