package engine

import "time"

// breaker sets a channel aside after failures. Every change of state begins a new
// generation, and a permit of an older one reports into the void, so that late results
// of an outage can't disturb its recovery.
//
// A channel has one breaker for everybody. Where more than one caller may use its group, none
// can open it alone: failures that only one caller sees may be its own doing, such as a
// poisonous request that a provider answers with a 500. One caller contributes at most
// half of the failures that open it, rounded up, and at least two callers must have met
// one; a failed probe of the caller whose probe failed last doesn't open it again. Each
// caller has a breaker of its own beside it, which counts all of that caller's failures
// and opens for it alone, so that a caller who has the channel to itself is protected
// from it as before.
type breaker struct {
	generation uint64
	failures   []fault   // window: within the window; consecutive: in a row
	openUntil  time.Time // zero: closed
	halfOpen   bool
	probing    int    // probes under way
	probed     int    // probes that ended well
	prober     string // the caller whose failed probe opened it again
}

// fault is a failure that counts, and the caller that met it.
type fault struct {
	at     time.Time
	caller string
}

// permit is the right to make one attempt on a channel and the duty to report to one
// breaker how it ended, once. The zero value reports nothing.
type permit struct {
	b          *breaker
	generation uint64
	probe      bool
}

func (b *breaker) next() {
	*b = breaker{generation: b.generation + 1, failures: b.failures[:0]}
}

// open sets the channel aside from now on.
func (b *breaker) open(now time.Time, c BreakerSpec, prober string) {
	b.next()
	b.openUntil, b.prober = now.Add(c.OpenFor), prober
}

// end ends the open time: probes are let through, or everybody where none are wanted.
func (b *breaker) end(c BreakerSpec) {
	prober := b.prober
	b.next()
	if b.halfOpen = c.HalfOpenProbes > 0; b.halfOpen {
		b.prober = prober
	}
}

// closed says that nothing of the breaker is in anybody's way.
func (b *breaker) closed() bool { return b.openUntil.IsZero() && !b.halfOpen }

