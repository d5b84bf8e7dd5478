package engine

import "time"

// retryBudget is the bucket of tokens that extra attempts of one group are paid from
// (docs/rationale.md: a share of a token for each successful first attempt, a small floor
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

func (s *Standing) budget(now time.Time, group string, c RetryBudgetSpec) *retryBudget {
	b := s.budgets[group]
	if b == nil {
		b = &retryBudget{tokens: c.Cap, at: now}
		s.budgets[group] = b
	}
	b.refill(now, c)
	return b
}

// affords says whether an extra attempt of the price will be within the group's budget
// at a time that may lie ahead. It changes nothing.
func (s *Standing) affords(at time.Time, group string, c RetryBudgetSpec, price float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.budgets[group]; b != nil {
		return b.holds(at, c) >= price
	}
	return c.Cap >= price
}

// affordable is how long it takes at the latest until the budget holds a price, as far as
// the floor alone fills it.
func (s *Standing) affordable(now time.Time, group string, c RetryBudgetSpec, price float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	lacks := price - s.budget(now, group, c).tokens
	if lacks <= 0 || c.Floor <= 0 {
		return 0
	}
	return time.Duration(lacks / c.Floor * float64(time.Second))
}

// pay takes the price of an extra attempt, before it goes out.
func (s *Standing) pay(now time.Time, group string, c RetryBudgetSpec, price float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.budget(now, group, c)
	if b.tokens < price {
		return false
	}
	b.tokens -= price
	return true
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
