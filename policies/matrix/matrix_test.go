package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/policies"
)

var update = flag.Bool("update", false, "write the golden files anew")

func matrixOf(t testing.TB, o policies.Options, facts ...string) *Matrix {
	t.Helper()
	set, err := policies.Load(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	f := factsOf(t, facts...)
	answers, err := Ask(context.Background(), set, f, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Matrix{Policy: "embedded", Facts: f, Answers: answers}
}

func factsOf(t testing.TB, assignments ...string) Facts {
	t.Helper()
	f := Default()
	for _, a := range assignments {
		if err := f.Set(a); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// scripted answers by a function.
type scripted func(q *engine.Question) engine.Decision

func (s scripted) Decide(q *engine.Question) engine.Decision { return s(q) }

func asked(t *testing.T, name string, p engine.Policy) *Matrix {
	t.Helper()
	answers, err := Ask(context.Background(), p, Default(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Matrix{Policy: name, Facts: Default(), Answers: answers}
}

// golden compares with a file that a person has read.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; if that is meant, renew it with -update:\n%s", path, diff)
	}
}

// The reviewed decisions of the default policy. Facts that depend on no file are in it,
// so that a change of theirs is seen, too.
func TestGolden(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	m := matrixOf(t, policies.Options{})
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "matrix.golden", b.Bytes())
	lines := strings.Split(b.String(), "\n")
	if len(lines) > 50 {
		t.Errorf("%d lines are no screen any more", len(lines))
	}
	for _, line := range lines {
		if n := len([]rune(line)); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// With no other route the same policy retries.
func TestGoldenAlone(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := matrixOf(t, policies.Options{}, "routes.fallback=").WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "alone.golden", b.Bytes())
}

// The rows of the decision table in docs/policies.md, asked cell by cell. For every class
// of failure: what happens where all gates but the class' pass, with another route and
// with none, and the effect.
func TestAgreesWithTheDocumentedTable(t *testing.T) {
	t.Parallel()
	table := documentedTable(t)
	set, err := policies.Load(context.Background(), policies.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		documented string // how the row begins
		class      engine.Class
		facts      []string
		other      engine.Action // with another route
		alone      engine.Action
		effect     string
	}{
		{"caller's validation error", engine.ClassBadRequest, nil, engine.Abort, engine.Abort, "-"},
		{"gateway's own auth", engine.ClassDenied, nil, engine.Abort, engine.Abort, "-"},
		{"upstream credential", engine.ClassKeyFault, nil, engine.Fallback, engine.Abort, "cool_key 10m"},
		{"network failure", engine.ClassProviderTransient, []string{"failure.status=0", "failure.reason=network"}, engine.Fallback, engine.Retry, "count_failure"},
		{"429", engine.ClassRateLimited, nil, engine.Fallback, engine.Retry, "cool_key 10s"},
		{"500, 502", engine.ClassProviderTransient, nil, engine.Fallback, engine.Retry, "count_failure"},
		{"model missing", engine.ClassBadModel, nil, engine.Fallback, engine.Abort, "evict_model 10m"},
		{"answer invalid", engine.ClassSchemaInvalid, nil, engine.Fallback, engine.Abort, "quarantine_channel 5m (3x)"},
		{"answer invalid", engine.ClassContractViolation, nil, engine.Fallback, engine.Abort, "quarantine_channel 5m (3x)"},
		{"refusal", engine.ClassRefusal, nil, engine.Abort, engine.Abort, "-"},
		{"caller cancelled", engine.ClassCancelled, nil, engine.Abort, engine.Abort, "-"},
		{"unknown failure", engine.ClassUnknown, nil, engine.Abort, engine.Abort, "-"},
	} {
		columns := ""
		for _, line := range table {
			if strings.HasPrefix(line, "| "+row.documented) {
				columns = line
			}
		}
		if columns == "" {
			t.Errorf("docs/policies.md has no row %q", row.documented)
			continue
		}
		cells := strings.Split(columns, "|")
		if retried := strings.TrimSpace(cells[2]) != "no"; retried != (row.alone == engine.Retry) {
			t.Errorf("%s: documented retry %q, tested %v", row.documented, cells[2], row.alone)
		}
		if moved := strings.TrimSpace(cells[3]) == "yes"; moved != (row.other == engine.Fallback) {
			t.Errorf("%s: documented fallback %q, tested %v", row.documented, cells[3], row.other)
		}
		for _, alone := range []bool{false, true} {
			facts, want := row.facts, row.other
			if alone {
				facts, want = append(slices.Clone(facts), "routes.fallback="), row.alone
			}
			f := factsOf(t, facts...)
			for i := range perClass {
				c := cellAt(row.class, i)
				a := answer(set, &f, c)
				open := c.Phase != engine.AfterOutput && c.Completion != engine.CompletionPartial && c.Budget != engine.BudgetSpent &&
					(c.ReplaySafe || c.Completion == engine.CompletionNone)
				expected := engine.Abort
				if open {
					expected = want
				}
				if a.Decision.Action != expected || a.Interlock != engine.InterlockNone || a.Decision.Fault != "" {
					t.Errorf("%s, alone %v, %+v: got %s, want %v", row.documented, alone, c, a.marked(), expected)
				}
				// A rate-limited key that must make the retry isn't cooled.
				if e := a.effects(); e != row.effect && a.Decision.Action != engine.Retry {
					t.Errorf("%s, %+v: effects %s, want %s", row.documented, c, e, row.effect)
				}
			}
		}
	}
}

// documentedTable returns the lines of the decision table in docs/policies.md.
func documentedTable(t *testing.T) []string {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "policies.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(doc), "| failure | same-route retry | fallback | effect |\n")
	if !found {
		t.Fatal("docs/policies.md has no decision table")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	return strings.Split(table, "\n")
}

func TestAskEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	_, err := Ask(ctx, scripted(func(*engine.Question) engine.Decision { return engine.Decision{} }), Default(), nil, func(int, int) {
		if n++; n == 5 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || n != 5 {
		t.Errorf("after %d cells: %v", n, err)
	}
}

// Progress is told in the cells that are asked for.
func TestAskCountsWhatItAsks(t *testing.T) {
	t.Parallel()
	at, of := 0, 0
	p := scripted(func(*engine.Question) engine.Decision { return engine.Decision{} })
	_, err := Ask(context.Background(), p, Default(), []engine.Class{engine.ClassDenied}, func(done, all int) { at, of = done, all })
	if err != nil || at != perClass || of != perClass {
		t.Errorf("%d of %d were asked at last, want %d: %v", at, of, perClass, err)
	}
}

// Each question stands in its cell, and is one that the engine could ask.
func TestQuestionsStandInTheirCells(t *testing.T) {
	t.Parallel()
	f := Default()
	for _, c := range Cells() {
		q := f.Question(c)
		if got := engine.CellOf(&q); got != c {
			t.Errorf("the question about %+v stands in %+v", c, got)
		}
		if spent := c.Budget == engine.BudgetSpent; spent == q.Same || spent != (len(q.Fallback) == 0) {
			t.Errorf("%+v: routes %v %v", c, q.Same, q.Fallback)
		}
	}
}

// A policy that goes beyond the interlocks is shown with what stops it.
func TestOverruledAnswersAreMarked(t *testing.T) {
	t.Parallel()
	m := asked(t, "bold", scripted(func(*engine.Question) engine.Decision { return engine.Decision{Action: engine.Fallback} }))
	for _, a := range m.Answers {
		c := a.Cell
		may := c.Phase != engine.AfterOutput && c.Budget != engine.BudgetSpent && (c.ReplaySafe || c.Completion == engine.CompletionNone)
		if may && a.Interlock != engine.InterlockNone && c.Class != engine.ClassCancelled || !may && a.Interlock == engine.InterlockNone {
			t.Errorf("%+v: interlock %q", c, a.Interlock)
		}
	}
	var b bytes.Buffer
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fallback !effects", "fallback !budget", "An interlock overrules this answer"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, &b)
		}
	}
}

// A channel's name is the policy's own text; it must not reach a terminal as it is.
func TestTextOfPoliciesIsQuoted(t *testing.T) {
	t.Parallel()
	m := asked(t, "odd", always(engine.Decision{Action: engine.Fallback, Channel: "a\x00b\x1b[31m", Rule: "x\x1b.rego:1"}))
	var b bytes.Buffer
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x00\x1b") || !strings.Contains(b.String(), `"a\x00b\x1b[31m"`) {
		t.Errorf("got %q", b.String())
	}
}

func TestNoCells(t *testing.T) {
	t.Parallel()
	m := asked(t, "none", always(engine.Decision{}))
	m.Answers = Only(m.Answers, []engine.Action{engine.Retry})
	var b bytes.Buffer
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "none: no such cell\n") {
		t.Errorf("got %s", &b)
	}
	checkPage(t, pageOf(t, m), 0)
}

func TestJSON(t *testing.T) {
	t.Parallel()
	m := matrixOf(t, policies.Options{})
	var b bytes.Buffer
	if err := m.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Facts map[string]any
		Cells []struct {
			Class, Phase, Completion, Budget, Action, Reason, Rule string
			ReplaySafe                                             *bool `json:"replay_safe"`
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Cells) != Size || got.Facts["request.caller"] != "anonymous" || got.Facts["failures"] == nil {
		t.Fatalf("%d cells, facts %v", len(got.Cells), got.Facts)
	}
	for i, c := range got.Cells {
		a := m.Answers[i]
		want := []string{a.Cell.Class.String(), a.Cell.Phase.String(), a.Cell.Completion.String(), a.Cell.Budget.String(), a.Decision.Action.String(), a.Decision.Rule}
		if diff := cmp.Diff(want, []string{c.Class, c.Phase, c.Completion, c.Budget, c.Action, c.Rule}); diff != "" {
			t.Errorf("cell %d: %s", i, diff)
		}
		if c.ReplaySafe == nil || *c.ReplaySafe != a.Cell.ReplaySafe {
			t.Errorf("cell %d: replay_safe %v", i, c.ReplaySafe)
		}
	}
}

func BenchmarkMatrix(b *testing.B) {
	set, err := policies.Load(context.Background(), policies.Options{Memory: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		answers, err := Ask(context.Background(), set, Default(), nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		m := Matrix{Policy: "embedded", Facts: Default(), Answers: answers}
		if err := m.WriteText(new(bytes.Buffer)); err != nil {
			b.Fatal(err)
		}
	}
}
