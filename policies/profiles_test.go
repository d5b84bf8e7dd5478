package policies

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// profileRow is one row of a published design: a failure, what becomes of the request,
// and what changes for others.
type profileRow struct {
	name   string
	class  engine.Class
	scope  engine.Scope
	status int
	change func(*engine.Question) // of the usual question; nil changes nothing
	action engine.Action
	effect engine.Effect // its kind is nothing where nothing changes
	stops  string        // the gate that says stop, if one does
}

func checkProfile(t *testing.T, profile string, opts Options, rows []profileRow) {
	t.Helper()
	opts.Profile = profile
	set := load(t, opts)
	for _, row := range rows {
		q := failed(t)
		q.SpareKey = true
		q.Failure = failure(t, row.class, row.scope, "r", row.status)
		if row.change != nil {
			row.change(&q)
		}
		got := set.Decide(&q)
		if got.Action != row.action || got.Fault != "" {
			t.Errorf("%s: got %+v, want %v", row.name, got, row.action)
		}
		var effect engine.Effect
		if len(got.Effects) == 1 {
			effect = got.Effects[0]
		}
		if effect != row.effect || len(got.Effects) > 1 {
			t.Errorf("%s: effects %+v, want %+v", row.name, got.Effects, row.effect)
		}
		if stops := stoppedBy(got.Gates); stops != row.stops {
			t.Errorf("%s: stopped by %q, want %q", row.name, stops, row.stops)
		}
		own := "builtin:profiles/" + profile + "/" + profile + ".rego:"
		if !strings.HasPrefix(got.Rule, own) && !strings.HasPrefix(got.Rule, "builtin:decision.rego:") {
			t.Errorf("%s: the rule is %q", row.name, got.Rule)
		}
	}
}

func stoppedBy(g engine.Gates) string {
	var names []string
	for _, gate := range []struct {
		name string
		mark engine.GateMark
	}{{"class", g.FailureClass}, {"phase", g.ResponsePhase}, {"idempotency", g.Idempotency}, {"budget", g.AttemptBudget}} {
		if gate.mark == engine.GateStop {
			names = append(names, gate.name)
		}
	}
	return strings.Join(names, " ")
}

var (
	nothingChanges = engine.Effect{}
	counted        = engine.Effect{Kind: engine.EffectCountFailure}
	limitCools     = engine.Effect{Kind: engine.EffectCoolKey, For: 10 * time.Second}
	faultCools     = engine.Effect{Kind: engine.EffectCoolKey, For: 10 * time.Minute}
	modelGoes      = engine.Effect{Kind: engine.EffectEvictModel, For: 10 * time.Minute}
	suspected      = engine.Effect{Kind: engine.EffectQuarantineChannel, For: 5 * time.Minute, After: 3}
)

func alone(q *engine.Question)      { q.Fallback = nil }
func lastKey(q *engine.Question)    { q.SpareKey = false }
func spentTries(q *engine.Question) { q.AttemptsLeft = 0 }

func openEffect(q *engine.Question) { q.Idempotency.Effects = engine.EffectsUnknown }

func afterOutput(q *engine.Question) {
	q.Failure = engine.MakeFailure(q.Failure.Class(), q.Failure.Scope(), q.Failure.Reason(), engine.Wait{}, 200, engine.AfterOutput, engine.CompletionPartial)
}

// A caller's mistake and an unpaid account reach the caller; all else is the default's.
func TestKunavo(t *testing.T) {
	t.Parallel()
	checkProfile(t, "kunavo", Options{}, []profileRow{
		{"bad request", engine.ClassBadRequest, engine.ScopeRequest, 400, nil, engine.Abort, nothingChanges, "class"},
		{"not found", engine.ClassBadModel, engine.ScopeModel, 404, nil, engine.Abort, nothingChanges, "class"},
		{"unpaid", engine.ClassKeyFault, engine.ScopeKey, 402, nil, engine.Abort, nothingChanges, "class"},
		{"credential", engine.ClassKeyFault, engine.ScopeKey, 401, nil, engine.Fallback, faultCools, ""},
		{"rate limit", engine.ClassRateLimited, engine.ScopeKey, 429, nil, engine.Fallback, limitCools, ""},
		{"server error", engine.ClassProviderTransient, engine.ScopeChannel, 500, nil, engine.Fallback, counted, ""},
		{"overloaded", engine.ClassProviderTransient, engine.ScopeChannel, 503, nil, engine.Fallback, counted, ""},
		{"no attempts", engine.ClassProviderTransient, engine.ScopeChannel, 503, spentTries, engine.Abort, counted, "budget"},
	})
	// The knobs of the default policy turn what is left to it.
	checkProfile(t, "kunavo", Options{Params: map[string]any{"same_route_retry": "first"}}, []profileRow{
		{"unpaid", engine.ClassKeyFault, engine.ScopeKey, 402, nil, engine.Abort, nothingChanges, "class"},
		{"overloaded", engine.ClassProviderTransient, engine.ScopeChannel, 503, nil, engine.Retry, counted, ""},
	})
}

