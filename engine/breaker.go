package engine

import "time"

// breaker sets a channel aside after failures. Every change of state begins a new
// generation, and a permit of an older one reports into the void, so that late results
// of an outage can't disturb its recovery.
type breaker struct {
	generation uint64
	failures   []time.Time // window: within the window; consecutive: in a row
	openUntil  time.Time   // zero: closed
	halfOpen   bool
	probing    int // probes under way
	probed     int // probes that ended well
}

// permit is the right to make one attempt on a channel and the duty to report how it
// ended, once. The zero value reports nothing.
type permit struct {
	b          *breaker
	generation uint64
	probe      bool
}

func (b *breaker) next() {
	*b = breaker{generation: b.generation + 1, failures: b.failures[:0]}
}

// admits says whether an attempt may start, and otherwise from when on.
func (b *breaker) admits(now time.Time, c BreakerSpec) (bool, time.Time) {
	switch {
	case c.Mode == BreakerOff:
		return true, time.Time{}
	case b.halfOpen:
		// A reload may ask for fewer probes than have ended well already.
		return b.probed >= c.HalfOpenProbes || b.probing+b.probed < c.HalfOpenProbes, time.Time{}
	case now.Before(b.openUntil):
		return false, b.openUntil
	}
	return true, time.Time{}
}

// permit hands out the right to an attempt that admits has allowed. A nil breaker
// gives one that reports nothing.
func (b *breaker) permit(now time.Time, c BreakerSpec) permit {
	if b == nil || c.Mode == BreakerOff {
		return permit{}
	}
	if !b.openUntil.IsZero() && !now.Before(b.openUntil) {
		b.next()
		b.halfOpen = c.HalfOpenProbes > 0
	}
	if b.halfOpen && b.probed >= c.HalfOpenProbes {
		b.next()
	}
	if b.halfOpen {
		b.probing++
	}
	return permit{b, b.generation, b.halfOpen}
}

func (p permit) live() bool { return p.b != nil && p.b.generation == p.generation }

func (p permit) neutral() {
	if p.live() && p.probe {
		p.b.probing--
	}
}

// commit reports a probe as good once its answer is committed: a stream may run for
// hours, and the channel has proved itself. The permit that is left reports how the
// stream ends as any attempt's.
func (p permit) commit(c BreakerSpec) permit {
	if !p.live() || !p.probe {
		return p
	}
	p.success(c)
	return permit{p.b, p.b.generation, false}
}

func (p permit) success(c BreakerSpec) {
	if !p.live() {
		return
	}
	if p.probe {
		p.b.probing--
		if p.b.probed++; p.b.probed >= c.HalfOpenProbes {
			p.b.next()
		}
		return
	}
	if c.Mode == BreakerConsecutive {
		p.b.failures = p.b.failures[:0]
	}
}

func (p permit) failure(now time.Time, c BreakerSpec) {
	if !p.live() {
		return
	}
	if c.Mode == BreakerWindow {
		p.b.failures = after(p.b.failures, now.Add(-c.Window))
	}
	p.b.failures = append(p.b.failures, now)
	if p.probe || len(p.b.failures) >= c.Failures {
		p.b.next()
		p.b.openUntil = now.Add(c.OpenFor)
	}
}

// retryBudget is the bucket of tokens that extra attempts of one group are paid from
// (ENGINE.md section 8: 0.1 token for each successful first attempt, a small floor a
// second, a cap; it starts full, as gRPC's retry throttling does, proposal A6).
type retryBudget struct {
	tokens float64
	at     time.Time
}

// holds is how many tokens there are at a time, which may lie ahead.
func (b *retryBudget) holds(at time.Time, c RetryBudgetSpec) float64 {
	return min(c.Cap, b.tokens+max(at.Sub(b.at), 0).Seconds()*c.Floor)
}

func (b *retryBudget) refill(now time.Time, c RetryBudgetSpec) {
	b.tokens = b.holds(now, c)
	if now.After(b.at) {
		b.at = now
	}
}

func (b *retryBudget) earn(c RetryBudgetSpec) { b.tokens = min(c.Cap, b.tokens+c.Ratio) }
