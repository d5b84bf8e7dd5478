package engine

import "time"

// RouteQuestion is the input of the optional second entry point, asked once before the
// first attempt. Its JSON form is in docs/policies.md.
type RouteQuestion struct {
	RequestID   string
	Caller      string
	Contract    Contract
	Stream      bool
	Tools       bool
	SDKRetry    int
	Idempotency Idempotency
	Now         time.Time

	Group    string         // the primary group
	Channels []RouteChannel // of the chain, in order
	Attempts int            // that the budget allows this request
	PerRoute int            // of them on one channel
	Deadline time.Duration  // of the whole request
}

// RouteChannel is a channel of the chain as a policy sees it.
type RouteChannel struct {
	Name     string // as in [Question.Fallback]: with its group's name before it where that isn't the primary one
	Group    string
	Provider string
	Labels   map[string]string // the configuration's own words for it; don't change the map
	Cost     Cost
}

// RouteAnswer narrows a chain. The zero value leaves it as it is.
type RouteAnswer struct {
	// Channels are the names of the channels to walk, in order, where Picked is set: those
	// that aren't named are dropped.
	Channels []string
	Picked   bool
	// Attempts, PerRoute and Deadline tighten the budget; 0 leaves it as it is.
	Attempts int
	PerRoute int
	Deadline time.Duration
	Reason   Reason
	Rule     string // where the answer came from, file:line; empty if no rule held
	// Fault is set when the policy gave no usable answer, in the words of
	// [Decision.Fault] but for "undefined": no rule need hold for every request.
	Fault string
	// Why says for a log what was wrong, with its place.
	Why string
}

// RoutePolicy answers before the first attempt which channels may serve a request. It
// must not keep q, and may be called from many goroutines.
type RoutePolicy interface {
	Route(q *RouteQuestion) RouteAnswer
}
