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
	Breaker BreakerState
	// Bar is why no request gets it now, whatever its model; [BarNone] if some do.
	Bar Bar
	// Until is when the bar ends by itself; zero if there is none or it isn't known.
	Until time.Time
}

// Report tells how a channel stands. It changes nothing.
func (s *Standing) Report(now time.Time, ch *Channel) ChannelReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := ChannelReport{Channel: ch}
	r.Bar, r.Until = s.bar(now, ch, "", ch.group)
	if b := s.breakers[ch.id()]; b != nil && ch.group.spec.Breaker.Mode != BreakerOff {
		switch {
		case b.halfOpen:
			r.Breaker = BreakerHalfOpen
		case now.Before(b.openUntil):
			r.Breaker = BreakerOpen
		}
	}
	return r
}

// Cooling says until when a key cools, and whether it does.
func (s *Standing) Cooling(now time.Time, p *Provider, k *Key) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.cooling[keyID{p.spec.Name, k.name}]
	return until, now.Before(until)
}

// RetryTokens is how many tokens the retry budget of a group has.
func (s *Standing) RetryTokens(now time.Time, g *Group, c RetryBudgetSpec) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.budgets[g.spec.Name]; b != nil {
		return b.holds(now, c)
	}
	return c.Cap
}
