package policies

import (
	"encoding/binary"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fourgate-dev/fourgate/engine"
)

// field is one leaf of the policy's input: where it stands, how a question's value of
// it is written into the key of a remembered answer, and how it becomes a term. at is
// the question's time on the set's clock.
type field[Q any] struct {
	path  []string
	key   func(b []byte, q *Q, at time.Time) []byte
	value func(q *Q, at time.Time) *ast.Term
}

func text[Q any](get func(*Q) string, path ...string) field[Q] {
	return field[Q]{
		path:  path,
		key:   func(b []byte, q *Q, _ time.Time) []byte { return appendText(b, get(q)) },
		value: func(q *Q, _ time.Time) *ast.Term { return ast.StringTerm(get(q)) },
	}
}

func texts[Q any](get func(*Q) []string, path ...string) field[Q] {
	return field[Q]{
		path: path,
		key: func(b []byte, q *Q, _ time.Time) []byte {
			list := get(q)
			b = binary.AppendUvarint(b, uint64(len(list)))
			for _, s := range list {
				b = appendText(b, s)
			}
			return b
		},
		value: func(q *Q, _ time.Time) *ast.Term {
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
func word[Q any, W interface {
	~uint8
	String() string
}](get func(*Q) W, path ...string) field[Q] {
	return field[Q]{
		path:  path,
		key:   func(b []byte, q *Q, _ time.Time) []byte { return append(b, byte(get(q))) },
		value: func(q *Q, _ time.Time) *ast.Term { return ast.StringTerm(get(q).String()) },
	}
}

func flag[Q any](get func(*Q) bool, path ...string) field[Q] {
	return field[Q]{
		path: path,
		key: func(b []byte, q *Q, _ time.Time) []byte {
			if get(q) {
				return append(b, 1)
			}
			return append(b, 0)
		},
		value: func(q *Q, _ time.Time) *ast.Term { return ast.InternedTerm(get(q)) },
	}
}

func number[Q any](get func(*Q) int64, path ...string) field[Q] {
	return field[Q]{
		path:  path,
		key:   func(b []byte, q *Q, _ time.Time) []byte { return binary.AppendVarint(b, get(q)) },
		value: func(q *Q, _ time.Time) *ast.Term { return ast.InternedTerm(get(q)) },
	}
}

// millis is a duration, which the policy sees in whole milliseconds.
func millis[Q any](get func(*Q) time.Duration, path ...string) field[Q] {
	return number(func(q *Q) int64 { return get(q).Milliseconds() }, path...)
}

// idempotencyKey is null without a key: no caller can send an empty one.
func idempotencyKey[Q any](get func(*Q) string, path ...string) field[Q] {
	f := text(get, path...)
	f.value = func(q *Q, _ time.Time) *ast.Term {
		if get(q) == "" {
			return ast.NullTerm()
		}
		return ast.StringTerm(get(q))
	}
	return f
}

// retryAfter is null if the upstream gave none, which differs from a wait of zero.
func retryAfter(path ...string) field[engine.Question] {
	return field[engine.Question]{
		path: path,
		key: func(b []byte, q *engine.Question, _ time.Time) []byte {
			wait, given := q.Failure.RetryAfter().Get()
			if !given {
				return append(b, 0)
			}
			return binary.AppendVarint(append(b, 1), wait.Milliseconds())
		},
		value: func(q *engine.Question, _ time.Time) *ast.Term {
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
