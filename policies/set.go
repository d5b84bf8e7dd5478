package policies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/fourgate-dev/fourgate/engine"
)

var _ engine.Policy = (*Set)(nil)

// Set is a compiled policy with its parameters. It never changes; a reload makes
// another one. It may be used from many goroutines.
type Set struct {
	compiler *ast.Compiler
	query    ast.Body
	store    storage.Store
	params   [2]*ast.Term // input.params
	timeout  time.Duration
	reads    reads
	places   places  // of the entry point's rules
	memory   *memory // nil remembers nothing
}

// Faults of a policy, as they stand in [engine.Decision.Fault].
const (
	faultUndefined = "undefined"
	faultConflict  = "conflict"
	faultMistyped  = "mistyped"
	faultTimeout   = "timeout"
	faultError     = "error"
)

// answerVar is the variable of the query that the answer is bound to.
const answerVar = ast.Var("answer")

// Decide answers a question. An answer to the same question, as far as the policy can
// see it, is remembered; one with a fault is not, because a late answer may come in
// time the next time.
func (s *Set) Decide(q *engine.Question) engine.Decision {
	if s.memory == nil {
		return s.ask(q)
	}
	var space [256]byte
	key := s.reads.appendKey(space[:0], q)
	if d, ok := s.memory.recall(key); ok {
		return d
	}
	d := s.ask(q)
	if d.Fault == "" {
		s.memory.keep(key, d)
	}
	return d
}

// ask evaluates the policy, once more if that was late. The limit is on the wall's clock,
// and a thread that a busy machine has put aside for ten milliseconds comes back with a
// fresh time slice; a policy that is slow itself is late again.
func (s *Set) ask(q *engine.Question) engine.Decision {
	d := s.evaluate(q)
	if d.Fault == faultTimeout {
		d = s.evaluate(q)
	}
	return d
}

// evaluate asks the policy itself. Whatever goes wrong becomes a fault, a panic inside
// OPA included: one request's odd failure must not end the others.
func (s *Set) evaluate(q *engine.Question) (d engine.Decision) {
	defer func() {
		if r := recover(); r != nil {
			d = engine.Decision{Fault: faultError, Why: because(fmt.Errorf("the evaluation panicked: %v", r))}
		}
	}()

	ctx := context.Background()
	txn, err := s.store.NewTransaction(ctx)
	if err != nil {
		return engine.Decision{Fault: faultError, Why: because(err)}
	}
	defer s.store.Abort(ctx, txn)

	cancel := topdown.NewCancel()
	timer := time.AfterFunc(s.timeout, cancel.Cancel)
	defer timer.Stop()

	var answer ast.Value
	place := nobody
	err = topdown.NewQuery(s.query).
		WithCompiler(s.compiler).
		WithStore(s.store).
		WithTransaction(txn).
		WithInput(s.reads.input(q, s.params)).
		WithCancel(cancel).
		WithStrictBuiltinErrors(true).
		WithBuiltins(witness(&place)).
		Iter(ctx, func(result topdown.QueryResult) error {
			answer = result[answerVar].Value
			return nil
		})
	if err != nil {
		return engine.Decision{Fault: faultOf(err), Rule: s.places.at(place), Why: because(err)}
	}
	if answer == nil {
		return engine.Decision{Fault: faultUndefined, Why: "no rule of the entry point holds for this question; give it a default"}
	}
	d, err = readAnswer(answer)
	if err != nil {
		return engine.Decision{Fault: faultMistyped, Rule: s.places.at(place), Why: because(err)}
	}
	d.Rule = s.places.at(place)
	return d
}

// maxWhy bounds what a log line says of a fault.
const maxWhy = 400

func because(err error) string {
	text := err.Error()
	return text[:min(len(text), maxWhy)]
}

// faultOf names what OPA reports.
func faultOf(err error) string {
	var opa *topdown.Error
	if !errors.As(err, &opa) {
		return faultError
	}
	switch opa.Code {
	case topdown.CancelErr:
		return faultTimeout
	case topdown.ConflictErr:
		return faultConflict
	}
	return faultError
}
