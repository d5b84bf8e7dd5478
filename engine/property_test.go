package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

// schedules is how many random fault schedules one run takes through the engine.
const schedules = 30_000

const secretText = "sk-must-never-be-seen"

// chaos draws worlds: any configuration, any faults, any verdicts, any decisions, also
// absurd ones. A policy and a plugin may say anything; the interlocks must hold.
type chaos struct{ *rand.Rand }

func (c chaos) chance(percent int) bool { return c.IntN(100) < percent }

func (c chaos) upTo(d time.Duration) time.Duration { return time.Duration(c.Int64N(int64(d) + 1)) }

func pick[T any](c chaos, from ...T) T { return from[c.IntN(len(from))] }

func (c chaos) catalog() *engine.Catalog {
	spec := engine.Spec{RetryBudget: engine.RetryBudgetSpec{
		Ratio: 0.1, Floor: pick(c, 0, 0.1, 10), Cap: pick(c, 1.0, 2, 5, 100),
	}}
	providers := 1 + c.IntN(4)
	for i := range providers {
		p := engine.ProviderSpec{
			Name: fmt.Sprintf("p%d", i), BaseURL: "http://127.0.0.1:1", Auth: engine.AuthBearer, GateFallback: c.chance(30),
			Limits: engine.Limits{Connect: time.Second, Headers: time.Second, Gate: time.Second, Idle: time.Second},
		}
		for k := range 1 + c.IntN(3) {
			p.Keys = append(p.Keys, engine.KeySpec{Name: fmt.Sprintf("k%d", k), Secret: engine.NewSecret(secretText)})
		}
		spec.Providers = append(spec.Providers, p)
	}
	for g := range 1 + c.IntN(2) {
		attempts := 1 + c.IntN(5)
		group := engine.GroupSpec{
			Name: fmt.Sprintf("g%d", g), Models: []string{"m"}, Endpoints: []engine.Endpoint{engine.OpenAIChat},
			Strategy: pick(c, engine.StrategyFailover, engine.StrategyRoundRobin, engine.StrategyShuffle, engine.StrategyWeighted),
			MaxHops:  c.IntN(4),
			Budget: engine.BudgetSpec{
				Attempts: attempts, PerRoute: 1 + c.IntN(attempts), Deadline: 10 * time.Second, MinUseful: c.upTo(2 * time.Second),
				BackoffBase: 100 * time.Millisecond, BackoffMax: 2 * time.Second,
			},
			Breaker: engine.BreakerSpec{
				Mode:     pick(c, engine.BreakerOff, engine.BreakerWindow, engine.BreakerConsecutive),
				Failures: 1 + c.IntN(3), Window: time.Minute, OpenFor: c.upTo(10*time.Second) + 1, HalfOpenProbes: c.IntN(3),
			},
		}
		for i := range 1 + c.IntN(4) {
			ch := engine.ChannelSpec{Name: fmt.Sprintf("c%d", i), Provider: fmt.Sprintf("p%d", c.IntN(providers)), Weight: c.IntN(5)}
			if c.chance(20) {
				ch.SendAs, ch.Serves = map[string]string{"m": "own-name"}, "m"
			}
			group.Channels = append(group.Channels, ch)
		}
		spec.Groups = append(spec.Groups, group)
	}
	catalog, problems := engine.NewCatalog(spec)
	if catalog == nil {
		panic(fmt.Sprintf("BUG: the drawn configuration is refused: %+v", problems))
	}
	return catalog
}

func (c chaos) evidence(phase engine.Phase) *engine.Evidence {
	ev := &engine.Evidence{Phase: phase, Transport: engine.TransportHTTP, Status: pick(c, 400, 401, 408, 429, 500, 502, 503, 504, 529, 200)}
	switch c.IntN(4) {
	case 0:
		ev.Transport, ev.Status = engine.TransportNetwork, 0
		ev.NetKind, ev.NetOp = engine.NetKind(1+c.IntN(19)), engine.NetOp(1+c.IntN(5))
		ev.NotStarted = ev.NetOp == engine.OpDial
	case 1:
		ev.Transport = engine.TransportSSE
		ev.Frames = [][]byte{[]byte("data: {}\n\n")}
	case 2:
		ev.Finding = engine.Finding{Class: pick(c, engine.ClassSchemaInvalid, engine.ClassContractViolation)}
	}
	return ev
}