// admits says whether an attempt may start, and otherwise from when on.
func (b *breaker) admits(now time.Time, c BreakerSpec) (bool, time.Time) {
	switch {
	case c.Mode == BreakerOff || b.closed():
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
		b.end(c)
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
// stream ends as any attempt's. It says whether the breaker has closed.
func (p permit) commit(c BreakerSpec) (permit, bool) {
	if !p.live() || !p.probe {
		return p, false
	}
	closed := p.success(c)
	return permit{p.b, p.b.generation, false}, closed
}

// success says whether the breaker has closed.
func (p permit) success(c BreakerSpec) bool {
	if !p.live() {
		return false
	}
	if p.probe {
		p.b.probing--
		if p.b.probed++; p.b.probed >= c.HalfOpenProbes {
			p.b.next()
			return true
		}
		return false
	}
	if c.Mode == BreakerConsecutive {
		p.b.failures = p.b.failures[:0]
	}
	return false
}

// failure counts against the breaker, and says whether it has opened. The caller is the
// one that met it; it is empty where it makes no difference, because there is only one or
// the breaker is its own.
func (p permit) failure(now time.Time, c BreakerSpec, caller string) bool {
	if !p.live() {
		return false
	}
	b := p.b
	if p.probe {
		if caller != "" && b.prober == caller {
			p.neutral()
			return false
		}
		b.open(now, c, caller)
		return true
	}
	if c.Mode == BreakerWindow {
		b.failures = within(b.failures, now.Add(-c.Window))
	}
	if caller != "" {
		b.failures = atMost(b.failures, caller, (c.Failures+1)/2-1)
	}
	b.failures = append(b.failures, fault{now, caller})
	if len(b.failures) < c.Failures || caller != "" && alone(b.failures) {
		return false
	}
	b.open(now, c, "")
	return true
}

// within drops the failures that are not after limit, in place.
func within(faults []fault, limit time.Time) []fault {
	kept := faults[:0]
	for _, f := range faults {
		if f.at.After(limit) {
			kept = append(kept, f)
		}
	}
	return kept
}

// atMost drops the oldest failures of a caller until n are left, in place.
func atMost(faults []fault, caller string, n int) []fault {
	excess := -n
	for _, f := range faults {
		if f.caller == caller {
			excess++
		}
	}
	kept := faults[:0]
	for _, f := range faults {
		if f.caller == caller && excess > 0 {
			excess--
			continue
		}
		kept = append(kept, f)
	}
	return kept
}

// alone says that all failures are one caller's.
func alone(faults []fault) bool {
	for _, f := range faults[1:] {
		if f.caller != faults[0].caller {
			return false
		}
	}
	return true
}

// state is how far the breaker lets attempts through.
func (b *breaker) state(now time.Time, c BreakerSpec) BreakerState {
	switch {
	case c.Mode == BreakerOff:
		return BreakerClosed
	case b.halfOpen:
		return BreakerHalfOpen
	case now.Before(b.openUntil):
		return BreakerOpen
	case !b.openUntil.IsZero() && c.HalfOpenProbes > 0:
		return BreakerHalfOpen // the next attempt is a probe
	}
	return BreakerClosed
}

// permits are an attempt's rights and duties towards a channel: to the breaker that all
// callers share, and to the caller's own if there is one.
type permits struct {
	shared, own permit
	channel     *channelState
	group       *Group
	caller      *Caller
}

// who is the name under which a caller's failures count in the breaker of all: none if
// nobody else may use the group.
func (p permits) who() string {
	if p.group == nil || p.group.among(p.caller) == nil {
		return ""
	}
	return p.caller.spec.Name
}

func (p permits) neutral() {
	p.shared.neutral()
	p.own.neutral()
}

func (p permits) commit(c BreakerSpec) (permits, bool) {
	var closed bool
	p.shared, closed = p.shared.commit(c)
	p.own, _ = p.own.commit(c)
	return p, closed
}

func (p permits) success(c BreakerSpec) bool {
	p.own.success(c)
	return p.shared.success(c)
}

// failure says whether the breaker of all has opened.
func (p permits) failure(now time.Time, c BreakerSpec) bool {
	if who := p.who(); who != "" && c.Mode != BreakerOff && p.channel != nil {
		// A caller that was forgiven meanwhile has a new one.
		if b := &p.channel.ownOf(now, who).breaker; p.own.b != b {
			if admits, _ := b.admits(now, c); admits {
				p.own = b.permit(now, c)
			}
		}
		p.own.failure(now, c, "")
	}
	opened := p.shared.failure(now, c, p.who())
	if opened {
		p.channel.stir(forever())
	}
	return opened
}

// fewOwn is for how many callers a channel keeps something before it looks for some of
// whom there is nothing to say any more. Then it waits until there are twice as many as
// are left: in an outage that thousands of callers meet, all of them are there for good
// reason, and looking through them for each new one would hold up everybody.
const fewOwn = 64

// ownOf is what rests of the channel for a caller alone. It makes room for it.
func (st *channelState) ownOf(now time.Time, caller string) *own {
	o := st.own[caller]
	if o == nil {
		if len(st.own) >= max(st.manyOwn, fewOwn) {
			st.sweep(now)
		}
		if st.own == nil {
			st.own = map[string]*own{}
		}
		o = &own{}
		st.own[caller] = o
		st.stir(forever())
	}
	return o
}

// sweep forgets callers for whom nothing rests and no failure counts.
func (st *channelState) sweep(now time.Time) {
	for caller, o := range st.own {
		st.forgive(now, caller, o)
	}
	st.manyOwn = 2 * len(st.own)
}

// forgive forgets a caller if nothing rests for it and no failure counts.
func (st *channelState) forgive(now time.Time, caller string, o *own) {
	if st.spec.Mode == BreakerWindow {
		o.breaker.failures = within(o.breaker.failures, now.Add(-st.spec.Window))
	}
	o.suspects = within(o.suspects, now.Add(-MaxSetAside))
	if len(o.breaker.failures) == 0 && o.breaker.closed() && len(o.suspects) == 0 && !now.Before(o.confined) {
		delete(st.own, caller)
	}
}
