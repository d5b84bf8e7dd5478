package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/loader"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"
)

// TestOptions say which tests of policies to run.
type TestOptions struct {
	// Paths are files and directories. As for the opa command, everything below a
	// directory counts: *.rego, and *.json and *.yaml as data.
	Paths []string
	// Profile names the embedded policy beside the files, as in [Options].
	Profile string
	// Run is a regular expression for the full names of tests, such as
	// data.fourgate_test.test_batch; empty means all.
	Run string
	// Alone leaves out the embedded packages, as the opa command does. With them a test
	// may use data.fourgate.standard and the gates, where the files don't have them.
	Alone bool
	// Coverage says which lines no test has evaluated.
	Coverage bool
}

// TestOutcome is what came of a test.
type TestOutcome string

// The outcomes, as the opa command has them.
const (
	TestPassed  TestOutcome = "pass"
	TestFailed  TestOutcome = "fail"
	TestSkipped TestOutcome = "skipped" // its name begins with todo_
	TestErrored TestOutcome = "error"   // it could not be evaluated
)

// TestResult is what came of one test rule.
type TestResult struct {
	Package, Name string
	File          string
	Line          int
	Outcome       TestOutcome
	Took          time.Duration
	Cases         []TestCase   // of a rule that tests a table, by name
	Failure       *TestFailure // where a failed rule without cases failed
	Error         string       // of an errored test
	Output        string       // what it has printed
}

// TestCase is one line of a table.
type TestCase struct {
	Name    string
	Failed  bool
	Failure *TestFailure
}

// TestFailure is the expression that was undefined or false.
type TestFailure struct {
	File       string
	Line       int
	Expression string
	Where      []string // the expression's variables, as `name = value`
}

// TestReport is what came of all tests, by file and line.
type TestReport struct {
	Tests    []TestResult
	Coverage *TestCoverage // nil unless it was asked for
}

// TestTotals count as the opa command does: of a rule with cases each case.
type TestTotals struct{ Passed, Failed, Skipped, Errored int }

// Totals counts the outcomes.
func (r *TestReport) Totals() TestTotals {
	var t TestTotals
	for i := range r.Tests {
		test := &r.Tests[i]
		switch {
		case test.Outcome == TestSkipped:
			t.Skipped++
		case test.Outcome == TestErrored:
			t.Errored++
		case len(test.Cases) > 0:
			for _, c := range test.Cases {
				if c.Failed {
					t.Failed++
				} else {
					t.Passed++
				}
			}
		case test.Outcome == TestFailed:
			t.Failed++
		default:
			t.Passed++
		}
	}
	return t
}

// RunTests runs the tests of policies in this process, with the same outcomes as `opa
// test`, but for one thing: only the builtins that a policy may call exist. Its error is a
// [*LoadError] if the files can't be compiled.
func RunTests(ctx context.Context, opts TestOptions) (*TestReport, error) {
	if _, err := regexp.Compile(opts.Run); err != nil {
		return nil, fmt.Errorf("cannot use %q to choose tests: %w", opts.Run, err)
	}
	if known := Profiles(); opts.Profile != "" && !slices.Contains(known, opts.Profile) {
		return nil, fmt.Errorf("cannot find policy profile %q: there are %s", opts.Profile, strings.Join(known, ", "))
	}
	report := &TestReport{}
	results, err := opts.run(ctx, opts.Coverage, report)
	if err != nil {
		return nil, err
	}
	if opts.Coverage && slices.ContainsFunc(results, func(r *tester.Result) bool { return r.Fail }) {
		// The tester can't cover and trace in one run, and a failure without its place is
		// half an answer.
		if results, err = opts.run(ctx, false, nil); err != nil {
			return nil, err
		}
	}
	for _, r := range results {
		report.Tests = append(report.Tests, testResult(r))
	}
	slices.SortFunc(report.Tests, func(a, b TestResult) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name))
	})
	return report, nil
}

