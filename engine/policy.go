package engine

import "time"

// Idempotency is what is known about sending a request twice.
type Idempotency struct {
	Key        string // the caller's Idempotency-Key, empty if none
	ReplaySafe bool   // endpoint, body and key prove that a replay is harmless
	Effects    Effects
}

// Question is the policy's input: flat, ready facts about one failed attempt. Its
// JSON form is the `input` of docs/policies.md.
type Question struct {
	RequestID   string
	Caller      string
	Contract    Contract
	Stream      bool
	Tools       bool
	SDKRetry    int
	Idempotency Idempotency
	Now         time.Time // when the attempt had failed

	Seq           int
	Group         string
	Channel       string
	Provider      string
	Key           string
	RouteAttempts int // attempts on this channel so far, this one included

	Failure Failure

	AttemptsUsed int
	AttemptsLeft int
	Elapsed      time.Duration
	Remaining    time.Duration
	MinUseful    time.Duration
	Backoff      time.Duration // the engine's own full-jitter wait for a retry
	Time         bool          // another attempt started now would have its minimum useful time
	RetryBudget  bool          // the group's retry budget has a token

	Same     bool // a same-route attempt is possible: attempts, key, time, Retry-After
	SpareKey bool // the channel has another usable key than the one that failed
	// Fallback names the channels of the chain that may be tried next, in order.
	Fallback []string
	// Substitute names the declared and accepted substitutes.
	Substitute []string
}

// Effect is a change to a key or a channel that a decision asks for.
type Effect struct {
	Kind EffectKind
	For  time.Duration // how long a key cools, a channel is quarantined, a model evicted
	// After is how many such effects within For must come together before a
	// quarantine begins; 0 and 1 mean at once.
	After int
}

// Gates are the marks of the four gates.
type Gates struct {
	FailureClass  GateMark
	ResponsePhase GateMark
	Idempotency   GateMark
	AttemptBudget GateMark
}

// Decision is a policy's answer. Its zero value aborts.
type Decision struct {
	Action  Action
	Channel string // Fallback only: the channel that the policy picked; empty is the next one
	Reason  Reason
	// Delay before the next attempt. Not given on a retry means the engine's own
	// backoff, or the upstream's Retry-After where that is longer.
	Delay   Wait
	Effects []Effect
	Gates   Gates
	Rule    string // where the answer came from, file:line
	// Fault is set when the policy gave no usable answer: "undefined", "conflict",
	// "mistyped", "timeout", "error". The engine aborts then, whatever else is set, and
	// records the reason policy_error.
	Fault string
	// Why says for a log what was wrong with the answer, with its place. It is for the
	// people who run the proxy, never for callers.
	Why string
}

// reasonPolicyError is the reason of a decision, and of a route answer, that could not
// be used.
var reasonPolicyError = Reason{"policy_error"}

// usable is the decision as the engine takes it: one with a fault aborts, changes
// nothing, and has the reason policy_error.
func (d Decision) usable() Decision {
	if d.Fault == "" {
		return d
	}
	return Decision{Reason: reasonPolicyError, Rule: d.Rule, Fault: d.Fault, Why: d.Why}
}

// Policy answers a question about a failed attempt. It must not keep q, and may be
// called from many goroutines. The decision's slices are read-only and may be shared.
type Policy interface {
	Decide(q *Question) Decision
}
