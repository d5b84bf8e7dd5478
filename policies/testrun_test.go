package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// opa runs the real tool and returns what it printed. It exits with 2 if a test failed.
func opa(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	mod, err := filepath.Abs(filepath.Join("..", ".ci", "tools.mod"))
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), "go", append([]string{"tool", "-modfile=" + mod, "opa"}, args...)...).Output()
}

var testedFiles = map[string]string{
	"acme/a.rego": `package acme

import data.lists

default allowed := false

allowed if input.caller in lists.friends

limit := 5 if {
	input.caller == "slow"
} else := 10
`,
	"acme/a_test.rego": `package acme_test

import data.acme

test_friend if acme.allowed with input as {"caller": "ann"}

test_stranger if {
	got := acme.allowed with input as {"caller": "eve"}
	print("eve is", got)
	got == true
}

todo_test_later if false

test_table[name] if {
	some name, want in {"slow": 5, "other": 11}
	got := acme.limit with input as {"caller": name}
	got == want
}

test_error if {
	x := {"a": v | some v in [1, 2]}
	x.a == 1
}
`,
	"acme/lists.json":  `{"lists": {"friends": ["ann", "bob"]}}`,
	"acme/notes.txt":   "not loaded",
	"acme/deep/b.rego": "package acme.deep\n\nuseful := data.acme.allowed\n",
	"acme/deep/c_test.rego": `package acme.deep_test

test_deep if data.acme.deep.useful == false
`,
}

func TestTestsHaveTheSameOutcomesAsOPA(t *testing.T) {
	t.Parallel()
	f := func(coverage bool, dirs ...string) {
		t.Helper()
		type outcome struct{ Name, Outcome string }
		out, err := opa(t, append([]string{"test", "--format", "json"}, dirs...)...)
		var theirs []struct {
			Package, Name string
			Fail, Skip    bool
			Error         any
		}
		if jsonErr := json.Unmarshal(out, &theirs); jsonErr != nil {
			t.Fatalf("opa: %v, %v\n%s", err, jsonErr, out)
		}
		var want, got []outcome
		for _, r := range theirs {
			o := TestPassed
			switch {
			case r.Error != nil:
				o = TestErrored
			case r.Skip:
				o = TestSkipped
			case r.Fail:
				o = TestFailed
			}
			want = append(want, outcome{r.Package + "." + r.Name, string(o)})
		}
		for _, alone := range []bool{true, false} {
			report, err := RunTests(t.Context(), TestOptions{Paths: dirs, Alone: alone})
			if err != nil {
				t.Fatal(err)
			}
			got = nil
			for _, r := range report.Tests {
				got = append(got, outcome{r.Package + "." + r.Name, string(r.Outcome)})
			}
			byName := func(a, b outcome) int { return strings.Compare(a.Name, b.Name) }
			slices.SortFunc(want, byName)
			slices.SortFunc(got, byName)
			if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
				t.Errorf("%v alone %v (-opa +fourgate):\n%s", dirs, alone, diff)
			}
		}
		if !coverage {
			return
		}
		out, err = opa(t, append([]string{"test", "--coverage"}, dirs...)...)
		var covered struct{ Coverage float64 }
		if jsonErr := json.Unmarshal(out, &covered); jsonErr != nil {
			t.Fatalf("opa test --coverage: %v, %v\n%s", err, jsonErr, out)
		}
		report, err := RunTests(t.Context(), TestOptions{Paths: dirs, Alone: true, Coverage: true})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := fmt.Sprintf("%.1f", covered.Coverage), fmt.Sprintf("%.1f", report.Coverage.Percent); a != b {
			t.Errorf("%v: opa covers %s %%, fourgate %s %%", dirs, a, b)
		}
	}
	dir := directory(t, testedFiles)
	f(false, dir)
	f(true, filepath.Join(dir, "acme", "deep"), filepath.Join(dir, "acme", "a.rego"))
	f(false, ".")
}

