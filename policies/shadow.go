package policies

import (
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
)

// maxShadowQueue bounds the questions that wait for candidates: about a megabyte.
// Failures come in bursts; a burst that is larger is compared in part, and the rest is
// counted as dropped.
const maxShadowQueue = 1024

// Sink is told of every disagreement, from one goroutine. It may keep d, and must not
// wait: the questions behind it do.
type Sink interface {
	Disagreed(d engine.Disagreement)
}

// Shadows asks candidate policies the questions that live ones have answered, and tells
// a [Sink] where they disagree. Candidates decide nothing and hold nobody up: there is
// one queue and one goroutine for all of them, whoever finds the queue full goes on
// without, and a candidate that fails or panics is counted.
//
// There is one for the life of a process, so that reloads keep the counters; it is a
// [prometheus.Collector] of them.
//
//	shadows := policies.NewShadows(store) // a *ledger.Store is a Sink; nil only counts
//	defer shadows.Close()                 // before the sink is closed
//	registry.MustRegister(shadows)
//	policy := shadows.Beside(live, candidate) // at each load, in the place of live
type Shadows struct {
	sink Sink
	jobs chan shadowJob

	once   sync.Once
	quit   chan struct{}
	worker sync.WaitGroup

	asked, dropped        prometheus.Counter
	disagreements, errors *prometheus.CounterVec
}

type shadowJob struct {
	candidate engine.Policy
	question  *engine.Question // a copy
	live      engine.Answer
}

// NewShadows starts the goroutine that asks candidates. The owner calls [Shadows.Close].
func NewShadows(sink Sink) *Shadows {
	return newShadows(sink, maxShadowQueue)
}

func newShadows(sink Sink, queue int) *Shadows {
	s := &Shadows{
		sink: sink,
		jobs: make(chan shadowJob, queue),
		quit: make(chan struct{}),
		asked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fourgate_policy_shadow_asked_total",
			Help: "Questions that candidate policies were asked beside the policy that decides.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fourgate_policy_shadow_dropped_total",
			Help: "Questions that candidate policies were not asked because too many were waiting.",
		}),
		disagreements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fourgate_policy_shadow_disagreements_total",
			Help: "Questions to which a candidate policy has another answer, by cell of the decision matrix.",
		}, []string{"class", "phase", "completion", "replay_safe", "budget", "from", "to"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fourgate_policy_shadow_errors_total",
			Help: "Questions to which a candidate policy gave no usable answer.",
		}, []string{"kind"}),
	}
	s.worker.Go(s.run)
	return s
}

// Beside is a policy that decides as live does and has candidate asked afterwards. It is
// an [engine.RoutePolicy] that answers as live does, too; candidates aren't asked about
// routes. After Close it is live alone.
func (s *Shadows) Beside(live, candidate engine.Policy) *Shadowed {
	return &Shadowed{live: live, candidate: candidate, shadows: s}
}

// Close waits until the candidate has answered the question that it has, and asks no
// more: a compiled policy takes its own time limit at most. What waits is not compared.
func (s *Shadows) Close() {
	s.once.Do(func() { close(s.quit) })
	s.worker.Wait()
}

func (s *Shadows) run() {
	for {
		select {
		case <-s.quit:
			return
		default:
		}
		select {
		case <-s.quit:
			return
		case j := <-s.jobs:
			s.compare(j)
		}
	}
}

// offer queues a copy of a question, unless there is no room.
func (s *Shadows) offer(candidate engine.Policy, q *engine.Question, live engine.Decision) {
	select {
	case <-s.quit:
		return
	default:
	}
	if len(s.jobs) < cap(s.jobs) { // else the copy would be for nothing
		select {
		case s.jobs <- shadowJob{candidate, q.Clone(), answerTo(q, live)}:
			return
		default:
		}
	}
	s.dropped.Inc()
}

func (s *Shadows) compare(j shadowJob) {
	q := j.question
	d := engine.Disagreement{
		RequestID: q.RequestID, Seq: q.Seq, At: q.Now, Group: q.Group, Cell: engine.CellOf(q), From: j.live,
	}
	defer s.asked.Inc()
	d.To = answerTo(q, s.ask(j.candidate, q))
	if d.From.Differs(d.To) == engine.DiffersNot {
		return
	}
	c := d.Cell
	s.disagreements.WithLabelValues(c.Class.String(), c.Phase.String(), c.Completion.String(), fmt.Sprint(c.ReplaySafe), c.Budget.String(),
		d.From.Word(), d.To.Word()).Inc()
	if s.sink != nil {
		s.sink.Disagreed(d)
	}
}

// noChannel stands for every channel that a question doesn't offer: no attempt can go
// there, and a policy can make its name of anything, such as what a caller has sent.
const noChannel = "?"

// answerTo is what is compared and kept of the answer to a question.
func answerTo(q *engine.Question, d engine.Decision) engine.Answer {
	a := engine.AnswerOf(d)
	if a.Channel != "" && !slices.Contains(q.Fallback, a.Channel) {
		a.Channel = noChannel
	}
	return a
}

// faultPanic is how a candidate that panics is counted. In the ledger it is an error as
// others are.
const faultPanic = "panic"

func (s *Shadows) ask(candidate engine.Policy, q *engine.Question) (d engine.Decision) {
	defer func() {
		if recover() != nil {
			d = engine.Decision{Fault: faultError}
			s.errors.WithLabelValues(faultPanic).Inc()
		}
	}()
	if d = candidate.Decide(q); d.Fault != "" {
		s.errors.WithLabelValues(d.Fault).Inc()
	}
	return d
}

// Describe implements [prometheus.Collector].
func (s *Shadows) Describe(to chan<- *prometheus.Desc) {
	for _, c := range s.collectors() {
		c.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (s *Shadows) Collect(to chan<- prometheus.Metric) {
	for _, c := range s.collectors() {
		c.Collect(to)
	}
}

func (s *Shadows) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.asked, s.dropped, s.disagreements, s.errors}
}

// Shadowed is a live policy with a candidate. A request pays for a copy of its question
// and for nothing else. It may be used from many goroutines if both policies may.
type Shadowed struct {
	live, candidate engine.Policy
	shadows         *Shadows
}

var (
	_ engine.Policy      = (*Shadowed)(nil)
	_ engine.RoutePolicy = (*Shadowed)(nil)
)

// Decide implements [engine.Policy].
func (p *Shadowed) Decide(q *engine.Question) engine.Decision {
	d := p.live.Decide(q)
	p.shadows.offer(p.candidate, q, d)
	return d
}

// Route implements [engine.RoutePolicy]: a live policy without routes leaves the chain as
// it is.
func (p *Shadowed) Route(q *engine.RouteQuestion) engine.RouteAnswer {
	if live, ok := p.live.(engine.RoutePolicy); ok {
		return live.Route(q)
	}
	return engine.RouteAnswer{}
}

// Revision is the live policy's.
func (p *Shadowed) Revision() string {
	if live, ok := p.live.(interface{ Revision() string }); ok {
		return live.Revision()
	}
	return ""
}

// HasRoute says whether the live policy answers before the first attempt.
func (p *Shadowed) HasRoute() bool {
	switch live := p.live.(type) {
	case interface{ HasRoute() bool }:
		return live.HasRoute()
	case engine.RoutePolicy:
		return true
	}
	return false
}
