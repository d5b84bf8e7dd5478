package matrix

import (
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// Facts are all that a policy is told beside what a cell says. They are the same for
// every cell. [Default] and [OfGroup] make them; [Facts.Set] changes one.
type Facts struct {
	question engine.Question // all but the failure and what is left of the budget
	failures [len(classes)]Typical
	wait     engine.Wait // every failure's Retry-After
	attempts int         // that the budget allows a request
}

// elapsed is how long a request has been under way when the matrix' failure is there.
const elapsed = time.Second

// noon is when the failures of the matrix happen: on a working day at midday, UTC, when
// no rule about nights and weekends is meant.
var noon = time.Date(2026, time.January, 14, 12, 0, 0, 0, time.UTC)

// Default are the facts where no configuration says others: a streamed chat request
// without tools that has failed on the first of two channels, one second after it came.
func Default() Facts {
	f := Facts{failures: typical(), attempts: 3}
	f.question = engine.Question{
		RequestID: "matrix", Caller: "anonymous", Contract: engine.Contract{Model: "model", Endpoint: engine.OpenAIChat},
		Stream: true, Idempotency: engine.Idempotency{Effects: engine.EffectsNone}, Now: noon,
		Group: "group", Channel: "first", Provider: "provider", Key: "main", RouteAttempts: 1,
		// The defaults of a budget block.
		Elapsed: elapsed, Remaining: 60*time.Second - elapsed, MinUseful: 2 * time.Second, Backoff: 100 * time.Millisecond,
		Same: true, Fallback: []string{"second"},
	}
	return f
}

// OfGroup are the facts of a request of the caller that has failed on the first channel
// of the group, in the order of its file.
func OfGroup(g *engine.Group, caller string) Facts {
	f := Default()
	q, budget := &f.question, g.Budget()
	f.attempts = budget.Attempts
	q.Caller, q.Group = caller, g.Name()
	q.Contract = engine.Contract{Model: g.Models()[0], Endpoint: g.Endpoints()[0]}
	q.MinUseful = budget.MinUseful
	q.Elapsed = min(elapsed, budget.Deadline/2)
	q.Remaining = budget.Deadline - q.Elapsed
	q.Backoff = min(budget.BackoffBase, budget.BackoffMax) / 2 // what full jitter gives on average
	q.Same = budget.PerRoute > 1
	q.Key, q.Fallback = "", nil
	for i, ch := range g.Channels() {
		if i > 0 {
			q.Fallback = append(q.Fallback, ch.Name())
			continue
		}
		q.Channel, q.Provider = ch.Name(), ch.Provider().Name()
		if keys := ch.Provider().Keys(); len(keys) > 0 {
			q.Key, q.SpareKey = keys[0].Name(), len(keys) > 1
		}
	}
	return f
}

// Question puts the facts and a cell together, as the engine does for a failed attempt.
func (f *Facts) Question(c engine.Cell) engine.Question {
	q := f.question
	t := f.failures[c.Class]
	q.Failure = engine.MakeFailure(c.Class, t.Scope, t.Reason, f.wait, t.Status, c.Phase, c.Completion)
	q.Idempotency.ReplaySafe = c.ReplaySafe
	q.Time, q.RetryBudget = true, true
	q.AttemptsUsed, q.AttemptsLeft = f.used(c.Budget)
	q.Seq = q.AttemptsUsed
	if c.Budget == engine.BudgetSpent {
		// No attempt is left for any route; the engine then names none.
		q.Same, q.SpareKey, q.Fallback = false, false, nil
	}
	return q
}

// used says how many attempts were made and how many are left where the budget has this
// mark. A budget of one or two attempts doesn't have all marks; then the next best is
// asked about, and [Facts.Absent] says so.
func (f *Facts) used(b engine.BudgetMark) (used, left int) {
	switch b {
	case engine.BudgetLeft:
		return 1, max(f.attempts-1, 2)
	case engine.BudgetLast:
		return max(f.attempts-1, 1), 1
	}
	return f.attempts, 0
}

// Absent says of a mark of the budget that no failure can have it, because the budget has
// too few attempts.
func (f *Facts) Absent(b engine.BudgetMark) bool {
	used, left := f.used(b)
	return used+left > f.attempts
}

// Typical is the failure that stands for the class.
func (f *Facts) Typical(c engine.Class) Typical { return f.failures[c] }
