package engine

import (
	"slices"
	"time"
)

// Doubt gives the chain that a request would have if nothing counted that only other
// instances know, and whether it has a channel that c hasn't. It is for a request that
// nobody of c may serve, since a route policy drops them all: what others told may not be
// the reason. It counts against no rate and uses no turn up, since the request was
// admitted with c.
func (s *Standing) Doubt(now time.Time, req *Request, c Chain, r Rand) (Chain, bool) {
	l := c.caller.routes.lanes[c.want]
	if l == nil || req.Caller != c.caller {
		return c, false
	}
	w := newWalk(now, req, &c, r)
	w.abroad, w.explain = false, true
	w.chain = nil // the request's memory holds c's channels
	s.mu.Lock()
	s.walk(&w, l, l.groups[slices.Index(l.groups, c.group):])
	s.mu.Unlock()
	more := slices.ContainsFunc(w.chain, func(ch *Channel) bool { return !slices.Contains(c.channels, ch) })
	if more {
		c.channels = w.chain
	}
	return c, more
}
