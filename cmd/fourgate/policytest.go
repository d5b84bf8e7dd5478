package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/policies"
)

func policyTestCommand(e *env) *cobra.Command {
	var opts policies.TestOptions
	var verbose, withDefaults, asJSON bool
	var threshold float64
	cmd := &cobra.Command{
		Use: "test [-v] [-run REGEX] [-coverage] [-threshold N] PATH...", Short: "Run the tests of policies", Args: args(cobra.MinimumNArgs(1)),
		Long: "Run the rules named test_* with OPA's own tester, without needing the opa command. Outcomes are those\n" +
			"of 'opa test' on the same files, with two differences: only the builtins that a policy may call exist,\n" +
			"and tests may use the default policy's packages, such as data.fourgate.standard, where the files don't\n" +
			"have them (-with-defaults=false leaves those out). The exit code is 1 if a test fails, cannot be evaluated or\n" +
			"is skipped (todo_test_*); opa exits with 2 then.",
		RunE: func(cmd *cobra.Command, list []string) error {
			if !(threshold >= 0 && threshold <= 100) {
				return usageError{fmt.Errorf("-threshold is %g; use a percentage from 0 to 100", threshold)}
			}
			if _, err := regexp.Compile(opts.Run); err != nil {
				return usageError{fmt.Errorf("cannot use %q to choose tests: %w", opts.Run, err)}
			}
			for _, name := range list {
				if strings.HasSuffix(name, bundleSuffix) {
					return usageError{fmt.Errorf("cannot test the bundle %s: test the directory that it is built from", name)}
				}
			}
			opts.Paths, opts.Alone = list, !withDefaults
			opts.Coverage = opts.Coverage || threshold > 0
			r, err := policies.RunTests(cmd.Context(), opts)
			var refused *policies.LoadError
			switch {
			case errors.As(err, &refused):
				diags := sourceDiagnostics(err)
				diags.Illustrate(hcl.Environment{LookupEnv: e.lookup})
				diags.Sort()
				if err := report(e.stderr, diags, false); err != nil {
					return err
				}
				return fmt.Errorf("cannot run tests: %s in %s", count(len(diags), "error"), strings.Join(list, ", "))
			case err != nil:
				return err
			case asJSON:
				err = json.NewEncoder(e.stdout).Encode(testsJSON(r))
			default:
				err = drawTests(e.stdout, r, verbose)
			}
			if err != nil {
				return err
			}
			return testVerdict(r, threshold)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&verbose, "verbose", "v", false, "also list the tests that pass")
	flags.StringVar(&opts.Run, "run", "", "only tests whose full name, such as data.acme_test.test_limit, matches this regular expression")
	flags.BoolVar(&opts.Coverage, "coverage", false, "say how much of the files the tests evaluate, and which lines they don't")
	flags.Float64Var(&threshold, "threshold", 0, "fail if the coverage is below this percentage")
	flags.BoolVar(&withDefaults, "with-defaults", true, "the default policy's packages stand beside the files")
	flags.StringVar(&opts.Profile, "profile", "", "the policy beside the files is this profile: "+strings.Join(policies.Profiles(), ", "))
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// testVerdict is the error that a report amounts to, if any.
func testVerdict(r *policies.TestReport, threshold float64) error {
	t := r.Totals()
	var wrong []string
	for _, c := range []struct {
		n    int
		what string
	}{{t.Failed, "failed"}, {t.Errored, "could not be evaluated"}, {t.Skipped, "skipped"}} {
		if c.n > 0 {
			wrong = append(wrong, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if r.Coverage != nil && r.Coverage.Percent < threshold {
		wrong = append(wrong, fmt.Sprintf("coverage %.1f %% is below -threshold %g", r.Coverage.Percent, threshold))
	}
	switch {
	case len(wrong) > 0:
		return errors.New(strings.Join(wrong, ", "))
	case len(r.Tests) == 0:
		return errors.New("there is no test; write rules named test_… in files named …_test.rego, and check -run")
	}
	return nil
}

func drawTests(w io.Writer, r *policies.TestReport, verbose bool) error {
	var b strings.Builder
	for i := range r.Tests {
		if t := &r.Tests[i]; verbose || t.Outcome != policies.TestPassed {
			drawTest(&b, t, verbose)
		}
	}
	t := r.Totals()
	all := t.Passed + t.Failed + t.Skipped + t.Errored
	fmt.Fprintf(&b, "%d of %s passed\n", t.Passed, count(all, "test"))
	if c := r.Coverage; c != nil {
		fmt.Fprintf(&b, "coverage %.1f %%\n", c.Percent)
		for _, u := range c.Uncovered {
			if u.First == u.Last {
				fmt.Fprintf(&b, "  not covered: %s:%d\n", u.File, u.First)
			} else {
				fmt.Fprintf(&b, "  not covered: %s:%d-%d\n", u.File, u.First, u.Last)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func drawTest(b *strings.Builder, t *policies.TestResult, verbose bool) {
	fmt.Fprintf(b, "%-7s %s.%s  %s:%d\n", t.Outcome, t.Package, t.Name, t.File, t.Line)
	for _, c := range t.Cases {
		switch {
		case c.Failed:
			fmt.Fprintf(b, "  case %s failed\n", c.Name)
			drawTestFailure(b, c.Failure)
		case verbose:
			fmt.Fprintf(b, "  case %s\n", c.Name)
		}
	}
	drawTestFailure(b, t.Failure)
	if t.Error != "" {
		fmt.Fprintf(b, "    %s\n", t.Error)
	}
	if t.Output != "" {
		fmt.Fprintf(b, "    printed: %s\n", strings.ReplaceAll(t.Output, "\n", "\n             "))
	}
}

func drawTestFailure(b *strings.Builder, f *policies.TestFailure) {
	if f == nil {
		return
	}
	fmt.Fprintf(b, "    %s:%d: %s\n", f.File, f.Line, strings.ReplaceAll(f.Expression, "\n", "\n    "))
	for _, where := range f.Where {
		fmt.Fprintf(b, "      where %s\n", where)
	}
}

// testsForm is the JSON of policy test.
type testsForm struct {
	Tests    []testForm    `json:"tests"`
	Passed   int           `json:"passed"`
	Failed   int           `json:"failed"`
	Skipped  int           `json:"skipped"`
	Errored  int           `json:"errored"`
	Coverage *coverageForm `json:"coverage,omitempty"`
}

type testForm struct {
	Package  string        `json:"package"`
	Name     string        `json:"name"`
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Outcome  string        `json:"outcome"`
	MS       float64       `json:"ms"`
	Cases    []caseOfTest  `json:"cases,omitempty"`
	FailedAt *failedAtForm `json:"failed_at,omitempty"`
	Error    string        `json:"error,omitempty"`
	Output   string        `json:"output,omitempty"`
}

type caseOfTest struct {
	Name     string        `json:"name"`
	Outcome  string        `json:"outcome"`
	FailedAt *failedAtForm `json:"failed_at,omitempty"`
}

type failedAtForm struct {
	File       string   `json:"file"`
	Line       int      `json:"line"`
	Expression string   `json:"expression"`
	Where      []string `json:"where,omitempty"`
}

type coverageForm struct {
	Percent   float64         `json:"percent"`
	Uncovered []uncoveredForm `json:"uncovered"`
}

type uncoveredForm struct {
	File  string `json:"file"`
	First int    `json:"first"`
	Last  int    `json:"last"`
}

func testsJSON(r *policies.TestReport) testsForm {
	t := r.Totals()
	form := testsForm{Tests: []testForm{}, Passed: t.Passed, Failed: t.Failed, Skipped: t.Skipped, Errored: t.Errored}
	for i := range r.Tests {
		t := &r.Tests[i]
		one := testForm{
			Package: t.Package, Name: t.Name, File: t.File, Line: t.Line, Outcome: string(t.Outcome), MS: ms(t.Took),
			FailedAt: failedAtJSON(t.Failure), Error: t.Error, Output: t.Output,
		}
		for _, c := range t.Cases {
			outcome := policies.TestPassed
			if c.Failed {
				outcome = policies.TestFailed
			}
			one.Cases = append(one.Cases, caseOfTest{c.Name, string(outcome), failedAtJSON(c.Failure)})
		}
		form.Tests = append(form.Tests, one)
	}
	if c := r.Coverage; c != nil {
		form.Coverage = &coverageForm{Percent: c.Percent, Uncovered: []uncoveredForm{}}
		for _, u := range c.Uncovered {
			form.Coverage.Uncovered = append(form.Coverage.Uncovered, uncoveredForm(u))
		}
	}
	return form
}

func failedAtJSON(f *policies.TestFailure) *failedAtForm {
	if f == nil {
		return nil
	}
	form := failedAtForm(*f)
	return &form
}
