package engine

import (
	"maps"
	"time"
)

// retryBudget is a bucket of tokens that extra attempts are paid from
// (docs/rationale.md: a part of a token for each successful first attempt, a small floor
// a second, a cap; it starts full, as gRPC's retry throttling does, proposal A6).
type retryBudget struct {
	tokens float64
	at     time.Time
}

// holds is how many tokens there are at a time, which may lie ahead.
func (b *retryBudget) holds(at time.Time, c RetryBudgetSpec) float64 {
	return min(c.Cap, b.tokens+max(at.Sub(b.at), 0).Seconds()*c.Floor)
}

func (b *retryBudget) refill(now time.Time, c RetryBudgetSpec) {
	b.tokens = b.holds(now, c)
	if now.After(b.at) {
		b.at = now
	}
}

func (b *retryBudget) earn(c RetryBudgetSpec) { b.tokens = min(c.Cap, b.tokens+c.Ratio) }

// purse names a retry budget: a group's, or, with a caller, that caller's share of it.
type purse struct{ group, caller string }

// shareOf is what one caller may take out of a group's budget where more may use it: half
// of what is saved at most, half of the floor, and what its own successes earn. So the
// other half, and what the others earn, is there for them, whatever one caller's requests
// meet. A share holds at least what the dearest attempt costs.
func shareOf(c RetryBudgetSpec) RetryBudgetSpec {
	return RetryBudgetSpec{Ratio: c.Ratio, Floor: c.Floor / 2, Cap: max(c.Cap/2, min(c.Cap, priceAfterTimeout))}
}

// bill is the price of an extra attempt, and who is asked for it.
type bill struct {
	group  string
	caller *Caller // one of several who may use the group; nil: the only one, or nobody in particular
	rules  RetryBudgetSpec
	price  float64
}

// purses are those that a bill is paid from, and their rules. A caller that is alone has
// no share: all is its own.
func (b bill) purses() ([2]purse, [2]RetryBudgetSpec, int) {
	n := 1
	var who string
	if b.caller != nil {
		n, who = 2, b.caller.spec.Name
	}
	return [2]purse{{b.group, ""}, {b.group, who}}, [2]RetryBudgetSpec{b.rules, shareOf(b.rules)}, n
}

// tokens is how much a purse has at a time that may lie ahead. One that was never used is
// full. s.mu is held here and below.
func (s *Standing) tokens(at time.Time, p purse, c RetryBudgetSpec) float64 {
	if b := s.budgets[p]; b != nil {
		return b.holds(at, c)
	}
	return c.Cap
}

func (s *Standing) budget(now time.Time, p purse, c RetryBudgetSpec) *retryBudget {
	b := s.budgets[p]
	if b == nil {
		if p.caller != "" && len(s.budgets) >= s.manyBudgets {
			s.sweepShares(now, c)
		}
		b = &retryBudget{tokens: c.Cap, at: now}
		s.budgets[p] = b
	}
	b.refill(now, c)
	return b
}

// fewBudgets is how many budgets are kept before any is looked at again.
const fewBudgets = 1024

// sweepShares forgets the shares that are full again, which those that were never used
// are, too. It waits until there are twice as many as it has left, so that it costs
// little for each that is made.
func (s *Standing) sweepShares(now time.Time, c RetryBudgetSpec) {
	maps.DeleteFunc(s.budgets, func(p purse, b *retryBudget) bool { return p.caller != "" && b.holds(now, c) >= c.Cap })
	s.manyBudgets = max(2*len(s.budgets), fewBudgets)
}

// affords says whether a bill can be paid at a time that may lie ahead. It changes
// nothing.
func (s *Standing) affords(at time.Time, b bill) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, rules, n := b.purses()
	for i := range n {
		if s.tokens(at, p[i], rules[i]) < b.price {
			return false
		}
	}
	return true
}

// affordable is how long it takes at the latest until a bill can be paid, as far as the
// floors alone fill the purses.
func (s *Standing) affordable(now time.Time, b bill) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, rules, n := b.purses()
	var longest time.Duration
	for i := range n {
		if lacks := b.price - s.tokens(now, p[i], rules[i]); lacks > 0 && rules[i].Floor > 0 {
			longest = max(longest, time.Duration(lacks/rules[i].Floor*float64(time.Second)))
		}
	}
	return longest
}

// pay pays a bill before its attempt goes out: from all purses or from none. s.mu is held.
func (s *Standing) pay(now time.Time, b bill) bool {
	if b.price <= 0 {
		return true
	}
	p, rules, n := b.purses()
	for i := range n {
		if s.budget(now, p[i], rules[i]).tokens < b.price {
			return false
		}
	}
	for i := range n {
		s.budgets[p[i]].tokens -= b.price
	}
	return true
}

// earn adds what a caller's successful first attempt earns: for the group, and for the
// caller's share if any of it was used. s.mu is held.
func (s *Standing) earn(now time.Time, group string, caller *Caller, c RetryBudgetSpec) {
	p, rules, n := bill{group: group, caller: caller, rules: c}.purses()
	s.budget(now, p[0], c).earn(c)
	if n > 1 && s.budgets[p[1]] != nil {
		s.budget(now, p[1], rules[1]).earn(rules[1])
	}
}

// RetryTokens is how many tokens the retry budget of a group has.
func (s *Standing) RetryTokens(now time.Time, g *Group, c RetryBudgetSpec) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens(now, purse{g.spec.Name, ""}, c)
}
