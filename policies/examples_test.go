package policies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

func examplePolicy(t *testing.T, name string) *Set {
	t.Helper()
	return load(t, Options{Paths: []string{filepath.Join("..", "testdata", "examples", name, "policies")}})
}

// The four families over the real gates: the example's own Rego tests stand in for them.
func TestStudyhub(t *testing.T) {
	t.Parallel()
	set := examplePolicy(t, "studyhub")
	f := func(name string, class engine.Class, scope engine.Scope, change func(*engine.Question), want engine.Action, effect engine.EffectKind) {
		t.Helper()
		q := failed(t)
		q.SpareKey = true
		q.Failure = failure(t, class, scope, "r", 500)
		change(&q)
		got := set.Decide(&q)
		if got.Action != want || got.Fault != "" {
			t.Errorf("%s: got %+v, want %v", name, got, want)
		}
		var kind engine.EffectKind
		if len(got.Effects) == 1 {
			kind = got.Effects[0].Kind
		}
		if kind != effect {
			t.Errorf("%s: effects %+v, want %v", name, got.Effects, effect)
		}
	}
	as := func(*engine.Question) {}
	f("dead key", engine.ClassKeyFault, engine.ScopeKey, as, engine.Retry, engine.EffectCoolKey)
	f("rate limit", engine.ClassRateLimited, engine.ScopeKey, as, engine.Retry, engine.EffectCoolKey)
	f("last key", engine.ClassKeyFault, engine.ScopeKey, func(q *engine.Question) { q.SpareKey = false }, engine.Fallback, engine.EffectCoolKey)
	f("provider", engine.ClassProviderTransient, engine.ScopeChannel, as, engine.Fallback, engine.EffectCountFailure)
	f("model", engine.ClassBadModel, engine.ScopeModel, as, engine.Fallback, engine.EffectEvictModel)
	f("request", engine.ClassBadRequest, engine.ScopeRequest, as, engine.Abort, engine.EffectNothing)
	f("unknown", engine.ClassUnknown, engine.ScopeNone, as, engine.Abort, engine.EffectNothing)
	f("no attempts", engine.ClassProviderTransient, engine.ScopeChannel, func(q *engine.Question) { q.AttemptsLeft = 0 }, engine.Abort, engine.EffectCountFailure)
	f("side effect", engine.ClassKeyFault, engine.ScopeKey, func(q *engine.Question) { q.Idempotency.Effects = engine.EffectsUnknown }, engine.Abort, engine.EffectCoolKey)
}

func TestKunavo(t *testing.T) {
	t.Parallel()
	set := examplePolicy(t, "kunavo")
	f := func(class engine.Class, scope engine.Scope, status int, want engine.Action, effects int) {
		t.Helper()
		q := failed(t)
		q.Failure = failure(t, class, scope, "r", status)
		got := set.Decide(&q)
		if got.Action != want || len(got.Effects) != effects || got.Fault != "" {
			t.Errorf("status %d: got %+v, want %v with %d effects", status, got, want, effects)
		}
		if stopped := got.Gates.FailureClass == engine.GateStop; stopped != (want == engine.Abort) || got.Gates.AttemptBudget != engine.GatePass {
			t.Errorf("status %d: gates %+v", status, got.Gates)
		}
	}
	f(engine.ClassBadRequest, engine.ScopeRequest, 400, engine.Abort, 0)
	f(engine.ClassBadModel, engine.ScopeModel, 404, engine.Abort, 0)
	f(engine.ClassKeyFault, engine.ScopeKey, 402, engine.Abort, 0)
	f(engine.ClassKeyFault, engine.ScopeKey, 401, engine.Fallback, 1)
	f(engine.ClassProviderTransient, engine.ScopeChannel, 503, engine.Fallback, 1)
}

// The policy that docs/policies.md shows does what the text says.
func TestDocumentedPolicy(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "docs", "policies.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```rego\n")
	policy, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("docs/policies.md shows no policy")
	}
	set := load(t, Options{}, policy)
	q := failed(t)
	q.Failure = failure(t, engine.ClassRateLimited, engine.ScopeKey, "requests", 429)
	if got := set.Decide(&q); got.Action != engine.Fallback {
		t.Errorf("got %+v, want the default policy's fallback", got)
	}
	q.Caller = "batch"
	if got := set.Decide(&q); got.Action != engine.Abort || got.Reason.String() != "batch_waits" {
		t.Errorf("got %+v, want the abort of the documented rule", got)
	}
}
