package plugins

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
)

// Bounds of what waits for shadow classifiers. Failures come in bursts; a burst that is
// larger is compared in part, and the rest is counted as dropped.
const (
	maxShadowQueue = 256
	maxShadowBytes = 4 << 20 // of all failures that wait
	maxShadowCopy  = 256 << 10
)

// How a candidate's verdict differs from the live one: in the first of these that does.
const (
	shadowSame       = "same"
	shadowClass      = "class"
	shadowScope      = "scope"
	shadowReason     = "reason"
	shadowRetryAfter = "retry_after"
	shadowFault      = "fault" // the candidate has one
)

// shadowed is a live classifier with a candidate that is asked afterwards. A request
// pays for a copy of its failure and for nothing else: the candidate may be slow or
// broken, which is what is to be found out.
type shadowed struct {
	name    string
	live    *classifier
	other   *classifier
	queue   *shadows
	dropped prometheus.Counter
	results *prometheus.CounterVec
}

// Classify implements [engine.Classifier].
func (s *shadowed) Classify(ev *engine.Evidence) engine.Verdict {
	v := s.live.Classify(ev)
	if !s.queue.offer(s, ev, v) {
		s.dropped.Inc()
	}
	return v
}

func (s *shadowed) compare(j shadowJob) {
	s.results.WithLabelValues(s.name, difference(j.live, s.other.Classify(&j.evidence))).Inc()
}

func difference(live, other engine.Verdict) string {
	switch {
	case other.Fault != "":
		return shadowFault
	case other.Class != live.Class:
		return shadowClass
	case other.Scope != live.Scope:
		return shadowScope
	case other.Reason != live.Reason:
		return shadowReason
	case other.RetryAfter != live.RetryAfter:
		return shadowRetryAfter
	}
	return shadowSame
}

// shadows is the queue of failures for shadow classifiers and the one goroutine that
// asks them: candidates never have more than one processor.
type shadows struct {
	jobs    chan shadowJob
	waiting atomic.Int64 // bytes
	quit    chan struct{}
	once    sync.Once
	worker  sync.WaitGroup
}

type shadowJob struct {
	asks     *shadowed
	evidence engine.Evidence // a copy: the request's own ends with the request
	live     engine.Verdict
	size     int64
}

// shadow puts a candidate behind a live classifier.
func (h *Host) shadow(name string, live, other *classifier) (engine.Classifier, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	if h.shadows == nil {
		h.shadows = newShadows()
	}
	return &shadowed{
		name: name, live: live, other: other, queue: h.shadows,
		dropped: h.metrics.dropped.WithLabelValues(name), results: h.metrics.shadow,
	}, nil
}

func newShadows() *shadows {
	q := &shadows{jobs: make(chan shadowJob, maxShadowQueue), quit: make(chan struct{})}
	q.worker.Go(func() {
		for {
			select {
			case <-q.quit:
				return
			case j := <-q.jobs:
				j.asks.compare(j)
				q.waiting.Add(-j.size)
			}
		}
	})
	return q
}

// stop waits for the comparison that runs. What waits is not compared.
func (q *shadows) stop() {
	q.once.Do(func() { close(q.quit) })
	q.worker.Wait()
}

// offer queues a copy of a failure, unless there is no room.
func (q *shadows) offer(s *shadowed, ev *engine.Evidence, live engine.Verdict) bool {
	size := int64(len(ev.Body))
	for _, f := range ev.Frames {
		size += int64(len(f))
	}
	for _, f := range ev.Headers {
		size += int64(len(f.Name) + len(f.Value))
	}
	if size > maxShadowCopy || len(q.jobs) == cap(q.jobs) {
		return false
	}
	if q.waiting.Add(size) > maxShadowBytes {
		q.waiting.Add(-size)
		return false
	}
	select {
	case q.jobs <- shadowJob{s, copyOf(ev), live, size}:
		return true
	default:
		q.waiting.Add(-size)
		return false
	}
}

// copyOf copies everything that belongs to the request, the bytes behind strings too.
func copyOf(ev *engine.Evidence) engine.Evidence {
	c := *ev
	c.Provider = strings.Clone(ev.Provider)
	c.Contract.Model = strings.Clone(ev.Contract.Model)
	c.Body = bytes.Clone(ev.Body)
	c.Headers = make(engine.Headers, len(ev.Headers))
	for i, h := range ev.Headers {
		c.Headers[i] = engine.Header{Name: strings.Clone(h.Name), Value: strings.Clone(h.Value)}
	}
	c.Frames = nil
	for _, f := range ev.Frames {
		c.Frames = append(c.Frames, bytes.Clone(f))
	}
	return c
}
