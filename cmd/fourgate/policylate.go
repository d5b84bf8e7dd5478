package main

import (
	"context"
	"fmt"

	"github.com/fourgate-dev/fourgate/engine"
)

// A policy without an end takes half a second for each question: it is late, and asked once
// more. Whoever has hundreds of questions gives up after so many late answers.
const (
	lateInRow = 3
	lateAtAll = 20
)

// lateError is why somebody has given up asking.
type lateError struct {
	n    int
	rule string // file:line; empty if no rule had held yet
}

func (e *lateError) Error() string {
	text := fmt.Sprintf("stopped after %s without an answer in time", count(e.n, "question"))
	if e.rule != "" {
		text += ": the rule is " + e.rule
	}
	return text + "; what it loops over must have an end, and little of it (policy.timeout is the limit of one answer)"
}

// untilLate asks policies until they have been late too often: then it ends a context with
// the reason, and says of whatever is still asked that the answer is late. It is for one goroutine.
type untilLate struct {
	policy engine.Policy // may be another for each question
	inRow  int           // so many late answers in a row are too many
	stop   context.CancelCauseFunc

	row, all int
	last     engine.Decision // the answer to everything, once it has stopped
	why      *lateError      // nil until then
}

// withLimit returns a context that ends when the asker gives up. The caller calls end.
func withLimit(ctx context.Context, p engine.Policy, inRow int) (limited context.Context, asker *untilLate, end func()) {
	limited, stop := context.WithCancelCause(ctx)
	return limited, &untilLate{policy: p, inRow: inRow, stop: stop}, func() { stop(nil) }
}

// Decide implements [engine.Policy].
func (u *untilLate) Decide(q *engine.Question) engine.Decision {
	if u.why != nil {
		return u.last
	}
	d := u.policy.Decide(q)
	if d.Fault != "timeout" {
		u.row = 0
		return d
	}
	u.row++
	u.all++
	if u.row >= u.inRow || u.all >= lateAtAll {
		u.why, u.last = &lateError{u.all, d.Rule}, d
		u.stop(u.why)
	}
	return d
}