// Four families, each with its own effect.
func TestStudyhub(t *testing.T) {
	t.Parallel()
	checkProfile(t, "studyhub", Options{}, []profileRow{
		{"dead key", engine.ClassKeyFault, engine.ScopeKey, 401, nil, engine.Retry, faultCools, ""},
		{"rate limit", engine.ClassRateLimited, engine.ScopeKey, 429, nil, engine.Retry, limitCools, ""},
		{"last key", engine.ClassKeyFault, engine.ScopeKey, 401, lastKey, engine.Fallback, faultCools, ""},
		{"last key of the last provider", engine.ClassKeyFault, engine.ScopeKey, 401, func(q *engine.Question) { lastKey(q); alone(q) }, engine.Abort, faultCools, "budget"},
		{"provider", engine.ClassProviderTransient, engine.ScopeChannel, 503, nil, engine.Fallback, counted, ""},
		{"model", engine.ClassBadModel, engine.ScopeModel, 404, nil, engine.Fallback, modelGoes, ""},
		{"request", engine.ClassBadRequest, engine.ScopeRequest, 400, nil, engine.Abort, nothingChanges, "class"},
		{"unknown", engine.ClassUnknown, engine.ScopeNone, 418, nil, engine.Abort, nothingChanges, "class"},
		{"no attempts", engine.ClassProviderTransient, engine.ScopeChannel, 503, spentTries, engine.Abort, counted, "budget"},
		{"side effect", engine.ClassKeyFault, engine.ScopeKey, 401, openEffect, engine.Abort, faultCools, "idempotency"},
		{"after output", engine.ClassProviderTransient, engine.ScopeChannel, 200, afterOutput, engine.Abort, counted, "phase"},
	})
}

// The failure matrix.
func TestModelflare(t *testing.T) {
	t.Parallel()
	checkProfile(t, "modelflare", Options{}, []profileRow{
		{"validation error", engine.ClassBadRequest, engine.ScopeRequest, 400, nil, engine.Abort, nothingChanges, "class"},
		{"gateway's denial", engine.ClassDenied, engine.ScopeRequest, 403, nil, engine.Abort, nothingChanges, "class"},
		{"credential", engine.ClassKeyFault, engine.ScopeKey, 401, nil, engine.Fallback, faultCools, ""},
		{"account", engine.ClassKeyFault, engine.ScopeKey, 402, nil, engine.Fallback, faultCools, ""},
		{"network", engine.ClassProviderTransient, engine.ScopeChannel, 0, nil, engine.Fallback, counted, ""},
		{"network, one route", engine.ClassProviderTransient, engine.ScopeChannel, 0, alone, engine.Retry, counted, ""},
		{"request timeout", engine.ClassProviderTransient, engine.ScopeChannel, 408, nil, engine.Fallback, counted, ""},
		{"rate limit", engine.ClassRateLimited, engine.ScopeKey, 429, nil, engine.Fallback, limitCools, ""},
		{"overloaded", engine.ClassProviderTransient, engine.ScopeProvider, 529, nil, engine.Fallback, counted, ""},
		{"overloaded, one route", engine.ClassProviderTransient, engine.ScopeProvider, 529, alone, engine.Retry, counted, ""},
		{"model missing", engine.ClassBadModel, engine.ScopeModel, 404, nil, engine.Fallback, modelGoes, ""},
		{"answer invalid", engine.ClassSchemaInvalid, engine.ScopeChannel, 200, nil, engine.Fallback, suspected, ""},
		{"another model", engine.ClassContractViolation, engine.ScopeModel, 200, nil, engine.Fallback, suspected, ""},
		{"refusal", engine.ClassRefusal, engine.ScopeNone, 200, nil, engine.Abort, nothingChanges, "class"},
		{"cancelled", engine.ClassCancelled, engine.ScopeRequest, 0, nil, engine.Abort, nothingChanges, "class"},
		{"after output", engine.ClassPartial, engine.ScopeChannel, 200, afterOutput, engine.Abort, counted, "class phase"},
		{"side effect", engine.ClassProviderTransient, engine.ScopeChannel, 503, openEffect, engine.Abort, counted, "idempotency"},
		{"unknown", engine.ClassUnknown, engine.ScopeNone, 418, nil, engine.Abort, nothingChanges, "class"},
	})
}

