package engine

import (
	"slices"
	"time"
)

// Widening is a part of a route policy's answer that was refused because a route policy
// can only narrow: a channel that the chain doesn't have or that was named already, or
// a budget that is larger than the chain's.
type Widening uint8

// The widenings. The zero value is none.
const (
	WideningNone Widening = iota
	WideningChannel
	WideningAttempts
	WideningPerRoute
	WideningDeadline
)

var wideningNames = [...]string{"", "channel", "attempts", "per_route", "deadline"}

func (w Widening) String() string { return name(wideningNames[:], w) }

// ParseWidening reads what was refused of a route policy's answer.
func ParseWidening(s string) (Widening, error) {
	return parse[Widening]("widening", wideningNames[:], s)
}

// Narrowing is what a route policy made of a chain: what it took away, and what it was
// refused. It doesn't change once it is made; the record of the request keeps it.
type Narrowing struct {
	rule      string
	reason    Reason
	fault     string
	dropped   []string // at most maxListed
	reordered bool
	attempts  int // 0: not tightened
	perRoute  int
	deadline  time.Duration
	refused   []Widening // each at most once
}

// Rule returns where the answer came from, file and line.
func (n *Narrowing) Rule() string { return n.rule }

// Reason returns the policy's reason, policy_error if it gave no usable answer.
func (n *Narrowing) Reason() Reason { return n.reason }

// Fault returns what was wrong with the policy's answer, if anything.
func (n *Narrowing) Fault() string { return n.fault }

// Dropped names the channels that were taken out of the chain, at most 32 of them, in
// the chain's order. Don't change the slice.
func (n *Narrowing) Dropped() []string { return n.dropped }

// Reordered says whether the channels that are left stand in another order than before.
func (n *Narrowing) Reordered() bool { return n.reordered }

// Attempts returns the tightened number of attempts, 0 if it was left as it is.
func (n *Narrowing) Attempts() int { return n.attempts }

// PerRoute returns the tightened number of attempts on one channel, 0 if it was left as
// it is.
func (n *Narrowing) PerRoute() int { return n.perRoute }

// Deadline returns the tightened deadline of the request, 0 if it was left as it is.
func (n *Narrowing) Deadline() time.Duration { return n.deadline }

// Refused returns what of the answer was refused. Don't change the slice.
func (n *Narrowing) Refused() []Widening { return n.refused }

// refuse notes that a part of the answer was refused.
func (n *Narrowing) refuse(w Widening) {
	if !slices.Contains(n.refused, w) {
		n.refused = append(n.refused, w)
	}
}

func (n *Narrowing) appendJSON(b []byte) []byte {
	b = appendWord(append(b, `{"rule":`...), n.rule)
	b = appendWord(append(b, `,"reason":`...), n.reason.text)
	if n.fault != "" {
		b = appendString(append(b, `,"policy_error":`...), n.fault)
	}
	b = appendNames(append(b, `,"dropped":`...), n.dropped)
	b = appendFlag(b, "reordered", n.reordered)
	if n.attempts > 0 {
		b = appendCount(b, "attempts", n.attempts)
	}
	if n.perRoute > 0 {
		b = appendCount(b, "per_route", n.perRoute)
	}
	if n.deadline > 0 {
		b = appendMS(append(b, `,"deadline_ms":`...), n.deadline)
	}
	b = append(b, `,"refused":[`...)
	for i, w := range n.refused {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, w.String())
	}
	return append(b, `]}`...)
}

// narrowingForm is the public form of a narrowing.
type narrowingForm struct {
	Rule       string   `json:"rule"`
	Reason     string   `json:"reason"`
	Fault      string   `json:"policy_error"`
	Dropped    []string `json:"dropped"`
	Reordered  bool     `json:"reordered"`
	Attempts   int      `json:"attempts"`
	PerRoute   int      `json:"per_route"`
	DeadlineMS float64  `json:"deadline_ms"`
	Refused    []string `json:"refused"`
}

func (f *narrowingForm) narrowing() *Narrowing {
	n := &Narrowing{
		rule: f.Rule, fault: f.Fault, dropped: listed(f.Dropped), reordered: f.Reordered,
		attempts: f.Attempts, perRoute: f.PerRoute, deadline: fromMS(f.DeadlineMS),
	}
	n.reason, _ = ParseReason(f.Reason)
	for _, text := range f.Refused {
		if w, err := ParseWidening(text); err == nil {
			n.refuse(w)
		}
	}
	return n
}
