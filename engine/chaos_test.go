package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

const secretText = "sk-must-never-be-seen"

// chaos draws worlds: any configuration, any faults, any verdicts, any decisions, also
// absurd ones. A policy and a plugin may say anything; the interlocks must hold.
type chaos struct{ *rand.Rand }

func (c chaos) chance(percent int) bool { return c.IntN(100) < percent }

func (c chaos) upTo(d time.Duration) time.Duration { return time.Duration(c.Int64N(int64(d) + 1)) }

func pick[T any](c chaos, from ...T) T { return from[c.IntN(len(from))] }

// catalog is a configuration of one to four providers, one or two groups and perhaps
// several callers.
func (c chaos) catalog() *engine.Catalog { return built(c.spec()) }

func built(spec engine.Spec) *engine.Catalog {
	catalog, problems := engine.NewCatalog(spec)
	if catalog == nil {
		panic(fmt.Sprintf("BUG: the drawn configuration is refused: %+v", problems))
	}
	return catalog
}

func (c chaos) spec() engine.Spec {
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
		spec.Groups = append(spec.Groups, c.group(fmt.Sprintf("g%d", g), providers))
	}
	if c.chance(60) {
		for i := range 1 + c.IntN(3) {
			spec.Callers = append(spec.Callers, c.caller(i, spec.Groups))
		}
	}
	return spec
}

func (c chaos) group(name string, providers int) engine.GroupSpec {
	attempts := 1 + c.IntN(5)
	group := engine.GroupSpec{
		Name: name, Models: []string{"m"}, Endpoints: []engine.Endpoint{engine.OpenAIChat},
		Strategy: pick(c, strategies...),
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
	if c.chance(30) {
		group.RPM = 1 + c.IntN(8)
	}
	for i := range 1 + c.IntN(4) {
		ch := engine.ChannelSpec{
			Name: fmt.Sprintf("c%d", i), Provider: fmt.Sprintf("p%d", c.IntN(providers)), Weight: c.IntN(5), Priority: c.IntN(3),
			Cost: engine.Cost{Given: true, Input: float64(c.IntN(4)), Output: float64(c.IntN(4)), CachedInput: c.Float64(), CachedInputGiven: c.chance(50)},
		}
		if c.chance(20) {
			ch.SendAs, ch.Serves = map[string]string{"m": "own-name"}, "m"
		}
		group.Channels = append(group.Channels, ch)
	}
	return group
}

// caller may use some of the groups, in any order, one after the other or all at once.
func (c chaos) caller(i int, groups []engine.GroupSpec) engine.CallerSpec {
	s := engine.CallerSpec{
		Name: fmt.Sprintf("caller%d", i), KeySHA256: strings.Repeat(fmt.Sprintf("%02x", i+1), 32),
		Routing: pick(c, engine.RoutingOrdered, engine.RoutingSmart),
	}
	for _, g := range c.Perm(len(groups))[:1+c.IntN(len(groups))] {
		s.Groups = append(s.Groups, groups[g].Name)
	}
	if c.chance(20) {
		s.RPM = 1 + c.IntN(5)
	}
	if c.chance(20) {
		s.Budget = engine.CallerBudget{Attempts: c.IntN(5), Deadline: pick(c, 0, 3*time.Second, time.Hour)}
	}
	return s
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
	if c.chance(50) { // so that what has failed comes again
		req.BodyHash[0] = byte(1 + c.IntN(3))
	}
	req.Estimate = engine.EstimateOf(c.IntN(100_000), int64(c.IntN(2000)), c.chance(30))
	if c.chance(20) {
		req.TimeLimit = engine.WaitOf(c.upTo(20 * time.Second))
	}
	return req
}

// unsettle does by hand, and has other instances tell, what takes channels out or puts
// them back.
func (c chaos) unsettle(now time.Time, catalog *engine.Catalog, s *engine.Standing, twin *rateTwin) {
	g := pick(c, catalog.Groups()...)
	ch := pick(c, g.Channels()...)
	p := pick(c, catalog.Providers()...)
	k := pick(c, p.Keys()...)
	until := now.Add(c.upTo(20*time.Second) - time.Second)
	switch c.IntN(8) {
	case 0:
		s.Disable(ch, pick(c, time.Time{}, until))
	case 1, 2:
		s.Reset(now, engine.Fact{Kind: pick(c, engine.FactNothing, engine.FactChannelDisabled, engine.FactBreakerOpen)})
	case 3:
		others := c.IntN(6)
		s.LearnRate(engine.GroupRate(g.Name()), others, until)
		twin.others(engine.GroupRate(g.Name()), others, until)
	case 4:
		s.Forget()
		clear(twin.told)
	case 5:
		s.ProbePassed(now, ch)
	default:
		for range 1 + c.IntN(4) {
			ch = pick(c, g.Channels()...)
			s.Learn(now, engine.Fact{
				Kind:  pick(c, engine.FactKeyCooled, engine.FactChannelQuarantined, engine.FactModelEvicted, engine.FactBreakerOpen, engine.FactChannelDisabled),
				Group: g.Name(), Channel: ch.Name(), Model: pick(c, "m", "n"), Provider: p.Name(), Key: k.Name(), KeyPrint: k.Print(),
				Until: until, Lifted: c.chance(10),
			})
		}
	}
}