// run runs the tests once, and fills in the report's coverage if that is wanted.
func (opts *TestOptions) run(ctx context.Context, covered bool, report *TestReport) ([]*tester.Result, error) {
	var ps problems
	ps.checkPaths(opts.Paths)
	if err := ps.failed(); err != nil {
		return nil, err
	}
	own, store, err := tester.LoadWithParserOptions(opts.Paths, ps.unfit, ast.ParserOptions{
		ProcessAnnotation: true, RegoVersion: ast.RegoV1, Capabilities: capabilities(),
	})
	if err != nil {
		return nil, ps.fromLoader(err)
	}
	ps.checkShape(own)
	if err := ps.failed(); err != nil {
		return nil, err
	}
	all := maps.Clone(own)
	if !opts.Alone {
		for name, m := range ps.parse(nil, opts.Profile) {
			if !modules(own).replace(m.Package.Path) {
				all[name] = m
			}
		}
	}
	txn, err := store.NewTransaction(ctx, storage.WriteParams)
	if err != nil {
		return nil, fmt.Errorf("cannot run tests: %w", err)
	}
	defer store.Abort(ctx, txn)
	compiler := ast.NewCompiler().
		SetErrorLimit(0).
		WithPathConflictsCheck(storage.NonEmpty(ctx, store, txn)).
		WithEnablePrintStatements(true).
		WithCapabilities(testCapabilities()).
		WithUseTypeCheckAnnotations(true).
		WithStageAfterID(ps.weights())
	runner := tester.NewRunner().SetCompiler(compiler).SetStore(store).SetModules(all).Filter(opts.Run)
	var cov *cover.Cover
	if covered {
		cov = cover.New()
		runner.SetCoverageQueryTracer(cov).SetCoverageRuns(nil)
	} else {
		runner.EnableTracing(true)
	}
	found, err := runner.RunTests(ctx, txn)
	if err != nil {
		if len(ps) == 0 {
			ps.fromOPA("", err)
		}
		return nil, ps.failed()
	}
	var results []*tester.Result
	for r := range found {
		results = append(results, r)
	}
	if covered {
		report.Coverage = coverageOf(cov, own)
	}
	return results, ctx.Err()
}

// checkPaths finds paths that aren't there.
func (ps *problems) checkPaths(paths []string) {
	for _, root := range paths {
		if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
			ps.add(root, "cannot find this path; name a directory or a .rego file that exists")
		}
	}
}

// unfit keeps files from OPA's loader that it, or the parser behind it, would never end
// with, and notes why. It is a [loader.Filter].
func (ps *problems) unfit(name string, info fs.FileInfo, _ int) bool {
	switch {
	case info.IsDir():
		return false
	case filepath.Ext(name) == ".rego":
		text, ok := ps.readFile(name, info)
		return !ok || !ps.checkNesting(name, text)
	case !info.Mode().IsRegular():
		ps.add(name, "cannot read this: it is a pipe or a device; remove it, or name the files one by one")
	case info.Size() > maxData:
		ps.add(name, "cannot use a data file of %d bytes; the limit is %d", info.Size(), maxData)
	default:
		return false
	}
	return true
}

// testCapabilities are a policy's and what OPA's tester itself calls in a table's rules.
func testCapabilities() *ast.Capabilities {
	c := ofOwn(capabilities())
	c.Builtins = append(c.Builtins, ast.InternalTestCase)
	return c
}

// fromLoader turns what OPA's loader says into problems, where it has places.
func (ps *problems) fromLoader(err error) error {
	var list loader.Errors
	if !errors.As(err, &list) {
		list = loader.Errors{err}
	}
	for _, one := range list {
		ps.fromOPA("", one)
	}
	return ps.failed()
}

func testResult(r *tester.Result) TestResult {
	t := TestResult{
		Package: r.Package, Name: r.Name, Outcome: TestPassed, Took: r.Duration,
		Output: strings.TrimRight(string(r.Output), "\n"),
	}
	if r.Location != nil {
		t.File, t.Line = r.Location.File, r.Location.Row
	}
	switch {
	case r.Error != nil:
		t.Outcome, t.Error = TestErrored, r.Error.Error()
	case r.Skip:
		t.Outcome = TestSkipped
	case r.Fail:
		t.Outcome = TestFailed
	}
	for name, sub := range r.SubResults.Iter {
		if len(sub.SubResults) > 0 {
			continue
		}
		c := TestCase{Name: strings.Join(name, "/"), Failed: sub.Fail}
		if sub.Fail {
			c.Failure = failedAt(sub.Trace)
		}
		t.Cases = append(t.Cases, c)
	}
	if t.Outcome == TestFailed && len(t.Cases) == 0 {
		t.Failure = failedAt(r.Trace)
	}
	return t
}
