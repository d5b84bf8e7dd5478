package sim

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// Channel is one simulated way to a provider: it follows a script.
type Channel struct {
	sim  *Sim
	name string

	// All below is guarded by sim.mu.
	script []*step
	at     int // the step that the next request meets
	played int // how often it was met
	model  string
	keys   []string
	seen   []*Seen
	count  int
}

// step is a fault with the timelines that it has made.
type step struct {
	fault  Fault
	cached map[query]*timeline
}

// maxCached bounds a step's timelines: callers may ask for any model.
const maxCached = 64

func newChannel(s *Sim, name string) *Channel {
	c := &Channel{sim: s, name: name}
	c.script = stepsOf([]Fault{{}})
	return c
}

func stepsOf(faults []Fault) []*step {
	steps := make([]*step, len(faults))
	for i, f := range faults {
		f.Header = slices.Clone(f.Header)
		steps[i] = &step{fault: f, cached: map[query]*timeline{}}
	}
	return steps
}

// Script gives the channel a new script and starts it. Each request takes one fault,
// in the order in which requests have arrived in full; a fault with Times takes so
// many. After the last fault the last goes on for ever, unless it has Again, which
// starts the script over. Without a fault the channel answers normally.
func (c *Channel) Script(faults ...Fault) {
	if len(faults) == 0 {
		faults = []Fault{{}}
	}
	steps := stepsOf(faults)
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	c.script, c.at, c.played = steps, 0, 0
}

// Model sets the model that the channel's answers name. Empty, the default, means the
// model that a request asks for.
func (c *Channel) Model(name string) {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	c.model = name
}

// Accept sets the credentials that the channel takes. A request with another one gets
// the protocol's 401 and takes no fault of the script. Without any, the default, every
// credential is good.
func (c *Channel) Accept(keys ...string) {
	keys = slices.Clone(keys)
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	c.keys = keys
}

// refused is what a request with a bad credential meets.
var refused = Fault{Kind: Error, Status: 401}

// take writes a request down and says what is done to it.
func (c *Channel) take(r *request, path string, q query, conn int64, now time.Time) (*Seen, *timeline) {
	var seen *Seen
	var line *timeline
	c.sim.note(func() {
		var fault Fault
		if !c.accepts(r) {
			fault, line = refused, render(&refused, q, now)
		} else {
			st := c.next()
			fault, line = st.fault, st.timeline(c.named(q, st), now)
		}
		seen = c.remember(r, path, conn, now)
		seen.Body, seen.Fault = r.body, fault
	})
	return seen, line
}

// lost writes down a request whose peer left before its body was whole.
func (c *Channel) lost(r *request, path string, conn int64, now time.Time) {
	c.sim.note(func() {
		seen := c.remember(r, path, conn, now)
		seen.Gone, seen.GoneAt = true, now
	})
}

// remember counts a request and keeps it. The simulator's lock is held.
func (c *Channel) remember(r *request, path string, conn int64, now time.Time) *Seen {
	c.count++
	seen := &Seen{
		Channel: c.name, N: c.count, Conn: conn, At: now,
		Method: r.method, Target: r.target, Path: path, Header: r.fields,
	}
	if c.sim.keep > 0 {
		if len(c.seen) == c.sim.keep {
			c.seen = slices.Delete(c.seen, 0, 1)
		}
		c.seen = append(c.seen, seen)
	}
	return seen
}

// named fills in the model that the answer names.
func (c *Channel) named(q query, st *step) query {
	switch {
	case st.fault.Model != "":
		q.model = st.fault.Model
	case c.model != "":
		q.model = c.model
	case q.model == "":
		q.model = DefaultModel
	}
	return q
}

func (c *Channel) accepts(r *request) bool {
	if len(c.keys) == 0 {
		return true
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if v := r.get(name); v != "" && slices.Contains(c.keys, strings.TrimPrefix(v, "Bearer ")) {
			return true
		}
	}
	_, rawQuery, _ := strings.Cut(r.target, "?")
	values, err := url.ParseQuery(rawQuery)
	return err == nil && slices.Contains(c.keys, values.Get("key")) // as Gemini's clients may send it
}

// next is the step that a request meets.
func (c *Channel) next() *step {
	st := c.script[c.at]
	if c.played++; c.played < max(st.fault.Times, 1) {
		return st
	}
	switch {
	case st.fault.Again:
		c.at, c.played = 0, 0
	case c.at < len(c.script)-1:
		c.at, c.played = c.at+1, 0
	}
	return st
}

func (st *step) timeline(q query, now time.Time) *timeline {
	if line := st.cached[q]; line != nil {
		return line
	}
	line := render(&st.fault, q, now)
	if !line.dated {
		if len(st.cached) >= maxCached {
			clear(st.cached)
		}
		st.cached[q] = line
	}
	return line
}
