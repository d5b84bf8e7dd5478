package engine

import "time"

// BreakerState is how far a channel's breaker lets attempts through.
type BreakerState uint8

// The states of a breaker.
const (
	BreakerClosed BreakerState = iota
	BreakerHalfOpen
	BreakerOpen
)

var breakerStateNames = [...]string{"closed", "half_open", "open"}

func (b BreakerState) String() string { return name(breakerStateNames[:], b) }

// ChannelReport is how a channel stands, for people and metrics.
type ChannelReport struct {
	Channel *Channel
	Breaker BreakerState // of the breaker that all callers share
	// Bar is why no request gets it now, whatever its model; [BarNone] if some do. What
	// only other instances know counts.
	Bar Bar
	// Until is when the bar ends by itself; zero if there is none or it isn't known.
	Until time.Time
	// Alone counts the callers for whom alone the channel is out, because no other has seen
	// it fail: a breaker of their own is open, or it is quarantined for them.
	Alone int
}

// Report tells how a channel stands. It changes nothing.
func (s *Standing) Report(now time.Time, ch *Channel) ChannelReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := ChannelReport{Channel: ch}
	r.Bar, r.Until = s.bar(now, ch, view{admitted: ch.group, abroad: true})
	st, c := s.channel(ch), ch.group.spec.Breaker
	r.Breaker = st.breaker.state(now, c)
	for _, o := range st.own {
		if o.breaker.state(now, c) == BreakerOpen || now.Before(o.confined) {
			r.Alone++
		}
	}
	return r
}

// Cooling says until when a key cools, and whether it does. What only other instances
// know counts.
func (s *Standing) Cooling(now time.Time, p *Provider, k *Key) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.key(p, k).cooling.until(true)
	return until, now.Before(until)
}
