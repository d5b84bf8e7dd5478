package proxy

import (
	"log/slog"
	"sync"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// deciding is a group's policy with what is worth finding out once.
type deciding struct {
	policy   engine.Policy
	route    engine.RoutePolicy // nil if it has nothing to say before the first attempt
	revision string             // tells it from other versions; may be empty
}

func decidingOf(p engine.Policy) *deciding {
	d := &deciding{policy: p}
	if route, ok := p.(engine.RoutePolicy); ok {
		may, says := p.(interface{ HasRoute() bool })
		if !says || may.HasRoute() {
			d.route = route
		}
	}
	if v, ok := p.(interface{ Revision() string }); ok {
		d.revision = v.Revision()
	}
	return d
}

// policiesOf gives each group its policy, and says whether any of them has an entry
// point before the first attempt.
func policiesOf(parts Parts) (policies map[*engine.Group]*deciding, routed bool) {
	policies = make(map[*engine.Group]*deciding)
	outer := decidingOf(parts.Policy)
	for _, g := range parts.Catalog.Groups() {
		d := outer
		if own, ok := parts.GroupPolicies[g.Name()]; ok {
			d = decidingOf(own)
		}
		policies[g] = d
		routed = routed || d.route != nil
	}
	return policies, routed
}

// ask asks the policy of the chain's primary group.
func (x *exchange) ask(in *engine.Ask) engine.Event {
	began := x.now()
	d := x.snapshot.policies[x.chain.Group()].policy.Decide(in.Question)
	x.server.metrics.decisionTimes.Observe(x.now().Sub(began).Seconds())
	if d.Fault != "" {
		x.server.metrics.policyErrors.of(d.Fault).Inc()
		x.server.policyLog.tell(x, "the policy gave no usable answer, so the request was aborted",
			fault{kind: d.Fault, rule: d.Rule, why: d.Why})
	}
	x.events.decided = engine.Decided{Attempt: in.Attempt, Decision: d}
	return &x.events.decided
}

// routeOutcome is what a policy made of a chain before the first attempt.
type routeOutcome string

const (
	routeUnchanged routeOutcome = "unchanged"
	routeNarrowed  routeOutcome = "narrowed"
	routeRefused   routeOutcome = "refused"
	routeError     routeOutcome = "error"
)

// narrow asks the policy of the primary group once, before the first attempt, which
// channels of the chain may serve the request. What it can't answer serves nobody.
func (x *exchange) narrow() *problem {
	policy := x.snapshot.policies[x.chain.Group()].route
	if policy == nil {
		x.cut(x.chain)
		return nil
	}
	asked := x.chain
	chain, answer, narrowing, refusal := x.ruledBy(policy, asked)
	if refusal != nil && answer.Fault == "" {
		// What only other instances know may not leave a request nobody.
		if wider, more := x.server.around.Standing.Doubt(x.now(), &x.request, x.chain, x.server.around.Rand); more {
			asked = wider
			chain, answer, narrowing, refusal = x.ruledBy(policy, asked)
		}
	}
	x.explainPolicy(asked, chain)
	m := x.server.metrics
	m.routes.of(outcomeOf(narrowing, refusal)).Inc()
	if answer.Fault != "" {
		m.policyErrors.of(answer.Fault).Inc()
		x.server.policyLog.tell(x, "the policy gave no usable answer before the first attempt, so the request was refused",
			fault{kind: answer.Fault, rule: answer.Rule, why: answer.Why})
	}
	if narrowing != nil {
		for _, w := range narrowing.Refused() {
			m.widenings.of(w).Inc()
			x.server.policyLog.tell(x, "the policy tried to widen the chain before the first attempt, and that part of its answer was refused",
				fault{kind: w.String(), rule: answer.Rule, why: "a policy may drop and reorder the channels it was shown and tighten the budget, nothing else"})
		}
	}
	if refusal != nil {
		return x.turnAway(refusal)
	}
	x.cut(chain)
	return nil
}

// cut takes what max_hops allows of a chain.
func (x *exchange) cut(chain engine.Chain) {
	var beyond []*engine.Channel
	x.chain, beyond = chain.Cut()
	if !x.server.settings.DebugHeaders {
		return
	}
	for _, ch := range beyond {
		x.outs = append(x.outs, engine.Out{Channel: ch, Why: engine.BarHops})
	}
}

// ruledBy is what a policy makes of a chain.
func (x *exchange) ruledBy(policy engine.RoutePolicy, over engine.Chain) (engine.Chain, engine.RouteAnswer, *engine.Narrowing, *engine.Refusal) {
	q := over.RouteQuestion(&x.request, x.now())
	answer := policy.Route(&q)
	chain, narrowing, refusal := over.Narrow(answer)
	return chain, answer, narrowing, refusal
}

func outcomeOf(n *engine.Narrowing, refusal *engine.Refusal) routeOutcome {
	switch {
	case n == nil:
		return routeUnchanged
	case n.Fault() != "":
		return routeError
	case refusal != nil:
		return routeRefused
	case len(n.Dropped()) > 0 || n.Reordered() || n.Attempts() != 0 || n.PerRoute() != 0 || n.Deadline() != 0:
		return routeNarrowed
	}
	return routeUnchanged
}

// fault is what a policy got wrong, as a log tells it.
type fault struct{ kind, rule, why string }

// faultLog tells of policies that gave no usable answer: each fault is counted, and one
// line a minute of each kind says what was wrong, so that an outage can't flood the log.
type faultLog struct {
	mu   sync.Mutex
	last map[faultKey]faultSeen // closed sets of messages and kinds
}

type faultKey struct{ message, kind string }

type faultSeen struct {
	at     time.Time
	silent int
}

const faultLogEvery = time.Minute

// tell logs a fault unless one of its kind was logged lately.
func (l *faultLog) tell(x *exchange, message string, f fault) {
	now, key := x.now(), faultKey{message, f.kind}
	l.mu.Lock()
	if l.last == nil {
		l.last = map[faultKey]faultSeen{}
	}
	seen, known := l.last[key]
	if known && now.Sub(seen.at) < faultLogEvery {
		seen.silent++
		l.last[key] = seen
		l.mu.Unlock()
		return
	}
	l.last[key] = faultSeen{at: now}
	l.mu.Unlock()
	x.server.around.Logger.Error(message, slog.String("policy_error", f.kind), slog.String("rule", f.rule), slog.String("why", f.why),
		slog.String("request_id", x.id), slog.Int("silent_since_last", seen.silent))
}
