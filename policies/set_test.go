package policies

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// patient keeps a loaded machine from making a policy look slow.
const patient = 10 * time.Second

// load loads a policy that must be fine, each of the texts as a file of its own.
func load(tb testing.TB, opts Options, texts ...string) *Set {
	tb.Helper()
	if opts.Timeout == 0 {
		opts.Timeout = patient
	}
	for _, text := range texts {
		opts.Paths = append(opts.Paths, writePolicy(tb, text))
	}
	set, err := Load(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func writePolicy(tb testing.TB, text string) string {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "p.rego")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return name
}

func reasonOf(tb testing.TB, text string) engine.Reason {
	tb.Helper()
	r, err := engine.ParseReason(text)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// failed is the question after an overloaded first channel with everything left.
func failed(tb testing.TB) engine.Question {
	tb.Helper()
	return engine.Question{
		RequestID:     "r1",
		Caller:        "team-a",
		Contract:      engine.Contract{Model: "gpt-4o-2024-08-06", Endpoint: engine.OpenAIChat},
		Stream:        true,
		Idempotency:   engine.Idempotency{ReplaySafe: true, Effects: engine.EffectsNone},
		Now:           time.Date(2026, time.November, 30, 23, 5, 0, 0, time.UTC),
		Seq:           1,
		Group:         "gpt-4o",
		Channel:       "openai",
		Provider:      "openai",
		Key:           "main",
		RouteAttempts: 1,
		Failure:       failure(tb, engine.ClassProviderTransient, engine.ScopeChannel, "overloaded", 503),
		AttemptsUsed:  1,
		AttemptsLeft:  2,
		Elapsed:       812 * time.Millisecond,
		Remaining:     59188 * time.Millisecond,
		MinUseful:     2 * time.Second,
		Backoff:       137 * time.Millisecond,
		Time:          true,
		RetryBudget:   true,
		Same:          true,
		Fallback:      []string{"azure-east"},
	}
}

func failure(tb testing.TB, class engine.Class, scope engine.Scope, reason string, status int) engine.Failure {
	tb.Helper()
	return engine.MakeFailure(class, scope, reasonOf(tb, reason), engine.Wait{}, status, engine.BeforeOutput, engine.CompletionNone)
}

func diffDecisions(want, got engine.Decision) string {
	return cmp.Diff(want, got, cmp.AllowUnexported(engine.Reason{}, engine.Wait{}))
}

func TestDefaultPolicyFallsBack(t *testing.T) {
	t.Parallel()
	q := failed(t)
	got := load(t, Options{}).Decide(&q)
	want := engine.Decision{
		Action:  engine.Fallback,
		Reason:  reasonOf(t, "overloaded"),
		Effects: []engine.Effect{{Kind: engine.EffectCountFailure}},
		Gates: engine.Gates{
			FailureClass: engine.GatePass, ResponsePhase: engine.GatePass,
			Idempotency: engine.GatePass, AttemptBudget: engine.GatePass,
		},
		Rule: got.Rule,
	}
	if diff := diffDecisions(want, got); diff != "" {
		t.Error(diff)
	}
	t.Log(got.Rule)
}

func BenchmarkDecideCold(b *testing.B) {
	set := load(b, Options{Memory: -1})
	q := failed(b)
	b.ReportAllocs()
	for b.Loop() {
		set.Decide(&q)
	}
}

func BenchmarkDecideRemembered(b *testing.B) {
	set := load(b, Options{})
	q := failed(b)
	set.Decide(&q)
	b.ReportAllocs()
	for b.Loop() {
		set.Decide(&q)
	}
}