func TestFailedTestSaysWhere(t *testing.T) {
	t.Parallel()
	dir := directory(t, testedFiles)
	file := filepath.Join(dir, "acme", "a_test.rego")
	for _, coverage := range []bool{false, true} {
		report, err := RunTests(t.Context(), TestOptions{Paths: []string{dir}, Run: "stranger|table", Coverage: coverage})
		if err != nil {
			t.Fatal(err)
		}
		for i := range report.Tests {
			report.Tests[i].Took = 0
		}
		want := []TestResult{
			{
				Package: "data.acme_test", Name: "test_stranger", File: file, Line: 7, Outcome: TestFailed, Output: "eve is false",
				Failure: &TestFailure{file, 10, "got == true", []string{"got = false"}},
			},
			{
				Package: "data.acme_test", Name: "test_table", File: file, Line: 15, Outcome: TestFailed,
				Cases: []TestCase{
					{Name: "other", Failed: true, Failure: &TestFailure{file, 18, "got == want", []string{"got = 10", "want = 11"}}},
					{Name: "slow"},
				},
			},
		}
		if diff := cmp.Diff(want, report.Tests); diff != "" {
			t.Errorf("coverage %v (-want +got):\n%s", coverage, diff)
		}
		if diff := cmp.Diff(TestTotals{Passed: 1, Failed: 2}, report.Totals()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCoverageNamesLines(t *testing.T) {
	t.Parallel()
	dir := directory(t, testedFiles)
	report, err := RunTests(t.Context(), TestOptions{Paths: []string{dir}, Run: "friend", Coverage: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := report.Coverage.Uncovered[0], (UncoveredLines{filepath.Join(dir, "acme", "a.rego"), 7, 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if p := report.Coverage.Percent; p < 10 || p > 50 {
		t.Errorf("coverage is %g", p)
	}
	for _, u := range report.Coverage.Uncovered {
		if strings.HasPrefix(u.File, builtinPrefix) {
			t.Errorf("coverage names the embedded file %s", u.File)
		}
	}
}

// Tests may use what the proxy puts beside the author's files.
func TestTestsBesideTheDefaultPolicy(t *testing.T) {
	t.Parallel()
	dir := directory(t, map[string]string{"p_test.rego": `package p_test

import data.fourgate.standard

test_standard if {
	d := standard.decision with input as {
		"request": {"idempotency": {"replay_safe": true, "effects": "none"}},
		"failure": {"class": "bad_request", "reason": "r", "completion": "none", "scope": "request", "status": 400},
		"phase": "before_output",
	}
	d.action == "abort"
}
`})
	f := func(alone bool, want TestTotals) {
		t.Helper()
		report, err := RunTests(t.Context(), TestOptions{Paths: []string{dir}, Alone: alone})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, report.Totals()); diff != "" {
			t.Errorf("alone %v: %s%+v", alone, diff, report.Tests)
		}
	}
	f(false, TestTotals{Passed: 1})
	f(true, TestTotals{Failed: 1})
}

func TestTestsThatCannotRun(t *testing.T) {
	t.Parallel()
	f := func(opts TestOptions, want string) {
		t.Helper()
		_, err := RunTests(context.Background(), opts)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(TestOptions{Paths: []string{t.TempDir()}, Run: "("}, `cannot use "(" to choose tests`)
	f(TestOptions{Paths: []string{t.TempDir()}, Profile: "kunawo"}, `cannot find policy profile "kunawo": there are ccrelay, kunavo`)
	f(TestOptions{Paths: []string{filepath.Join(t.TempDir(), "none")}}, "cannot find this path; name a directory")
	f(TestOptions{Paths: []string{directory(t, map[string]string{"a_test.rego": "package a\n\ntest_a if {"})}}, "a_test.rego:3:")
	f(TestOptions{Paths: []string{directory(t, map[string]string{"a_test.rego": "package a\n\ntest_a if http.send({})"})}}, "cannot use builtin http.send")
}
