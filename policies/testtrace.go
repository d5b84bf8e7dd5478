package policies

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// maxShown bounds a value in a failure's report, in bytes.
const maxShown = 300

// failedAt finds the expression that a test failed at: the last of its trace that did. Nil
// if the trace has none.
func failedAt(trace []*topdown.Event) *TestFailure {
	for _, e := range slices.Backward(trace) {
		if e.Op != topdown.FailOp || e.QueryID == 0 || !e.Location.HasFile() {
			continue
		}
		expr, ok := e.Node.(*ast.Expr)
		if !ok {
			continue
		}
		if _, every := expr.Terms.(*ast.Every); every {
			continue // the expression in its body says more
		}
		text := strings.TrimSpace(string(e.Location.Text))
		return &TestFailure{e.Location.File, e.Location.Row, text, variablesIn(text, e)}
	}
	return nil
}

// wordInText finds what may be a variable's name.
var wordInText = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// variablesIn lists the values of the variables that an expression names, in its order.
func variablesIn(text string, e *topdown.Event) []string {
	if e.Locals == nil {
		return nil
	}
	byName := map[string]ast.Value{}
	e.Locals.Iter(func(k, v ast.Value) bool {
		if name, ok := k.(ast.Var); ok {
			if known, rewritten := e.LocalMetadata[name]; rewritten {
				name = known.Name
			}
			byName[string(name)] = v
		}
		return false
	})
	var list []string
	for _, word := range wordInText.FindAllString(text, -1) {
		v, known := byName[word]
		if !known {
			continue
		}
		delete(byName, word)
		shown := v.String()
		if len(shown) > maxShown {
			shown = shown[:maxShown] + "…"
		}
		list = append(list, fmt.Sprintf("%s = %s", word, shown))
	}
	return list
}

// TestCoverage says which lines no test has evaluated, counted as the opa command does: test
// files count, too.
type TestCoverage struct {
	Percent   float64 // of the lines of all files
	Uncovered []UncoveredLines
}

// UncoveredLines are lines that follow each other, the last included.
type UncoveredLines struct {
	File        string
	First, Last int
}

// coverageOf reports on the user's own files.
func coverageOf(cov *cover.Cover, own map[string]*ast.Module) *TestCoverage {
	report := cov.Report(own)
	c := &TestCoverage{}
	covered, all := 0, 0
	for _, name := range slices.Sorted(maps.Keys(own)) {
		file := report.Files[name]
		if file == nil {
			continue
		}
		covered += file.CoveredLines
		all += file.CoveredLines + file.NotCoveredLines
		for _, r := range file.NotCovered {
			c.add(name, r.Start.Row, r.End.Row)
		}
	}
	if all > 0 {
		c.Percent = 100 * float64(covered) / float64(all)
	}
	return c
}

// add joins lines that touch; ranges come in order.
func (c *TestCoverage) add(file string, first, last int) {
	if n := len(c.Uncovered); n > 0 {
		if before := &c.Uncovered[n-1]; before.File == file && first <= before.Last+1 {
			before.Last = max(before.Last, last)
			return
		}
	}
	c.Uncovered = append(c.Uncovered, UncoveredLines{file, first, last})
}
