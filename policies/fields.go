package policies

import (
	"encoding/binary"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fourgate-dev/fourgate/engine"
)

// field is one leaf of the policy's input: where it stands, how a question's value of
// it is written into the key of a remembered answer, and how it becomes a term.
type field struct {
	path  []string
	key   func(b []byte, q *engine.Question) []byte
	value func(q *engine.Question) *ast.Term
}

// fields returns the whole input but for params, which are the same for every question
// of a set. Its order is that of the documentation.
func fields() []field {
	return []field{
		text(func(q *engine.Question) string { return q.RequestID }, "request", "id"),
		text(func(q *engine.Question) string { return q.Caller }, "request", "caller"),
		word(func(q *engine.Question) engine.Endpoint { return q.Contract.Endpoint }, "request", "endpoint"),
		text(func(q *engine.Question) string { return q.Contract.Model }, "request", "model"),
		flag(func(q *engine.Question) bool { return q.Stream }, "request", "stream"),
		flag(func(q *engine.Question) bool { return q.Tools }, "request", "tools"),
		number(func(q *engine.Question) int64 { return int64(q.SDKRetry) }, "request", "sdk_retry"),
		idempotencyKey("request", "idempotency", "key"),
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
}

func text(get func(*engine.Question) string, path ...string) field {
	return field{
		path:  path,
		key:   func(b []byte, q *engine.Question) []byte { return appendText(b, get(q)) },
		value: func(q *engine.Question) *ast.Term { return ast.StringTerm(get(q)) },
	}
}

func texts(get func(*engine.Question) []string, path ...string) field {
	return field{
		path: path,
		key: func(b []byte, q *engine.Question) []byte {
			list := get(q)
			b = binary.AppendUvarint(b, uint64(len(list)))
			for _, s := range list {
				b = appendText(b, s)
			}
			return b
		},
		value: func(q *engine.Question) *ast.Term {
			list := get(q)
			terms := make([]*ast.Term, len(list))
			for i, s := range list {
				terms[i] = ast.StringTerm(s)
			}
			return ast.ArrayTerm(terms...)
		},
	}
}

// word is a member of one of the engine's closed vocabularies.
func word[W interface {
	~uint8
	String() string
}](get func(*engine.Question) W, path ...string) field {
	return field{
		path:  path,
		key:   func(b []byte, q *engine.Question) []byte { return append(b, byte(get(q))) },
		value: func(q *engine.Question) *ast.Term { return ast.StringTerm(get(q).String()) },
	}
}

func flag(get func(*engine.Question) bool, path ...string) field {
	return field{
		path: path,
		key: func(b []byte, q *engine.Question) []byte {
			if get(q) {
				return append(b, 1)
			}
			return append(b, 0)
		},
		value: func(q *engine.Question) *ast.Term { return ast.InternedTerm(get(q)) },
	}
}

func number(get func(*engine.Question) int64, path ...string) field {
	return field{
		path:  path,
		key:   func(b []byte, q *engine.Question) []byte { return binary.AppendVarint(b, get(q)) },
		value: func(q *engine.Question) *ast.Term { return ast.InternedTerm(get(q)) },
	}
}

// millis is a duration, which the policy sees in whole milliseconds.
func millis(get func(*engine.Question) time.Duration, path ...string) field {
	return number(func(q *engine.Question) int64 { return get(q).Milliseconds() }, path...)
}

// idempotencyKey is null without a key: no caller can send an empty one.
func idempotencyKey(path ...string) field {
	f := text(func(q *engine.Question) string { return q.Idempotency.Key }, path...)
	f.value = func(q *engine.Question) *ast.Term {
		if q.Idempotency.Key == "" {
			return ast.NullTerm()
		}
		return ast.StringTerm(q.Idempotency.Key)
	}
	return f
}

// retryAfter is null if the upstream gave none, which differs from a wait of zero.
func retryAfter(path ...string) field {
	return field{
		path: path,
		key: func(b []byte, q *engine.Question) []byte {
			wait, given := q.Failure.RetryAfter().Get()
			if !given {
				return append(b, 0)
			}
			return binary.AppendVarint(append(b, 1), wait.Milliseconds())
		},
		value: func(q *engine.Question) *ast.Term {
			wait, given := q.Failure.RetryAfter().Get()
			if !given {
				return ast.NullTerm()
			}
			return ast.InternedTerm(wait.Milliseconds())
		},
	}
}

// appendText writes the length first, so that no two lists of texts share a key.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
