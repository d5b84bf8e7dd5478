package proxy

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
)

// metrics are the proxy's counters. All names and labels are in this file.
type metrics struct {
	requests     family[requestLabels, prometheus.Counter]
	durations    family[durationLabels, prometheus.Observer]
	attempts     family[attemptLabels, prometheus.Counter]
	decisions    family[decisionLabels, prometheus.Counter]
	interlocks   family[engine.Interlock, prometheus.Counter]
	unknowns     family[string, prometheus.Counter]
	classifiers  family[faultLabels, prometheus.Counter]
	policyErrors family[string, prometheus.Counter]
	// decisionTimes are of the policy's answers after a failure.
	decisionTimes prometheus.Observer
	routes        family[routeOutcome, prometheus.Counter]
	widenings     family[engine.Widening, prometheus.Counter]
	refusals      family[refusalLabels, prometheus.Counter]
	replays       family[replayLabels, prometheus.Counter]
	admissions    family[admissionLabels, prometheus.Counter]
	panics        prometheus.Counter
}

type (
	requestLabels struct {
		group    string
		endpoint engine.Endpoint
		caller   string
		terminal engine.Terminal
	}
	durationLabels struct {
		group    string
		endpoint engine.Endpoint
	}
	attemptLabels struct {
		group, channel, action string
		class, phase           string
	}
	decisionLabels struct {
		action engine.Action
		gate   string
	}
	faultLabels  struct{ classifier, kind string }
	replayLabels struct {
		group  string
		source engine.RetrySource
	}
	admissionLabels struct {
		caller string
		code   code
	}
	refusalLabels struct {
		endpoint engine.Endpoint
		code     code
	}
)

// durationBuckets are seconds, from a cached answer to a long reasoning stream.
var durationBuckets = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600}

// decisionBuckets are seconds, from a remembered answer to the default time limit.
var decisionBuckets = []float64{2e-6, 5e-6, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 5e-3, 2e-2, 0.1, 0.25}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	requests := counter("fourgate_requests_total", "Requests by how they ended.", "group", "endpoint", "caller", "terminal")
	attempts := counter("fourgate_attempts_total", "Upstream calls.", "group", "channel", "action", "class", "phase")
	decisions := counter("fourgate_decisions_total", "Decisions of the policy by action and the first gate that stopped.", "action", "gate")
	interlocks := counter("fourgate_interlock_total", "Times that an interlock overruled a decision.", "interlock")
	unknowns := counter("fourgate_unknown_failures_total", "Failures that no classifier knew.", "provider")
	classifiers := counter("fourgate_classifier_faults_total", "Classifier calls without a usable verdict.", "classifier", "kind")
	policyErrors := counter("fourgate_policy_errors_total", "Questions to which the policy gave no usable answer.", "kind")
	routes := counter("fourgate_route_policy_total", "Answers of policies before the first attempt, by what came of the chain.", "outcome")
	widenings := counter("fourgate_policy_widenings_total", "Attempts of policies to widen a chain or its budget. Each was refused.", "what")
	refusals := counter("fourgate_refusals_total", "Requests refused before any upstream call.", "endpoint", "code")
	replays := counter("fourgate_sdk_replays_total", "Requests that an SDK or an application repeated, by how that is known.", "group", "source")
	admissions := counter("fourgate_admission_refusals_total", "Requests of known callers that got no chain of channels.", "caller", "code")
	panics := prometheus.NewCounter(prometheus.CounterOpts{Name: "fourgate_panics_total", Help: "Requests ended by a defect of the proxy."})
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "fourgate_request_duration_seconds", Help: "Time from a request's arrival to its end.", Buckets: durationBuckets,
	}, []string{"group", "endpoint"})
	decisionTimes := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "fourgate_policy_eval_seconds", Help: "Time that the policy took to answer after a failure, remembered answers included.", Buckets: decisionBuckets,
	})
	for _, c := range []prometheus.Collector{requests, attempts, decisions, interlocks, unknowns, classifiers, policyErrors, routes, widenings, refusals, replays, admissions, panics, durations, decisionTimes} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return &metrics{
		requests: newFamily(func(l requestLabels) prometheus.Counter {
			return requests.WithLabelValues(l.group, l.endpoint.String(), l.caller, l.terminal.String())
		}),
		durations: newFamily(func(l durationLabels) prometheus.Observer {
			return durations.WithLabelValues(l.group, l.endpoint.String())
		}),
		attempts: newFamily(func(l attemptLabels) prometheus.Counter {
			return attempts.WithLabelValues(l.group, l.channel, l.action, l.class, l.phase)
		}),
		decisions: newFamily(func(l decisionLabels) prometheus.Counter {
			return decisions.WithLabelValues(l.action.String(), l.gate)
		}),
		interlocks: newFamily(func(i engine.Interlock) prometheus.Counter {
			return interlocks.WithLabelValues(i.String())
		}),
		unknowns: newFamily(func(provider string) prometheus.Counter {
			return unknowns.WithLabelValues(provider)
		}),
		classifiers: newFamily(func(l faultLabels) prometheus.Counter {
			return classifiers.WithLabelValues(l.classifier, l.kind)
		}),
		policyErrors: newFamily(func(kind string) prometheus.Counter {
			return policyErrors.WithLabelValues(kind)
		}),
		routes: newFamily(func(o routeOutcome) prometheus.Counter {
			return routes.WithLabelValues(string(o))
		}),
		widenings: newFamily(func(w engine.Widening) prometheus.Counter {
			return widenings.WithLabelValues(w.String())
		}),
		refusals: newFamily(func(l refusalLabels) prometheus.Counter {
			return refusals.WithLabelValues(l.endpoint.String(), string(l.code))
		}),
		replays: newFamily(func(l replayLabels) prometheus.Counter {
			return replays.WithLabelValues(l.group, l.source.String())
		}),
		admissions: newFamily(func(l admissionLabels) prometheus.Counter {
			return admissions.WithLabelValues(l.caller, string(l.code))
		}),
		decisionTimes: decisionTimes,
		panics:        panics,
	}, nil
}

