package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
	"github.com/fourgate-dev/fourgate/policies/replay"
)

var (
	next = engine.Decision{Action: engine.Fallback}
	same = engine.Decision{Action: engine.Retry, Delay: engine.WaitOf(0)}
	stop = engine.Decision{}
)

func always(d engine.Decision) engine.Policy {
	return deciding(func(*engine.Question) engine.Decision { return d })
}

// after gives the n-th answer to the n-th failure of a request.
func after(answers ...engine.Decision) engine.Policy {
	return deciding(func(q *engine.Question) engine.Decision { return answers[q.Seq-1] })
}

// half is a random source without chance.
type half struct{}

func (half) Float64() float64 { return 0.5 }

// history is the record of one request over three channels of which the first two are
// overloaded, each attempt a tenth of a dollar, and which live has decided about.
func history(t testing.TB, live engine.Policy, effects engine.Effects) *engine.Record {
	t.Helper()
	return historyWith(t, live, effects, engine.Wait{})
}

// historyWith has failures that come with a Retry-After.
func historyWith(t testing.TB, live engine.Policy, effects engine.Effects, retryAfter engine.Wait) *engine.Record {
	t.Helper()
	spec := engine.Spec{RetryBudget: engine.RetryBudgetSpec{Ratio: 0.1, Floor: 0.1, Cap: 100}}
	group := engine.GroupSpec{
		Name: "g", Models: []string{"m"}, Endpoints: []engine.Endpoint{engine.OpenAIChat}, Strategy: engine.StrategyFailover,
		Budget: engine.BudgetSpec{Attempts: 3, PerRoute: 2, Deadline: time.Minute, BackoffBase: time.Second, BackoffMax: time.Second},
	}
	for _, name := range []string{"a", "b", "c"} {
		spec.Providers = append(spec.Providers, engine.ProviderSpec{
			Name: name, BaseURL: "http://127.0.0.1:1", Auth: engine.AuthNone,
			Limits: engine.Limits{Connect: time.Second, Headers: time.Second, Gate: time.Second, Idle: time.Second},
		})
		group.Channels = append(group.Channels, engine.ChannelSpec{Name: name, Provider: name, Weight: 1, Cost: engine.Cost{Given: true, Input: 100_000}})
	}
	spec.Groups = []engine.GroupSpec{group}
	catalog, problems := engine.NewCatalog(spec)
	if catalog == nil {
		t.Fatal(problems)
	}
	w := enginetest.World{
		Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Catalog: catalog, Standing: engine.NewStanding(), Rand: half{}, LeavesAfter: -1,
		Upstream: func(s *engine.Send) enginetest.Outcome {
			o := enginetest.Outcome{Takes: time.Second, Status: 200, Model: "m", Usage: engine.Usage{Input: engine.TokensOf(1), Output: engine.TokensOf(0)}}
			if s.Channel.Name() != "c" {
				o.Failure = &engine.Evidence{Phase: engine.BeforeOutput, Transport: engine.TransportHTTP, Status: 503}
			}
			return o
		},
		Classify: func(*engine.Evidence) engine.Verdict {
			return engine.Verdict{Class: engine.ClassProviderTransient, Scope: engine.ScopeChannel, RetryAfter: retryAfter}
		},
		Decide: live.Decide,
	}
	caller, _ := catalog.Caller("")
	tr, err := w.Run(&engine.Request{
		ID: "r1", Caller: caller, Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat},
		Idempotency: engine.Idempotency{ReplaySafe: true, Effects: effects},
	})
	if err != nil || tr.Record == nil {
		t.Fatal(err, tr.Refusal)
	}
	return tr.Record
}

