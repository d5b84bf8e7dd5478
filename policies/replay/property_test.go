package replay_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
	"github.com/fourgate-dev/fourgate/policies/replay"
)

// chaos draws worlds in which anything fails and a policy that says anything.
type chaos struct{ *rand.Rand }

func (c chaos) upTo(d time.Duration) time.Duration { return time.Duration(c.Int64N(int64(d) + 1)) }

func pick[T any](c chaos, from ...T) T { return from[c.IntN(len(from))] }

func (c chaos) catalog(t *testing.T) *engine.Catalog {
	t.Helper()
	attempts := 2 + c.IntN(4)
	group := engine.GroupSpec{
		Name: "g", Models: []string{"m"}, Endpoints: []engine.Endpoint{engine.OpenAIChat}, Strategy: engine.StrategyFailover,
		Budget: engine.BudgetSpec{
			Attempts: attempts, PerRoute: 1 + c.IntN(attempts), Deadline: 10 * time.Second, MinUseful: c.upTo(2 * time.Second),
			BackoffBase: 100 * time.Millisecond, BackoffMax: 2 * time.Second,
		},
		Breaker: engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1 + c.IntN(4), OpenFor: c.upTo(5*time.Second) + 1},
	}
	spec := engine.Spec{RetryBudget: engine.RetryBudgetSpec{Ratio: 0.1, Floor: pick(c, 0.1, 10), Cap: pick(c, 2.0, 100)}}
	for i := range 2 + c.IntN(3) {
		name := fmt.Sprintf("c%d", i)
		spec.Providers = append(spec.Providers, engine.ProviderSpec{
			Name: name, BaseURL: "http://127.0.0.1:1", Auth: engine.AuthBearer,
			Keys:   []engine.KeySpec{{Name: "one", Secret: engine.NewSecret("x")}, {Name: "two", Secret: engine.NewSecret("y")}}[:1+c.IntN(2)],
			Limits: engine.Limits{Connect: time.Second, Headers: time.Second, Gate: time.Second, Idle: time.Second},
		})
		group.Channels = append(group.Channels, engine.ChannelSpec{Name: name, Provider: name, Weight: 1})
	}
	spec.Groups = []engine.GroupSpec{group}
	catalog, problems := engine.NewCatalog(spec)
	if catalog == nil {
		t.Fatal(problems)
	}
	return catalog
}

func (c chaos) outcome(*engine.Send) enginetest.Outcome {
	o := enginetest.Outcome{Takes: c.upTo(2 * time.Second), Status: 200, Model: "m", Relays: c.upTo(time.Second)}
	ev := &engine.Evidence{Phase: engine.BeforeOutput, Transport: engine.TransportHTTP, Status: pick(c, 400, 401, 429, 500, 503)}
	switch c.IntN(8) {
	case 0:
	case 1:
		broken := *ev
		broken.Phase = engine.AfterOutput
		o.Broken = &broken
	case 2:
		ev.Transport, ev.Status, ev.NetKind, ev.NetOp = engine.TransportNetwork, 0, engine.NetKind(1+c.IntN(19)), engine.NetOp(1+c.IntN(5))
		o.Failure = ev
	default:
		o.Failure = ev
	}
	return o
}

func (c chaos) verdict(*engine.Evidence) engine.Verdict {
	v := engine.Verdict{Class: engine.Class(c.IntN(12)), Scope: engine.Scope(c.IntN(5))}
	if c.IntN(3) == 0 {
		v.RetryAfter = engine.WaitOf(pick(c, 0, c.upTo(2*time.Second), time.Hour))
	}
	return v
}

func (c chaos) decision(*engine.Question) engine.Decision {
	d := engine.Decision{Action: pick(c, engine.Abort, engine.Retry, engine.Retry, engine.Fallback, engine.Fallback, engine.Substitute)}
	if c.IntN(20) == 0 {
		d.Fault = "timeout"
	}
	if c.IntN(2) == 0 {
		d.Delay = engine.WaitOf(pick(c, 0, c.upTo(3*time.Second), time.Hour))
	}
	if c.IntN(3) == 0 {
		d.Channel = pick(c, "c0", "c1", "c3", "nobody")
	}
	for range c.IntN(3) {
		d.Effects = append(d.Effects, engine.Effect{
			Kind: engine.EffectKind(c.IntN(5)), For: pick(c, 0, c.upTo(5*time.Second), 1<<62), After: c.IntN(3),
		})
	}
	return d
}

// TestThePolicyThatDecidedChangesNothing runs requests through random worlds and asks the
// very same answers again, from the records as they are read back.
func TestThePolicyThatDecidedChangesNothing(t *testing.T) {
	t.Parallel()
	const worlds, requests = 800, 6
	decisions := 0
	for seed := range uint64(worlds) {
		c := chaos{rand.New(rand.NewPCG(seed, 9))}
		w := &enginetest.World{
			Now: time.Unix(1_800_000_000, 7), Catalog: c.catalog(t), Standing: engine.NewStanding(), Rand: c,
			Upstream: c.outcome, Classify: c.verdict, Decide: c.decision,
			Oversleeps: func() time.Duration { return pick(c, 0, 0, c.upTo(3*time.Second)) },
		}
		caller, _ := w.Catalog.Caller("")
		for i := range requests {
			w.LeavesAfter = pick(c, -1, -1, -1, c.upTo(8*time.Second))
			tr, err := w.Run(&engine.Request{
				ID: fmt.Sprint(i), Caller: caller, Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat},
				Idempotency: engine.Idempotency{ReplaySafe: c.IntN(4) > 0, Effects: pick(c, engine.EffectsNone, engine.EffectsNone, engine.EffectsUnknown)},
			})
			if err != nil {
				t.Fatalf("seed %d request %d: %v", seed, i, err)
			}
			if tr.Refusal != nil {
				continue
			}
			text := tr.Record.AppendJSON(nil)
			rec, err := engine.ParseRecord(text)
			if err != nil {
				t.Fatal(err)
			}
			next := 0
			r := replay.New(replay.Options{
				Policy: func(string) engine.Policy {
					return deciding(func(*engine.Question) engine.Decision {
						next++
						return tr.Asked[next-1].Decision
					})
				},
				Changed: func(change replay.Change) {
					t.Errorf("seed %d request %d: %+v\n%s", seed, i, change, text)
				},
			})
			r.Add(rec)
			got := r.Totals()
			if got.Decisions != len(tr.Asked) || got.EffectsChanged > 0 || got.WaitsChanged > 0 {
				t.Errorf("seed %d request %d: %+v of %d decisions\n%s", seed, i, got, len(tr.Asked), text)
			}
			if t.Failed() {
				t.FailNow()
			}
			decisions += got.Decisions
			w.Now = w.Now.Add(c.upTo(5 * time.Second))
		}
	}
	if decisions < worlds {
		t.Errorf("only %d decisions were asked again", decisions)
	}
}

// deciding is a policy that is a function.
type deciding func(q *engine.Question) engine.Decision

func (f deciding) Decide(q *engine.Question) engine.Decision { return f(q) }