// The relay's faults count and move on; all else is the caller's to see.
func TestCCRelay(t *testing.T) {
	t.Parallel()
	checkProfile(t, "ccrelay", Options{}, []profileRow{
		{"rate limit", engine.ClassRateLimited, engine.ScopeKey, 429, nil, engine.Fallback, counted, ""},
		{"overloaded", engine.ClassProviderTransient, engine.ScopeProvider, 529, nil, engine.Fallback, counted, ""},
		{"server error", engine.ClassProviderTransient, engine.ScopeChannel, 500, nil, engine.Fallback, counted, ""},
		{"timeout", engine.ClassProviderTransient, engine.ScopeChannel, 0, nil, engine.Fallback, counted, ""},
		{"never the same relay", engine.ClassProviderTransient, engine.ScopeChannel, 503, alone, engine.Abort, counted, "budget"},
		{"bad request", engine.ClassBadRequest, engine.ScopeRequest, 400, nil, engine.Abort, nothingChanges, "class"},
		{"credential", engine.ClassKeyFault, engine.ScopeKey, 401, nil, engine.Abort, nothingChanges, "class"},
		{"account", engine.ClassKeyFault, engine.ScopeKey, 402, nil, engine.Abort, nothingChanges, "class"},
		{"model missing", engine.ClassBadModel, engine.ScopeModel, 404, nil, engine.Abort, nothingChanges, "class"},
		{"side effect", engine.ClassProviderTransient, engine.ScopeChannel, 503, openEffect, engine.Abort, counted, "idempotency"},
	})
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	if got, want := Profiles(), []string{"ccrelay", "kunavo", "modelflare", "studyhub"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	problems := problemsOf(t, Options{Profile: "kunawo"})
	if len(problems) != 1 || !strings.Contains(problems[0].Text(), "did you mean kunavo?") || !strings.Contains(problems[0].Text(), "ccrelay, kunavo, modelflare, studyhub") {
		t.Errorf("problems %v, want one that names the profile that was meant and all of them", problems)
	}
}

// An overlay decides a few cases itself, and leaves the others to a profile, whether that
// is chosen or only named.
func TestOverlayOverProfile(t *testing.T) {
	t.Parallel()
	const overlay = `package fourgate

import data.fourgate.profiles.kunavo

decision := {"action": "abort", "reason": "batch_waits", "gates": kunavo.decision.gates} if {
	input.request.caller == "batch"
} else := kunavo.decision
`
	for _, profile := range []string{"", "kunavo"} {
		set := load(t, Options{Profile: profile}, overlay)
		q := failed(t)
		q.Failure = failure(t, engine.ClassKeyFault, engine.ScopeKey, "billing", 402)
		if got := set.Decide(&q); got.Reason.String() != "payment_required" || !strings.HasPrefix(got.Rule, "builtin:profiles/kunavo/kunavo.rego:") {
			t.Errorf("profile %q: got %+v, want the profile's abort", profile, got)
		}
		q.Caller = "batch"
		if got := set.Decide(&q); got.Reason.String() != "batch_waits" || !strings.HasSuffix(got.Rule, "p.rego:5") {
			t.Errorf("profile %q: got %+v, want the overlay's abort", profile, got)
		}
	}
}
