package engine

import "time"

// OpenChannels returns the channels that a prober may look at: those of groups with a
// health check whose breaker is open now. Nobody else is probed: a channel that is in use
// proves itself, and one that rests for another reason would only be bothered, above all
// one that was disabled by hand.
func (s *Standing) OpenChannels(now time.Time, c *Catalog) []*Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []*Channel
	for _, g := range c.groups {
		if g.spec.HealthCheck.Interval <= 0 {
			continue
		}
		for _, ch := range g.channels {
			st := s.channel(ch)
			if st.breaker.state(now, g.spec.Breaker) == BreakerOpen && !now.Before(st.disabled) {
				open = append(open, ch)
			}
		}
	}
	return open
}

// ProbePassed ends a channel's open time early, because a light test of its connection
// went well: the breaker is half open, and requests prove the channel, or closed where it
// wants no probes. It says whether that has changed anything.
func (s *Standing) ProbePassed(now time.Time, ch *Channel) bool {
	s.mu.Lock()
	st, c := s.channel(ch), ch.group.spec.Breaker
	opened := st.breaker.state(now, c) == BreakerOpen
	if opened {
		st.breaker.end(c)
	}
	s.mu.Unlock()
	s.tellClosed(permits{channel: st}, opened && c.HalfOpenProbes == 0)
	return opened
}
