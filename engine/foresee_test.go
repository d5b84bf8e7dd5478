package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

// foresight counts how often the facts of a question told what a call would do.
type foresight struct {
	told, untold int
	seen         map[engine.Interlock]int
}

// misforeseen names the first decision of a trace that the call took otherwise than
// Foresee says, where the facts of the question tell.
func (f *foresight) misforeseen(asked []enginetest.Asked) string {
	for _, a := range asked {
		q, d := &a.Question, a.Decision
		if hidden(q, d) {
			f.untold++
			continue
		}
		f.told++
		lock := engine.Foresee(q, d)
		f.seen[lock]++
		wait, follows := engine.Follows(q, d)
		if lock != a.Interlock || follows != a.Follows {
			return fmt.Sprintf("foresee: interlock %q and follows %v (after %v), the call has %q and %v\nquestion %+v\ndecision %+v",
				lock, follows, wait, a.Interlock, a.Follows, *q, d)
		}
	}
	return ""
}

// hidden says whether a call may do with a decision what the facts don't tell:
//   - a bar may end during a delay, and tokens of the retry budget may come in;
//   - routes.same doesn't say what is missing: an attempt on this channel, a key, or the
//     breaker's permit, which the failed attempt may hold itself until it is reported;
//   - a channel that isn't in routes.fallback may be barred, tried, or of another chain, and
//     without attempts nothing is in it;
//   - effects may be the last of several that open a breaker or begin a quarantine, and
//     cool a key that another channel of the chain needs.
func hidden(q *engine.Question, d engine.Decision) bool {
	if d.Action == engine.Abort || d.Action == engine.Substitute || d.Fault != "" || q.Failure.Phase() == engine.AfterOutput {
		return false
	}
	if i := q.Idempotency; i.Effects == engine.EffectsUnknown || !i.ReplaySafe && q.Failure.Completion() != engine.CompletionNone {
		return false
	}
	delay, said := d.Delay.Get()
	wait := delay
	least, _ := q.Failure.RetryAfter().Get()
	if d.Action == engine.Retry {
		if !said {
			wait = q.Backoff
		}
		wait = max(wait, least)
	}
	late := q.Remaining-wait <= 0 || q.Remaining-wait < q.MinUseful
	changes := func(kinds ...engine.EffectKind) bool {
		return slices.ContainsFunc(d.Effects, func(e engine.Effect) bool {
			return slices.Contains(kinds, e.Kind) && q.Failure.Scope() != engine.ScopeRequest
		})
	}
	if d.Action == engine.Fallback {
		switch {
		case d.Channel != "" && !slices.Contains(q.Fallback, d.Channel):
			return late || wait > 0 || q.AttemptsLeft <= 0
		case late:
			return false
		case q.AttemptsLeft <= 0, wait > 0 && (len(q.Fallback) == 0 || !q.RetryBudget):
			return true
		}
		return len(q.Fallback) > 0 && changes(engine.EffectCoolKey)
	}
	switch {
	case late, q.AttemptsLeft <= 0:
		return false
	case !q.Same, wait > 0 && !q.RetryBudget, changes(engine.EffectCountFailure):
		return true
	}
	return changes(engine.EffectQuarantineChannel) && slices.ContainsFunc(d.Effects, func(e engine.Effect) bool { return e.After > 1 }) ||
		changes(engine.EffectCoolKey) && !q.SpareKey && wait > least
}