func (c chaos) outcome(*engine.Send) enginetest.Outcome {
	o := enginetest.Outcome{Takes: c.upTo(3 * time.Second), Status: 200, Model: pick(c, "", "m", "m-2024-08-06"), Relays: c.upTo(3 * time.Second)}
	if c.chance(5) {
		o.Takes = time.Hour
	}
	switch c.IntN(10) {
	case 0:
		o.Model = "another-model"
	case 1, 2:
		o.Broken = c.evidence(engine.AfterOutput)
	case 3, 4:
	default:
		o.Failure = c.evidence(pick(c, engine.BeforeHeaders, engine.BeforeOutput))
	}
	if c.chance(50) {
		o.Usage = engine.Usage{Input: engine.TokensOf(10), Output: engine.TokensOf(20)}
	}
	return o
}

func (c chaos) verdict(*engine.Evidence) engine.Verdict {
	v := engine.Verdict{Class: engine.Class(c.IntN(16)), Scope: engine.Scope(c.IntN(8))}
	if c.chance(40) {
		v.RetryAfter = engine.WaitOf(pick(c, 0, c.upTo(2*time.Second), time.Hour, 1<<62))
	}
	return v
}

func (c chaos) decision(q *engine.Question) engine.Decision {
	d := engine.Decision{Action: pick(c, engine.Abort, engine.Retry, engine.Retry, engine.Fallback, engine.Fallback, engine.Substitute)}
	if c.chance(3) {
		d.Fault = pick(c, "undefined", "conflict", "mistyped", "timeout", "error")
	}
	if c.chance(40) {
		d.Delay = engine.WaitOf(pick(c, 0, c.upTo(3*time.Second), time.Hour))
	}
	if c.chance(30) {
		d.Channel = pick(c, "c0", "c1", "c3", "g1/c0", "nobody")
	}
	mark := func() engine.GateMark { return engine.GateMark(c.IntN(3)) }
	d.Gates = engine.Gates{FailureClass: mark(), ResponsePhase: mark(), Idempotency: mark(), AttemptBudget: mark()}
	for range c.IntN(3) {
		d.Effects = append(d.Effects, engine.Effect{
			Kind: engine.EffectKind(c.IntN(5)), For: pick(c, -time.Second, 0, c.upTo(20*time.Second), 1<<62), After: c.IntN(3),
		})
	}
	return d
}

func (c chaos) request(caller *engine.Caller, i int) *engine.Request {
	req := &engine.Request{
		ID: fmt.Sprintf("r%d", i), Caller: caller, Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat},
		Stream: c.chance(50), SDKRetry: pick(c, 0, 0, 0, 1, 9, -1),
		Idempotency: engine.Idempotency{ReplaySafe: c.chance(70), Effects: pick(c, engine.EffectsNone, engine.EffectsNone, engine.EffectsPossible, engine.EffectsRecorded, engine.EffectsUnknown)},
	}
	if c.chance(30) {
		req.Idempotency.Key = secretText
	}
	if c.chance(20) {
		req.TimeLimit = engine.WaitOf(c.upTo(20 * time.Second))
	}
	return req
}

