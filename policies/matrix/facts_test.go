package matrix

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// A fact that is set is what the policy is told, in every cell.
func TestSetFacts(t *testing.T) {
	t.Parallel()
	cell := engine.Cell{Class: engine.ClassRateLimited, Completion: engine.CompletionNone, Budget: engine.BudgetLeft}
	f := func(assignment string, get func(engine.Question) any, want any) {
		t.Helper()
		facts := Default()
		if err := facts.Set(assignment); err != nil {
			t.Error(err)
			return
		}
		if diff := cmp.Diff(want, get(facts.Question(cell))); diff != "" {
			t.Errorf("%s: %s", assignment, diff)
		}
	}
	f("request.caller=batch", func(q engine.Question) any { return q.Caller }, "batch")
	f("request.endpoint=openai.images", func(q engine.Question) any { return q.Contract.Endpoint }, engine.OpenAIImages)
	f("request.tools=true", func(q engine.Question) any { return q.Tools }, true)
	f("request.idempotency.effects=unknown", func(q engine.Question) any { return q.Idempotency.Effects }, engine.EffectsUnknown)
	f("failure.status=0", func(q engine.Question) any { return q.Failure.Status() }, 0)
	f("failure.scope=model", func(q engine.Question) any { return q.Failure.Scope() }, engine.ScopeModel)
	f("failure.reason=tokens", func(q engine.Question) any { return q.Failure.Reason().String() }, "tokens")
	f("failure.retry_after_ms=7000", func(q engine.Question) any { d, _ := q.Failure.RetryAfter().Get(); return d }, 7*time.Second)
	f("budget.attempts=5", func(q engine.Question) any { return q.AttemptsLeft }, 4)
	f("budget.min_useful_ms=10", func(q engine.Question) any { return q.MinUseful }, 10*time.Millisecond)
	f("routes.fallback=b,c", func(q engine.Question) any { return q.Fallback }, []string{"b", "c"})
	f("routes.fallback=", func(q engine.Question) any { return q.Fallback }, []string(nil))
	f("now=2026-03-01T23:30:00+01:00", func(q engine.Question) any { return q.Now.UTC().Hour() }, 22)
}

func TestUnusableFacts(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "request.caller", "colour=red", "request.stream=1", "failure.status=-1", "failure.reason=Bad Reason", "failure.scope=all",
		"budget.attempts=99999999999999999999", "now=noon", "request.endpoint=chat",
	} {
		facts := Default()
		if err := facts.Set(bad); err == nil || !strings.HasPrefix(err.Error(), "cannot ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A budget of few attempts doesn't have every mark, and says so.
func TestAbsentMarks(t *testing.T) {
	t.Parallel()
	f := func(attempts string, want ...engine.BudgetMark) {
		t.Helper()
		facts := Default()
		if err := facts.Set("budget.attempts=" + attempts); err != nil {
			t.Fatal(err)
		}
		var got []engine.BudgetMark
		for _, b := range budgets {
			if facts.Absent(b) {
				got = append(got, b)
			}
			q := facts.Question(engine.Cell{Budget: b})
			if mark := engine.CellOf(&q).Budget; mark != b {
				t.Errorf("%s attempts: asked about %v for %v", attempts, mark, b)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s attempts: %s", attempts, diff)
		}
	}
	f("1", engine.BudgetLeft, engine.BudgetLast)
	f("2", engine.BudgetLeft)
	f("3")
	f("7")
}

// Whatever is set, questions stay in their cells and can be written.
func FuzzFacts(f *testing.F) {
	for _, name := range FactNames() {
		f.Add(name + "=1")
	}
	f.Add("routes.fallback=a,,b")
	f.Add("now=2026-01-14T12:00:00Z")
	f.Fuzz(func(t *testing.T, assignment string) {
		facts := Default()
		if facts.Set(assignment) != nil {
			return
		}
		for _, c := range Cells() {
			q := facts.Question(c)
			if got := engine.CellOf(&q); got != c {
				t.Fatalf("%q: %+v became %+v", assignment, c, got)
			}
		}
		var b strings.Builder
		facts.write(&b)
	})
}