// TestForesee asks about decisions that are not taken.
func TestForesee(t *testing.T) {
	t.Parallel()
	reason, _ := engine.ParseReason("overloaded")
	q := func(change func(*engine.Question)) *engine.Question {
		q := &engine.Question{
			Idempotency: engine.Idempotency{ReplaySafe: true, Effects: engine.EffectsNone}, Key: "main",
			Failure:      engine.MakeFailure(engine.ClassProviderTransient, engine.ScopeChannel, reason, engine.Wait{}, 503, engine.BeforeOutput, engine.CompletionNone),
			AttemptsUsed: 1, AttemptsLeft: 2, Remaining: 10 * time.Second, MinUseful: 2 * time.Second, Backoff: 100 * time.Millisecond,
			Time: true, RetryBudget: true, Same: true, Fallback: []string{"b"},
		}
		if change != nil {
			change(q)
		}
		return q
	}
	retryAfter := func(d time.Duration) func(*engine.Question) {
		return func(q *engine.Question) {
			q.Failure = engine.MakeFailure(engine.ClassRateLimited, engine.ScopeKey, reason, engine.WaitOf(d), 429, engine.BeforeOutput, engine.CompletionNone)
		}
	}
	at := func(d engine.Decision, delay time.Duration) engine.Decision { d.Delay = engine.WaitOf(delay); return d }
	with := func(d engine.Decision, e ...engine.Effect) engine.Decision { d.Effects = e; return d }
	to := func(channel string) engine.Decision {
		return engine.Decision{Action: engine.Fallback, Channel: channel}
	}
	for _, tt := range []struct {
		name     string
		question *engine.Question
		decision engine.Decision
		want     engine.Interlock
		wait     time.Duration // -1: nothing follows
	}{
		{"abort", q(nil), engine.Decision{}, engine.InterlockNone, -1},
		{"a fault aborts", q(nil), engine.Decision{Action: engine.Retry, Fault: "timeout"}, engine.InterlockNone, -1},
		{"fallback", q(nil), fallback, engine.InterlockNone, 0},
		{"fallback by name", q(nil), to("b"), engine.InterlockNone, 0},
		{"fallback to nobody", q(nil), to("x"), engine.InterlockEligible, -1},
		{"fallback without routes", q(func(q *engine.Question) { q.Fallback = nil }), fallback, engine.InterlockEligible, -1},
		{"retry", q(nil), retry, engine.InterlockNone, 100 * time.Millisecond},
		{"retry without a route", q(func(q *engine.Question) { q.Same = false }), retry, engine.InterlockEligible, -1},
		{"retry before Retry-After", q(retryAfter(time.Second)), at(retry, 0), engine.InterlockRetryAfter, time.Second},
		{"retry at Retry-After", q(retryAfter(time.Second)), retry, engine.InterlockNone, time.Second},
		{"retry beyond the deadline", q(retryAfter(time.Hour)), retry, engine.InterlockRetryAfter, -1},
		{"too late by its own delay", q(nil), at(retry, 9*time.Second), engine.InterlockBudget, -1},
		{"no attempts", q(func(q *engine.Question) { q.AttemptsLeft, q.Fallback = 0, nil }), fallback, engine.InterlockBudget, -1},
		{"no tokens", q(func(q *engine.Question) { q.RetryBudget = false }), fallback, engine.InterlockRetryBudget, -1},
		{"effects unknown", q(func(q *engine.Question) { q.Idempotency.Effects = engine.EffectsUnknown }), fallback, engine.InterlockEffects, -1},
		{"substitute", q(nil), engine.Decision{Action: engine.Substitute}, engine.InterlockContract, -1},
		{"after output", q(func(q *engine.Question) {
			q.Failure = engine.MakeFailure(engine.ClassPartial, engine.ScopeNone, reason, engine.Wait{}, 200, engine.AfterOutput, engine.CompletionPartial)
		}), fallback, engine.InterlockCommitted, -1},
		{"cools its only key", q(nil), with(retry, engine.Effect{Kind: engine.EffectCoolKey, For: time.Minute}), engine.InterlockEligible, -1},
		{"cools one of two keys", q(func(q *engine.Question) { q.SpareKey = true }), with(retry, engine.Effect{Kind: engine.EffectCoolKey, For: time.Minute}), engine.InterlockNone, 100 * time.Millisecond},
		{"evicts the model that it wants", q(nil), with(retry, engine.Effect{Kind: engine.EffectEvictModel, For: time.Minute}), engine.InterlockEligible, -1},
		{"quarantines, then falls back", q(nil), with(fallback, engine.Effect{Kind: engine.EffectQuarantineChannel, For: time.Minute}), engine.InterlockNone, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := engine.Foresee(tt.question, tt.decision); got != tt.want {
				t.Errorf("got interlock %q, want %q", got, tt.want)
			}
			if wait, follows := engine.Follows(tt.question, tt.decision); follows != (tt.wait >= 0) || follows && wait != tt.wait {
				t.Errorf("follows %v after %v, want %v", follows, wait, tt.wait)
			}
		})
	}
}