// family remembers the metric of each label set that was used, so that counting costs
// one map look-up instead of hashing label strings. The label sets are bounded by the
// configuration and closed words.
type family[K comparable, M any] struct {
	mu    *sync.RWMutex
	known map[K]M
	make  func(K) M
}

func newFamily[K comparable, M any](f func(K) M) family[K, M] {
	return family[K, M]{mu: new(sync.RWMutex), known: make(map[K]M), make: f}
}

func (f family[K, M]) of(k K) M {
	f.mu.RLock()
	m, ok := f.known[k]
	f.mu.RUnlock()
	if ok {
		return m
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok = f.known[k]; !ok {
		m = f.make(k)
		f.known[k] = m
	}
	return m
}

// finished counts a request and its attempts once its record is complete.
func (m *metrics) finished(r *engine.Record) {
	attempts := r.Attempts()
	group := ""
	for i := range attempts {
		a := &attempts[i]
		if i == 0 {
			group = a.Group()
		}
		labels := attemptLabels{group: a.Group(), channel: a.Channel(), action: comingAbout(a), class: engine.ClassOK.String(), phase: a.Phase().String()}
		if a.Failed() {
			labels.class = a.Class().String()
			if a.Class() == engine.ClassUnknown {
				m.unknowns.of(a.Provider()).Inc()
			}
		}
		m.attempts.of(labels).Inc()
		if d, ok := a.Decision(); ok {
			m.decisions.of(decisionLabels{action: d.Action(), gate: stoppingGate(d.Gates())}).Inc()
			if d.Interlock() != engine.InterlockNone {
				m.interlocks.of(d.Interlock()).Inc()
			}
		}
	}
	endpoint := r.Contract().Endpoint
	m.requests.of(requestLabels{group: group, endpoint: endpoint, caller: r.Caller(), terminal: r.Terminal()}).Inc()
	m.durations.of(durationLabels{group: group, endpoint: endpoint}).Observe(float64(r.Elapsed()) / float64(time.Second))
}

// repeated counts a request whose SDK has made it before. The group is the one whose retry
// budget pays for it: a replay that it couldn't pay has no attempt that would name one.
func (m *metrics) repeated(group string, r *engine.Record) {
	if n, source := r.SDKRetry(); n > 0 {
		m.replays.of(replayLabels{group, source}).Inc()
	}
}

// comingAbout says how an attempt came about.
func comingAbout(a *engine.AttemptRecord) string {
	if a.Action() == engine.Abort {
		return "first"
	}
	return a.Action().String()
}

// stoppingGate names the first gate that said stop, or none.
func stoppingGate(g engine.Gates) string {
	switch engine.GateStop {
	case g.FailureClass:
		return "failure_class"
	case g.ResponsePhase:
		return "response_phase"
	case g.Idempotency:
		return "idempotency"
	case g.AttemptBudget:
		return "attempt_budget"
	}
	return "none"
}
