package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

// TestTheLastErrorSaysWhatIsLacking: whoever reads that no route is left looks for channels
// that are out.
func TestTheLastErrorSaysWhatIsLacking(t *testing.T) {
	t.Parallel()
	f := func(name string, channels int, change func(*engine.Spec), outcome enginetest.Outcome, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spec(channels)
			change(&s)
			p := &play{outcomes: []enginetest.Outcome{outcome}, decisions: []engine.Decision{fallback}}
			if got := p.run(t, catalog(t, s)).Finish.Reply.Message; !strings.HasPrefix(got, want+` for model "m" after `) {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
	budget := func(attempts int, deadline time.Duration) func(*engine.Spec) {
		return func(s *engine.Spec) {
			b := &s.Groups[0].Budget
			b.Attempts, b.PerRoute, b.Deadline = attempts, 1, deadline
		}
	}
	f("routes", 2, budget(3, time.Minute), failing(503), "no route is left")
	f("attempts", 3, budget(2, time.Minute), failing(503), "no attempt is left")
	f("both", 2, budget(2, time.Minute), failing(503), "no route is left")
	f("time", 3, budget(3, 21*time.Second), silent, "no time is left")
	f("tokens", 3, func(s *engine.Spec) { s.RetryBudget = engine.RetryBudgetSpec{} }, failing(503), "the retry budget has no token left")
}