func TestWhatWouldHaveGoneOtherwise(t *testing.T) {
	t.Parallel()
	cool := []engine.Effect{{Kind: engine.EffectCoolKey, For: time.Minute}}
	f := func(name string, live engine.Policy, candidate engine.Policy, want replay.Totals) {
		t.Helper()
		want.Requests = 1
		if want.Decisions == 0 {
			want.Decisions = 2
		}
		r := replay.New(replay.Options{Policy: func(string) engine.Policy { return candidate }})
		kept, err := engine.ParseRecord(history(t, live, engine.EffectsNone).AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		r.Add(kept)
		got := r.Totals()
		got.SavedUSD = float64(int(got.SavedUSD*10+0.5)) / 10
		if len(want.Faults) != len(got.Faults) || got.Faults["timeout"] != want.Faults["timeout"] || len(got.Skipped) > 0 {
			t.Errorf("%s: faults %v, skipped %v", name, got.Faults, got.Skipped)
		}
		got.Faults, got.Skipped, want.Faults = nil, nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	twice := after(next, next) // a, b, c: success
	f("the same", twice, always(next), replay.Totals{})
	f("stricter", twice, always(stop), replay.Totals{Changed: 2, Hypothetical: 1, AttemptsSaved: 2, SavedUSD: 0.1, CostsUnknown: 1, SuccessesLost: 1})
	f("stricter at last", twice, after(next, stop), replay.Totals{Changed: 1, AttemptsSaved: 1, SavedUSD: 0.1, SuccessesLost: 1})
	f("another way", twice, after(same, next), replay.Totals{Changed: 1, Redirected: 1, SuccessesAtRisk: 1})
	f("another channel", twice, after(engine.Decision{Action: engine.Fallback, Channel: "c"}, next), replay.Totals{Changed: 1, Redirected: 1, SuccessesAtRisk: 1})
	f("the same channel", twice, after(engine.Decision{Action: engine.Fallback, Channel: "b"}, next), replay.Totals{})
	f("no channel where one was named", after(engine.Decision{Action: engine.Fallback, Channel: "c"}), always(next),
		replay.Totals{Decisions: 1, Changed: 1, Redirected: 1, SuccessesAtRisk: 1})
	f("the next channel, by its name and without", after(engine.Decision{Action: engine.Fallback, Channel: "b"}, next), always(next), replay.Totals{})
	f("a channel that isn't there", twice, after(engine.Decision{Action: engine.Fallback, Channel: "z"}, next),
		replay.Totals{Changed: 1, AttemptsSaved: 2, SavedUSD: 0.1, CostsUnknown: 1, SuccessesLost: 1})
	f("too long a wait", twice, after(next, engine.Decision{Action: engine.Fallback, Delay: engine.WaitOf(time.Hour)}),
		replay.Totals{Changed: 1, AttemptsSaved: 1, SavedUSD: 0.1, SuccessesLost: 1})
	f("a fault", twice, always(engine.Decision{Action: engine.Fallback, Fault: "timeout"}),
		replay.Totals{Changed: 2, Hypothetical: 1, AttemptsSaved: 2, SavedUSD: 0.1, CostsUnknown: 1, SuccessesLost: 1, Faults: map[string]int{"timeout": 2}})
	f("other effects", twice, always(engine.Decision{Action: engine.Fallback, Effects: cool}), replay.Totals{EffectsChanged: 2})
	f("other waits", twice, always(engine.Decision{Action: engine.Fallback, Delay: engine.WaitOf(time.Second)}), replay.Totals{WaitsChanged: 2})
	f("laxer", always(stop), always(next), replay.Totals{Decisions: 1, Changed: 1, AttemptsAdded: 1})
}

func TestInterlocksHoldTheNewPolicyToo(t *testing.T) {
	t.Parallel()
	f := func(live, candidate engine.Decision, effects engine.Effects) {
		t.Helper()
		r := replay.New(replay.Options{Policy: func(string) engine.Policy { return always(candidate) }})
		r.Add(history(t, always(live), effects))
		if got := r.Totals(); got.Changed != 0 || got.Decisions != 1 {
			t.Errorf("%+v instead of %+v: %+v", candidate, live, got)
		}
	}
	f(stop, next, engine.EffectsUnknown)
	f(next, stop, engine.EffectsUnknown)
	f(next, same, engine.EffectsUnknown)
	f(stop, engine.Decision{Action: engine.Substitute}, engine.EffectsNone)
	f(engine.Decision{Action: engine.Retry, Delay: engine.WaitOf(time.Hour)}, stop, engine.EffectsNone)
}

// The interlock that makes a retry wait for as long as the upstream asked doesn't stop it:
// an attempt follows, and a policy that gives up saves that.
func TestAWaitThatWasProlongedIsNoEnd(t *testing.T) {
	t.Parallel()
	live := after(same, next, stop) // a, a, b
	rec := historyWith(t, live, engine.EffectsNone, engine.WaitOf(2*time.Second))
	if d, _ := rec.Attempts()[0].Decision(); d.Interlock() != engine.InterlockRetryAfter || len(rec.Attempts()) != 3 {
		t.Fatalf("the interlock is %v, and there are %d attempts", d.Interlock(), len(rec.Attempts()))
	}
	f := func(candidate engine.Policy, changed, saved int) {
		t.Helper()
		r := replay.New(replay.Options{Policy: func(string) engine.Policy { return candidate }})
		r.Add(rec)
		if got := r.Totals(); got.Changed != changed || got.AttemptsSaved != saved {
			t.Errorf("%+v, want %d changed and %d attempts saved", got, changed, saved)
		}
	}
	f(live, 0, 0)
	f(after(stop, next, stop), 1, 2)
}

func TestChangesTellBothSides(t *testing.T) {
	t.Parallel()
	reason := func(text string) engine.Reason {
		r, err := engine.ParseReason(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	from := engine.Decision{Action: engine.Fallback, Reason: reason("overloaded"), Rule: "live.rego:3"}
	to := engine.Decision{Reason: reason("careful"), Rule: "new.rego:7"}
	var got []replay.Change
	r := replay.New(replay.Options{
		Policy: func(group string) engine.Policy {
			if group != "g" {
				t.Errorf("the policy of group %q was asked", group)
			}
			return always(to)
		},
		Changed: func(c replay.Change) { got = append(got, c) },
	})
	r.Add(history(t, always(from), engine.EffectsNone))
	if len(got) != 2 {
		t.Fatalf("%d changes", len(got))
	}
	first := got[0]
	want := replay.Change{
		RequestID: "r1", At: time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC), Seq: 1, Group: "g", Cell: first.Cell,
		From:          replay.Effect{Action: engine.Fallback, Channel: "b", Reason: from.Reason, Rule: from.Rule},
		To:            replay.Effect{Reason: to.Reason, Rule: to.Rule},
		AttemptsSaved: 2, SavedUSD: first.SavedUSD, CostsUnknown: 1, LostSuccess: true,
	}
	if diff := cmp.Diff(want, first, cmp.AllowUnexported(engine.Reason{})); diff != "" {
		t.Error(diff)
	}
	if second := got[1]; !second.Hypothetical || second.AttemptsSaved != 0 || second.LostSuccess {
		t.Errorf("the second change is %+v", second)
	}
	if c := first.Cell; c.Class != engine.ClassProviderTransient || c.Budget != engine.BudgetLeft || !c.ReplaySafe {
		t.Errorf("cell %+v", c)
	}
}

func TestWhatIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	rec := history(t, after(next, next), engine.EffectsNone)
	text := string(rec.AppendJSON(nil))
	old, err := engine.ParseRecord([]byte(strings.ReplaceAll(text, `"asked":`, `"not_kept":`)))
	if err != nil {
		t.Fatal(err)
	}
	policy := func(string) engine.Policy { return always(stop) }
	r := replay.New(replay.Options{Policy: policy})
	r.Add(old)
	if got := r.Totals(); got.Decisions != 0 || got.Requests != 0 || got.Skipped[replay.SkippedNoQuestion] != 2 {
		t.Errorf("of an old record: %+v", got)
	}
	r = replay.New(replay.Options{Policy: policy, Group: "another"})
	r.Add(rec)
	if got := r.Totals(); got.Decisions != 0 || len(got.Skipped) > 0 {
		t.Errorf("of another group: %+v", got)
	}
}

// BenchmarkAdd is what the replay itself takes for a request with two decisions.
func BenchmarkAdd(b *testing.B) {
	rec := history(b, after(next, next), engine.EffectsNone)
	r := replay.New(replay.Options{Policy: func(string) engine.Policy { return always(stop) }})
	b.ReportAllocs()
	for b.Loop() {
		r.Add(rec)
	}
}