// TestInterlocksHoldOverRandomFaults takes random requests through random worlds that
// keep their standing over several requests, and checks every interlock on every trace.
func TestInterlocksHoldOverRandomFaults(t *testing.T) {
	t.Parallel()
	const requestsOfOneWorld = 6
	seen := map[engine.Interlock]int{}
	terminals := map[engine.Terminal]int{}
	denied := 0
	foreseen := foresight{seen: map[engine.Interlock]int{}}
	for seed := range uint64(schedules / requestsOfOneWorld) {
		c := chaos{rand.New(rand.NewPCG(seed, 4))}
		w := &enginetest.World{
			Now: time.Unix(1_800_000_000, 0), Catalog: c.catalog(), Standing: engine.NewStanding(), Rand: c,
			Upstream: c.outcome, Classify: c.verdict, Decide: c.decision,
		}
		if c.chance(50) {
			w.Narrow = c.routeAnswer
		}
		caller, _ := w.Catalog.Caller("")
		began, paid, earned := w.Now, 0.0, 0.0
		for i := range requestsOfOneWorld {
			w.LeavesAfter = -1
			w.Oversleeps = func() time.Duration { return pick(c, 0, 0, c.upTo(4*time.Second)) }
			if c.chance(25) {
				w.LeavesAfter = c.upTo(12 * time.Second)
			}
			tr, err := w.Run(c.request(caller, i))
			if err != nil {
				t.Fatalf("seed %d request %d: %v", seed, i, err)
			}
			if tr.Refusal != nil && tr.Refusal.Kind == engine.RefusalPolicy {
				denied++
				if broken := misrefused(tr); broken != "" {
					t.Fatalf("seed %d request %d: %s", seed, i, broken)
				}
			}
			if tr.Refusal == nil {
				if broken := violations(w.Catalog, tr); broken != "" {
					t.Fatalf("seed %d request %d: %s\nrecord: %s", seed, i, broken, tr.Record.AppendJSON(nil))
				}
				if wrong := foreseen.misforeseen(tr.Asked); wrong != "" {
					t.Fatalf("seed %d request %d: %s", seed, i, wrong)
				}
				p, e := retryTokens(tr)
				paid, earned = paid+p, earned+e
				budget := w.Catalog.RetryBudget()
				if most := budget.Cap + earned + budget.Floor*w.Now.Sub(began).Seconds(); paid > most+1e-6 {
					t.Fatalf("seed %d request %d: retry_budget: extra attempts took %g tokens of at most %g", seed, i, paid, most)
				}
				terminals[tr.Finish.Terminal]++
				for _, a := range tr.Record.Attempts() {
					d, _ := a.Decision()
					seen[d.Interlock()]++
				}
			}
			w.Now = w.Now.Add(c.upTo(5 * time.Second))
		}
	}
	// A property over a thing that never happens would hold by itself.
	for lock := engine.InterlockCommitted; lock <= engine.InterlockRetryBudget; lock++ {
		if seen[lock] == 0 {
			t.Errorf("interlock %s never acted in %d schedules", lock, schedules)
		}
	}
	for lock := engine.InterlockCommitted; lock <= engine.InterlockRetryBudget; lock++ {
		if lock != engine.InterlockCancelled && foreseen.seen[lock] == 0 {
			t.Errorf("interlock %s was never foreseen", lock)
		}
	}
	if denied == 0 {
		t.Error("no route policy left a request without a channel")
	}
	if foreseen.untold > foreseen.told {
		t.Errorf("of %d decisions nothing could be foreseen, of %d something", foreseen.untold, foreseen.told)
	}
	for end := engine.TerminalSuccess; end <= engine.TerminalPolicyStop; end++ {
		if terminals[end] == 0 {
			t.Errorf("no call ended with %s in %d schedules", end, schedules)
		}
	}
	t.Logf("%d schedules; interlocks %v; terminals %v; %d decisions foreseen, %d not: %v", schedules, seen, terminals, foreseen.told, foreseen.untold, foreseen.seen)
}

// violations names the first interlock or promise that a trace breaks.
func violations(catalog *engine.Catalog, tr enginetest.Trace) string {
	req, group := tr.Request, (*engine.Group)(nil)
	for _, g := range catalog.Groups() {
		if group == nil {
			group = g
		}
	}
	budget := narrowedBudget(group.Budget(), tr.Narrowed)
	deadline := req.Arrived.Add(budget.Deadline)
	if d, given := req.TimeLimit.Get(); given {
		// A limit counts as no less than the minimum useful time and a little.
		if own := req.Arrived.Add(max(d, budget.MinUseful+250*time.Millisecond)); own.Before(deadline) {
			deadline = own
		}
	}
	perRoute := map[string]int{}
	for i, s := range tr.Sent {
		route := s.Send.Channel.Group().Name() + "/" + s.Send.Channel.Name()
		perRoute[route]++
		switch {
		case !tr.Committed.IsZero() && i >= tr.SentAtCommit:
			return "committed: an attempt started after commit"
		case !tr.Left.IsZero() && s.At.After(tr.Left):
			return "cancelled: an attempt started after the caller had gone"
		case i+1 > min(max(1, group.Budget().Attempts-max(req.SDKRetry, 0)), budget.Attempts):
			return "budget: more attempts than the budget allows"
		case perRoute[route] > budget.PerRoute:
			return "budget: more attempts on one channel than the budget allows"
		case deadline.Sub(s.At) < budget.MinUseful || !deadline.After(s.At):
			return "budget: an attempt started without its minimum useful time"
		case !s.Send.Deadline.Equal(deadline):
			return "budget: an attempt may outlive the deadline"
		case tr.Narrowed != nil && !leaves(tr.Narrowed, route):
			return "eligible: an attempt went to a channel that the route policy had dropped"
		case !slices.Contains(s.Send.Channel.Group().Models(), req.Contract.Model) || !slices.Contains(s.Send.Channel.Group().Endpoints(), req.Contract.Endpoint):
			return "contract: an attempt went to a group that doesn't serve the contract"
		case s.Send.ModelSent != "m" && s.Send.ModelSent != "own-name":
			return "contract: an attempt was sent under an undeclared name"
		}
		if i == 0 {
			continue
		}
		f := s.After.Question.Failure
		idem := req.Idempotency
		if idem.Effects == engine.EffectsUnknown || f.Completion() != engine.CompletionNone && !idem.ReplaySafe {
			return "effects: a replay that is not known to be safe"
		}
		if s.After.Committed {
			return "committed: an attempt was decided on after output"
		}
		if wait, given := f.RetryAfter().Get(); given && s.Send.Channel == tr.Sent[i-1].Send.Channel && s.At.Sub(s.After.At) < wait {
			return "retry_after: a same-route attempt came before the upstream's Retry-After"
		}
		if setAside(s.After.Decision, tr.Sent[i-1], s) {
			return "eligible: an attempt went to a channel or key that its own decision had set aside"
		}
	}
	return promises(tr, perRoute)
}

