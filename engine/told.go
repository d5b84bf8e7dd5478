package engine

import "time"

// maxProving bounds [proving]: an instance without traffic, or one that has died, finds
// out nothing.
const maxProving = 10 * time.Second

// proving is how much longer than for its open time a breaker that wants probes is told.
// The instance that has told it probes meanwhile, and lifts it when the channel is well.
// Otherwise all others, whose own breakers are closed, would send everything at once to a
// channel that may be down still.
func proving(c BreakerSpec) time.Duration {
	if c.HalfOpenProbes == 0 {
		return 0
	}
	return min(c.OpenFor, maxProving)
}

// Told returns everything that is set aside for what was seen here, until when other
// instances are told that it is.
func (s *Standing) Told(now time.Time) []Fact {
	list := s.List(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	var facts []Fact
	for _, a := range list {
		if a.Abroad || a.Caller != "" || a.Kind == FactChannelDisabled {
			continue
		}
		if a.Kind == FactBreakerOpen {
			st := s.channels[channelID{a.Group, a.Channel}]
			if st == nil {
				continue
			}
			if a.HalfOpen {
				a.Until = now
			}
			a.Until = a.Until.Add(proving(st.spec))
		}
		if a.Until.After(now) {
			facts = append(facts, a.Fact)
		}
	}
	return facts
}
