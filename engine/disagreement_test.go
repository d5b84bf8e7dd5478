package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

func reason(t testing.TB, text string) engine.Reason {
	t.Helper()
	r, err := engine.ParseReason(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func disagreement(t testing.TB) engine.Disagreement {
	t.Helper()
	return engine.Disagreement{
		RequestID: `"odd" <id>`, Seq: 2, At: time.Date(2026, 3, 1, 12, 0, 0, 1500, time.UTC), Group: "gpt-4o",
		Cell: engine.Cell{
			Class: engine.ClassProviderTransient, Phase: engine.BeforeOutput, Completion: engine.CompletionUnknown,
			ReplaySafe: true, Budget: engine.BudgetLast,
		},
		From: engine.Answer{
			Action: engine.Fallback, Channel: "b", Reason: reason(t, "overloaded"), Rule: "decision.rego:3",
			Delay: engine.WaitOf(1500 * time.Microsecond), Effects: []engine.Effect{{Kind: engine.EffectCoolKey, For: time.Minute, After: 2}},
		},
		To: engine.Answer{Fault: "timeout"},
	}
}

func TestDisagreementComesBack(t *testing.T) {
	t.Parallel()
	want := disagreement(t)
	text := want.AppendJSON(nil)
	got, err := engine.ParseDisagreement(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(engine.Wait{}, engine.Reason{})); diff != "" {
		t.Errorf("%s\n%s", diff, text)
	}
}

func TestAnswersDiffer(t *testing.T) {
	t.Parallel()
	f := func(a, b engine.Answer, want engine.Difference) {
		t.Helper()
		for _, pair := range [][2]engine.Answer{{a, b}, {b, a}} {
			if got := pair[0].Differs(pair[1]); got != want {
				t.Errorf("%+v and %+v differ in %q, want %q", pair[0], pair[1], got, want)
			}
		}
	}
	now := engine.WaitOf(0)
	cool := []engine.Effect{{Kind: engine.EffectCoolKey, For: time.Minute}}
	f(engine.Answer{}, engine.Answer{}, engine.DiffersNot)
	f(engine.Answer{Reason: reason(t, "one"), Rule: "a:1"}, engine.Answer{Reason: reason(t, "two")}, engine.DiffersNot)
	f(engine.Answer{}, engine.Answer{Action: engine.Retry, Effects: cool}, engine.DiffersAction)
	f(engine.Answer{}, engine.Answer{Fault: "timeout"}, engine.DiffersFault)
	f(engine.Answer{Action: engine.Fallback}, engine.Answer{Action: engine.Fallback, Channel: "b"}, engine.DiffersChannel)
	f(engine.Answer{Action: engine.Retry}, engine.Answer{Action: engine.Retry, Channel: "b"}, engine.DiffersNot)
	f(engine.Answer{Action: engine.Retry}, engine.Answer{Action: engine.Retry, Delay: now}, engine.DiffersDelay)
	f(engine.Answer{}, engine.Answer{Delay: now}, engine.DiffersNot)
	f(engine.Answer{}, engine.Answer{Effects: cool}, engine.DiffersEffects)
}

// TestCloneSharesNothing changes the slices of a question after it was copied.
func TestCloneSharesNothing(t *testing.T) {
	t.Parallel()
	q := engine.Question{RequestID: "1", Fallback: []string{"b", "c"}, Substitute: []string{"small"}, Seq: 3}
	c := q.Clone()
	q.Fallback[0], q.Substitute[0] = "x", "x"
	if c.Fallback[0] != "b" || c.Substitute[0] != "small" || c.RequestID != "1" || c.Seq != 3 {
		t.Errorf("the copy is %+v", c)
	}
}

// FuzzParseDisagreement reads anything: what it takes, it writes and reads again.
func FuzzParseDisagreement(f *testing.F) {
	d := disagreement(f)
	f.Add(d.AppendJSON(nil))
	f.Add([]byte(`{"to":{"effects":[{"kind":"none"}],"delay_ms":-1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := engine.ParseDisagreement(text)
		if err != nil {
			return
		}
		if _, err := engine.ParseDisagreement(d.AppendJSON(nil)); err != nil {
			t.Errorf("%v in what was written of %q", err, text)
		}
	})
}

// BenchmarkClone is what a request pays for a candidate policy.
func BenchmarkClone(b *testing.B) {
	q := engine.Question{
		RequestID: "01J8Z3V5K3Q4W1M7T2B9C6D8EA", Caller: "team-a", Contract: engine.Contract{Model: "gpt-4o-2024-08-06"},
		Group: "gpt-4o", Channel: "openai", Provider: "openai", Key: "main", Fallback: []string{"azure-east", "azure-west"},
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = q.Clone()
	}
}
