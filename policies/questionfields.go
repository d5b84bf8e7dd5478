package policies

import (
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// fields returns the whole input of a decision but for params, which are the same for
// every question of a set. Its order is that of the documentation.
func fields() []field[engine.Question] {
	list := []field[engine.Question]{
		text(func(q *engine.Question) string { return q.RequestID }, "request", "id"),
		text(func(q *engine.Question) string { return q.Caller }, "request", "caller"),
		word(func(q *engine.Question) engine.Endpoint { return q.Contract.Endpoint }, "request", "endpoint"),
		text(func(q *engine.Question) string { return q.Contract.Model }, "request", "model"),
		flag(func(q *engine.Question) bool { return q.Stream }, "request", "stream"),
		flag(func(q *engine.Question) bool { return q.Tools }, "request", "tools"),
		number(func(q *engine.Question) int64 { return int64(q.SDKRetry) }, "request", "sdk_retry"),
		idempotencyKey(func(q *engine.Question) string { return q.Idempotency.Key }, "request", "idempotency", "key"),
		flag(func(q *engine.Question) bool { return q.Idempotency.ReplaySafe }, "request", "idempotency", "replay_safe"),
		word(func(q *engine.Question) engine.Effects { return q.Idempotency.Effects }, "request", "idempotency", "effects"),

		number(func(q *engine.Question) int64 { return int64(q.Seq) }, "attempt", "seq"),
		text(func(q *engine.Question) string { return q.Group }, "attempt", "group"),
		text(func(q *engine.Question) string { return q.Channel }, "attempt", "channel"),
		text(func(q *engine.Question) string { return q.Provider }, "attempt", "provider"),
		text(func(q *engine.Question) string { return q.Key }, "attempt", "key"),
		number(func(q *engine.Question) int64 { return int64(q.RouteAttempts) }, "attempt", "route_attempts"),

		word(func(q *engine.Question) engine.Class { return q.Failure.Class() }, "failure", "class"),
		text(func(q *engine.Question) string { return q.Failure.Reason().String() }, "failure", "reason"),
		word(func(q *engine.Question) engine.Scope { return q.Failure.Scope() }, "failure", "scope"),
		number(func(q *engine.Question) int64 { return int64(q.Failure.Status()) }, "failure", "status"),
		retryAfter("failure", "retry_after_ms"),
		word(func(q *engine.Question) engine.Completion { return q.Failure.Completion() }, "failure", "completion"),
		word(func(q *engine.Question) engine.Family {
			return engine.FamilyOf(q.Failure.Class(), q.Failure.Scope())
		}, "failure", "family"),

		word(func(q *engine.Question) engine.Phase { return q.Failure.Phase() }, "phase"),

		number(func(q *engine.Question) int64 { return int64(q.AttemptsUsed) }, "budget", "attempts_used"),
		number(func(q *engine.Question) int64 { return int64(q.AttemptsLeft) }, "budget", "attempts_left"),
		millis(func(q *engine.Question) time.Duration { return q.Elapsed }, "budget", "elapsed_ms"),
		millis(func(q *engine.Question) time.Duration { return q.Remaining }, "budget", "remaining_ms"),
		millis(func(q *engine.Question) time.Duration { return q.MinUseful }, "budget", "min_useful_ms"),
		millis(func(q *engine.Question) time.Duration { return q.Backoff }, "budget", "backoff_ms"),
		flag(func(q *engine.Question) bool { return q.RetryBudget }, "budget", "retry_budget"),
		flag(func(q *engine.Question) bool { return q.Time }, "budget", "time"),

		flag(func(q *engine.Question) bool { return q.Same }, "routes", "same"),
		flag(func(q *engine.Question) bool { return q.SpareKey }, "routes", "spare_key"),
		texts(func(q *engine.Question) []string { return q.Fallback }, "routes", "fallback"),
		texts(func(q *engine.Question) []string { return q.Substitute }, "routes", "substitute"),
	}
	return append(list, clockFields[engine.Question]()...)
}
