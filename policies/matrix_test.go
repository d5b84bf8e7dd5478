package policies

import (
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// The failure matrix, asked as the engine asks it: with another route left, and with
// nothing but the same route.
func TestMatrix(t *testing.T) {
	t.Parallel()
	set := load(t, Options{})
	count := engine.Effect{Kind: engine.EffectCountFailure}
	cool := func(d time.Duration) engine.Effect { return engine.Effect{Kind: engine.EffectCoolKey, For: d} }
	evict := engine.Effect{Kind: engine.EffectEvictModel, For: 10 * time.Minute}
	suspect := engine.Effect{Kind: engine.EffectQuarantineChannel, For: 5 * time.Minute, After: 3}
	nothing := engine.Effect{}

	for _, row := range []struct {
		name      string
		class     engine.Class
		scope     engine.Scope
		reason    string
		status    int
		elsewhere outcome // with another route left
		alone     outcome // with none
		effect    engine.Effect
	}{
		{"validation error", engine.ClassBadRequest, engine.ScopeRequest, "invalid_request", 400, stop, stop, nothing},
		{"gateway's denial", engine.ClassDenied, engine.ScopeRequest, "policy", 403, stop, stop, nothing},
		{"credential", engine.ClassKeyFault, engine.ScopeKey, "invalid_credential", 401, move, spent, cool(10 * time.Minute)},
		{"account", engine.ClassKeyFault, engine.ScopeKey, "billing", 402, move, spent, cool(10 * time.Minute)},
		{"network", engine.ClassProviderTransient, engine.ScopeChannel, "network", 0, move, again, count},
		{"request timeout", engine.ClassProviderTransient, engine.ScopeChannel, "timeout", 408, move, again, count},
		{"rate limit", engine.ClassRateLimited, engine.ScopeKey, "requests", 429, move, again, cool(10 * time.Second)},
		{"500", engine.ClassProviderTransient, engine.ScopeChannel, "server_error", 500, move, again, count},
		{"502", engine.ClassProviderTransient, engine.ScopeChannel, "edge_error", 502, move, again, count},
		{"503", engine.ClassProviderTransient, engine.ScopeChannel, "overloaded", 503, move, again, count},
		{"504", engine.ClassProviderTransient, engine.ScopeChannel, "timeout", 504, move, again, count},
		{"529", engine.ClassProviderTransient, engine.ScopeProvider, "overloaded", 529, move, again, count},
		{"model missing", engine.ClassBadModel, engine.ScopeModel, "not_found", 404, move, spent, evict},
		{"schema invalid", engine.ClassSchemaInvalid, engine.ScopeChannel, "bad_json", 200, move, spent, suspect},
		{"contract violation", engine.ClassContractViolation, engine.ScopeModel, "model_mismatch", 200, move, spent, suspect},
		{"refusal", engine.ClassRefusal, engine.ScopeNone, "model_refusal", 200, stop, stop, nothing},
		{"cancelled", engine.ClassCancelled, engine.ScopeRequest, "caller_cancelled", 0, stop, stop, nothing},
		{"partial", engine.ClassPartial, engine.ScopeRequest, "truncated", 200, stop, stop, nothing},
		{"unknown", engine.ClassUnknown, engine.ScopeNone, "unrecognized", 418, stop, stop, nothing},
		{"no failure", engine.ClassOK, engine.ScopeNone, "complete", 200, stop, stop, nothing},
	} {
		q := failed(t)
		q.Failure = failure(t, row.class, row.scope, row.reason, row.status)
		check(t, row.name+" with another route", set, &q, row.elsewhere, row.effect)
		q.Fallback = nil
		effect := row.effect
		if row.class == engine.ClassRateLimited {
			effect = nothing // or the retry would have no key
		}
		check(t, row.name+" alone", set, &q, row.alone, effect)
	}
}

// outcome is what becomes of a request.
type outcome int

const (
	stop  outcome = iota // the class stops it: policy_stop
	spent                // nothing is left: exhausted
	move                 // same-contract fallback
	again                // same-route retry
)

func check(t *testing.T, name string, set *Set, q *engine.Question, want outcome, effect engine.Effect) {
	t.Helper()
	pass := engine.Gates{
		FailureClass: engine.GatePass, ResponsePhase: engine.GatePass,
		Idempotency: engine.GatePass, AttemptBudget: engine.GatePass,
	}
	d := engine.Decision{Gates: pass, Reason: q.Failure.Reason()}
	switch want {
	case stop:
		d.Gates.FailureClass = engine.GateStop
	case spent:
		d.Gates.AttemptBudget = engine.GateStop
		d.Reason = reasonOf(t, "no_route_left")
	case move:
		d.Action = engine.Fallback
	case again:
		d.Action = engine.Retry
	}
	if effect.Kind != engine.EffectNothing {
		d.Effects = []engine.Effect{effect}
	}
	got := set.Decide(q)
	if !strings.HasPrefix(got.Rule, "builtin:decision.rego:") {
		t.Errorf("%s: the rule is %q", name, got.Rule)
	}
	d.Rule = got.Rule
	if diff := diffDecisions(d, got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// Whatever the class, none of these is replayed.
func TestNeverReplayed(t *testing.T) {
	t.Parallel()
	set := load(t, Options{})
	f := func(name string, change func(*engine.Question)) {
		for class := engine.ClassUnknown; class <= engine.ClassOK; class++ {
			q := failed(t)
			q.Failure = failure(t, class, engine.ScopeChannel, "r", 503)
			change(&q)
			if got := set.Decide(&q); got.Action != engine.Abort || got.Fault != "" {
				t.Errorf("%s, %v: got %+v, want abort", name, class, got)
			}
		}
	}
	f("after output", func(q *engine.Question) {
		q.Failure = engine.MakeFailure(q.Failure.Class(), engine.ScopeChannel, q.Failure.Reason(), engine.Wait{}, 200, engine.AfterOutput, engine.CompletionPartial)
	})
	f("unknown side effect", func(q *engine.Question) { q.Idempotency.Effects = engine.EffectsUnknown })
	f("perhaps done and not replay-safe", func(q *engine.Question) {
		q.Idempotency.ReplaySafe = false
		q.Failure = engine.MakeFailure(q.Failure.Class(), engine.ScopeChannel, q.Failure.Reason(), engine.Wait{}, 500, engine.BeforeHeaders, engine.CompletionUnknown)
	})
	f("no attempts", func(q *engine.Question) { q.AttemptsLeft = 0 })
	f("no time", func(q *engine.Question) { q.Time = false })
	f("no retry budget", func(q *engine.Question) { q.RetryBudget = false })
	f("no route", func(q *engine.Question) { q.Same, q.Fallback = false, nil })
}
