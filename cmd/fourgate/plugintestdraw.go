package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/fourgate-dev/fourgate/engine"
)

// gotForm, caseForm and resultsForm are the JSON of plugin test.
type gotForm struct {
	Class        string `json:"class"`
	Scope        string `json:"scope"`
	Reason       string `json:"reason"`
	Family       string `json:"family"`
	RetryAfterMS *int64 `json:"retry_after_ms"`
	Fault        string `json:"fault,omitempty"` // only there when the classifier gave no verdict
}

type caseForm struct {
	ID  string  `json:"id"`
	Got gotForm `json:"got"`
	OK  bool    `json:"ok"`
}

type resultsForm struct {
	Cases []caseForm `json:"cases"`
}

func resultsJSON(results []result) resultsForm {
	form := resultsForm{Cases: make([]caseForm, len(results))}
	for i := range results {
		r := &results[i]
		got := gotForm{
			Class: r.got.Class.String(), Scope: r.got.Scope.String(), Reason: r.got.Reason.String(),
			Family: engine.FamilyOf(r.got.Class, r.got.Scope).String(), Fault: r.got.Fault,
		}
		if d, given := r.got.RetryAfter.Get(); given {
			ms := d.Milliseconds()
			got.RetryAfterMS = &ms
		}
		form.Cases[i] = caseForm{r.ID, got, r.ok()}
	}
	return form
}

// total counts what was right.
type total struct{ cases, class, also, scope, waits, wait, right, unstable int }

func tally(results []result) total {
	var t total
	for i := range results {
		r := &results[i]
		t.cases++
		t.class += one(r.score.Class)
		t.also += one(r.score.Class && r.got.Class != r.Want.Class)
		t.scope += one(r.score.Scope)
		t.waits += one(r.Want.TestsWait)
		t.wait += one(r.Want.TestsWait && r.score.Wait)
		t.right += one(r.ok())
		t.unstable += one(r.unstable)
	}
	return t
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func percent(part, of int) float64 {
	if of == 0 {
		return 100
	}
	return 100 * float64(part) / float64(of)
}

// judge says whether a run has passed.
func (t total) judge(least shares, given bool) error {
	switch {
	case t.unstable > 0:
		return fmt.Errorf("%s got two verdicts; a classifier must say the same of the same failure", count(t.unstable, "case"))
	case !given && t.right < t.cases:
		return fmt.Errorf("%s of %d not right", count(t.cases-t.right, "case"), t.cases)
	case !given:
		return nil
	}
	var below []string
	for _, s := range []struct {
		name        string
		part, of    int
		atLeastThis float64
	}{{"class", t.class, t.cases, least.class}, {"scope", t.scope, t.cases, least.scope}, {"retry-after", t.wait, t.waits, least.wait}} {
		if got := percent(s.part, s.of); got < s.atLeastThis {
			below = append(below, fmt.Sprintf("%s is right in %.1f %%, below -min-%s %g", s.name, got, s.name, s.atLeastThis))
		}
	}
	if len(below) > 0 {
		return fmt.Errorf("%s", strings.Join(below, "; "))
	}
	return nil
}

// drawResults prints the confusion table, the misses and the totals.
func drawResults(w io.Writer, results []result, sum total) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", confusion(results))
	misses := false
	for i := range results {
		r := &results[i]
		if r.ok() {
			continue
		}
		if !misses {
			fmt.Fprintf(&b, "\nmisses:\n")
			misses = true
		}
		fmt.Fprintf(&b, "  %s: %s\n", r.ID, r.miss())
	}
	fmt.Fprintf(&b, "\n%s\nclass        %s", count(sum.cases, "case"), ratio(sum.class, sum.cases))
	if sum.also > 0 {
		fmt.Fprintf(&b, "  (%d of them as a listed alternative)", sum.also)
	}
	fmt.Fprintf(&b, "\nscope        %s\nretry-after  %s  (of the tested ones)\n", ratio(sum.scope, sum.cases), ratio(sum.wait, sum.waits))
	_, err := io.WriteString(w, b.String())
	return err
}

func ratio(part, of int) string {
	return fmt.Sprintf("%d of %d  %.1f %%", part, of, percent(part, of))
}

// miss says what was said and what should have been.
func (r *result) miss() string {
	var parts []string
	add := func(what, got, want string) { parts = append(parts, fmt.Sprintf("%s %s, want %s", what, got, want)) }
	if r.got.Fault != "" {
		parts = append(parts, "the classifier gave no verdict ("+r.got.Fault+")")
	}
	if !r.score.Class {
		want := []string{r.Want.Class.String()}
		for _, c := range r.Want.Also {
			want = append(want, c.String())
		}
		add("class", r.got.Class.String()+" ("+r.got.Reason.String()+")", strings.Join(want, " or "))
	}
	if !r.score.Scope {
		add("scope", r.got.Scope.String(), r.Want.Scope.String())
	}
	if !r.score.Wait {
		add("retry-after", waitText(r.got.RetryAfter), waitText(r.Want.RetryAfter))
	}
	if r.unstable {
		parts = append(parts, "a second run said something else")
	}
	return strings.Join(parts, "; ")
}

func waitText(w engine.Wait) string {
	if d, given := w.Get(); given {
		return d.String()
	}
	return "none"
}

// confusion is the table of expected classes against those that were given, without the
// classes that don't occur. A case of which no verdict was given counts as "fault".
func confusion(results []result) string {
	const fault = "fault"
	cells := map[[2]string]int{}
	rows, columns := map[string]bool{}, map[string]bool{}
	for i := range results {
		want, got := results[i].Want.Class.String(), results[i].got.Class.String()
		if results[i].got.Fault != "" {
			got = fault
		}
		cells[[2]string{want, got}]++
		rows[want], columns[got] = true, true
	}
	var order []string
	for c := engine.ClassUnknown; c <= engine.ClassOK; c++ {
		order = append(order, c.String())
	}
	order = append(order, fault)
	present := func(set map[string]bool) []string {
		return slices.DeleteFunc(slices.Clone(order), func(s string) bool { return !set[s] })
	}
	head := []any{`expected \ got`}
	for _, got := range present(columns) {
		head = append(head, got)
	}
	t := newTable(head...)
	t.Style().Format.Header = text.FormatDefault // classes are written in lower case
	for _, want := range present(rows) {
		row := table.Row{want}
		for _, got := range present(columns) {
			if n := cells[[2]string{want, got}]; n > 0 {
				row = append(row, n)
			} else {
				row = append(row, "·")
			}
		}
		t.AppendRow(row)
	}
	return t.Render()
}