// retryTokens counts what the extra attempts of a trace cost at least, and what it may
// have earned.
func retryTokens(tr enginetest.Trace) (paid, earned float64) {
	if len(tr.Sent) > 1 {
		paid = float64(len(tr.Sent) - 1)
	}
	if len(tr.Sent) == 1 && tr.Finish.Terminal == engine.TerminalSuccess {
		earned = 0.1
	}
	return paid, earned
}

// setAside says whether the decision before an attempt had taken its channel or key away.
func setAside(d engine.Decision, failed, next enginetest.Sent) bool {
	if failed.Send.Channel != next.Send.Channel || next.After.Question.Failure.Scope() == engine.ScopeRequest {
		return false // what only the request is to blame for sets nothing aside
	}
	for _, e := range d.Effects {
		over := next.After.At.Add(e.For)
		if e.For > 24*time.Hour {
			over = next.At.Add(1)
		}
		if !next.At.Before(over) {
			continue
		}
		switch e.Kind {
		case engine.EffectEvictModel:
			return true
		case engine.EffectQuarantineChannel:
			if e.After <= 1 {
				return true
			}
		case engine.EffectCoolKey:
			if failed.Send.Key == next.Send.Key {
				return true
			}
		}
	}
	return false
}

// promises checks what is promised besides the interlocks.
func promises(tr enginetest.Trace, routes map[string]int) string {
	rec := tr.Record
	text := rec.AppendJSON(nil)
	again, err := engine.ParseRecord(text)
	switch {
	case len(rec.Attempts()) != len(tr.Sent):
		return fmt.Sprintf("the ledger has %d attempts and the upstreams saw %d calls", len(rec.Attempts()), len(tr.Sent))
	case bytes.Contains(text, []byte(secretText)):
		return "a secret is in the record"
	case err != nil || !bytes.Equal(again.AppendJSON(nil), text):
		return fmt.Sprintf("the record doesn't survive a round trip (%v): %s", err, again.AppendJSON(nil))
	case rec.Terminal() == engine.TerminalNone || rec.Terminal() != tr.Finish.Terminal:
		return "the record has no terminal reason"
	case !tr.Left.IsZero() && rec.Terminal() != engine.TerminalCancelled:
		return "the caller had gone, and the request didn't end as cancelled"
	case rec.Status() == 0:
		return "the record has no status"
	case tr.Finish.Reply.Kind != engine.ReplyNone && tr.Finish.Terminal == engine.TerminalCancelled:
		return "somebody who has gone gets a reply"
	case !tr.Committed.IsZero() && tr.Finish.Reply.Kind != engine.ReplyNone && tr.Finish.Reply.Kind != engine.ReplyPartial:
		return "a committed answer is followed by another"
	case tr.Committed.IsZero() && tr.Finish.Reply.Kind == engine.ReplyNone && tr.Finish.Terminal != engine.TerminalCancelled:
		return "a caller who waits gets nothing"
	case len(tr.Sent) == 0 && tr.Finish.Reply.Kind != engine.ReplyOwn:
		return "no attempt and no error"
	}
	for i, a := range rec.Attempts() {
		if !a.Ended() || a.Seq() != i+1 {
			return fmt.Sprintf("attempt %d is left open or misnumbered", i+1)
		}
		if !a.Failed() && i != len(tr.Sent)-1 {
			return "an attempt that didn't fail was followed by another"
		}
	}
	if wrong := misnarrowed(tr.Narrowed, again.Route()); wrong != "" {
		return wrong
	}
	return misremembered(tr.Asked, again)
}
