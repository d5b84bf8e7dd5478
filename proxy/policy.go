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

// fault is what a policy got wrong, as a log tells it.
type fault struct{ kind, rule, why string }

// faultLog tells of policies that gave no usable answer: each fault is counted, and one
// line a minute of each kind says what was wrong, so that an outage can't flood the log.
type faultLog struct {
	mu   sync.Mutex
	last map[string]faultSeen // by kind, which is a closed set
}

type faultSeen struct {
	at     time.Time
	silent int
}

const faultLogEvery = time.Minute

// tell logs a fault unless one of its kind was logged lately.
func (l *faultLog) tell(x *exchange, message string, f fault) {
	now := x.now()
	l.mu.Lock()
	if l.last == nil {
		l.last = map[string]faultSeen{}
	}
	seen, known := l.last[f.kind]
	if known && now.Sub(seen.at) < faultLogEvery {
		seen.silent++
		l.last[f.kind] = seen
		l.mu.Unlock()
		return
	}
	l.last[f.kind] = faultSeen{at: now}
	l.mu.Unlock()
	x.server.around.Logger.Error(message, slog.String("policy_fault", f.kind), slog.String("rule", f.rule), slog.String("why", f.why),
		slog.String("request_id", x.id), slog.Int("silent_since_last", seen.silent))
}
