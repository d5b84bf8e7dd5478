package proxy

import (
	"log/slog"
	"sync"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

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

// tell logs a decision's fault unless one of its kind was logged lately.
func (l *faultLog) tell(now time.Time, logger *slog.Logger, requestID string, d *engine.Decision) {
	l.mu.Lock()
	if l.last == nil {
		l.last = map[string]faultSeen{}
	}
	seen, known := l.last[d.Fault]
	if known && now.Sub(seen.at) < faultLogEvery {
		seen.silent++
		l.last[d.Fault] = seen
		l.mu.Unlock()
		return
	}
	l.last[d.Fault] = faultSeen{at: now}
	l.mu.Unlock()
	logger.Error("the policy gave no usable answer, so the request was aborted",
		"policy_fault", d.Fault, "rule", d.Rule, "why", d.Why, "request_id", requestID, "silent_since_last", seen.silent)
}
