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

var (
	_ engine.Policy      = (*Set)(nil)
	_ engine.RoutePolicy = (*Set)(nil)
)

// Set is a compiled policy with its parameters. It never changes; a reload makes
// another one. It may be used from many goroutines.
type Set struct {
	*program
	store     storage.Store
	params    ast.Object
	timeout   time.Duration
	location  *time.Location
	revision  string
	decisions *memory[engine.Decision] // nil remembers nothing
	routes    *memory[engine.RouteAnswer]
}

// Revision is a short hash of all that makes up the policy: files, data, query, params and
// time zone. It is the same on every machine, and fit for logs, metrics and readiness.
func (s *Set) Revision() string { return s.revision }

// Params returns a copy of the parameters.
func (s *Set) Params() map[string]any {
	v, err := ast.JSON(s.params)
	if err != nil {
		panic("BUG: params that were JSON are none: " + err.Error())
	}
	return v.(map[string]any)
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
	if s.decisions == nil {
		return s.decide(q)
	}
	var space [256]byte
	key := s.decision.reads.appendKey(space[:0], q, s.decision.reads.on(q.Now, s.location))
	if d, ok := s.decisions.recall(key); ok {
		return d
	}
	d := s.decide(q)
	if d.Fault == "" {
		s.decisions.keep(key, d)
	}
	return d
}

func (s *Set) decide(q *engine.Question) engine.Decision {
	if s.program == nil {
		return engine.Decision{Fault: faultError, Why: "the policy was never loaded"}
	}
	e := &s.decision
	r := s.ask(e.query, e.reads.input(q, e.reads.on(q.Now, s.location), s.params), &e.places)
	if r.fault == "" && r.value == nil {
		r.fault, r.err = faultUndefined, errUndefined
	}
	if r.fault != "" {
		return engine.Decision{Fault: r.fault, Rule: r.rule, Why: e.reads.because(r.err)}
	}
	d, err := readAnswer(r.value)
	if err != nil {
		return engine.Decision{Fault: faultMistyped, Rule: r.rule, Why: e.reads.because(err)}
	}
	d.Rule = r.rule
	return d
}

// result is what an evaluation came to. The value is nil if nothing held or with a fault.
type result struct {
	value ast.Value
	rule  string // that answered, file:line; empty if that isn't known
	fault string
	err   error // what the fault was; nil without one
}

var errUndefined = errors.New("no rule of the entry point holds for this question; give it a default")

// ask evaluates the policy, once more if that was late. The limit is on the wall's clock,
// and a thread that a busy machine has put aside for ten milliseconds comes back with a
// fresh time slice; a policy that is slow itself is late again.
func (s *Set) ask(query ast.Body, input *ast.Term, from *places) result {
	r := s.evaluate(query, input, from)
	if r.fault == faultTimeout {
		r = s.evaluate(query, input, from)
	}
	return r
}

// evaluate asks the policy itself. Whatever goes wrong becomes a fault, a panic inside
// OPA included: one request's odd failure must not end the others.
func (s *Set) evaluate(query ast.Body, input *ast.Term, from *places) (r result) {
	defer func() {
		if p := recover(); p != nil {
			r = result{fault: faultError, err: fmt.Errorf("the evaluation panicked: %v", p)}
		}
	}()

	ctx := context.Background()
	txn, err := s.store.NewTransaction(ctx)
	if err != nil {
		return result{fault: faultError, err: err}
	}
	defer s.store.Abort(ctx, txn)

	cancel := topdown.NewCancel()
	timer := time.AfterFunc(s.timeout, cancel.Cancel)
	defer timer.Stop()

	place := nobody
	err = topdown.NewQuery(query).
		WithCompiler(s.compiler).
		WithStore(s.store).
		WithTransaction(txn).
		WithInput(input).
		WithCancel(cancel).
		WithStrictBuiltinErrors(true).
		WithBuiltins(map[string]*topdown.Builtin{markBuiltin.Name: from.witness(&place)}).
		Iter(ctx, func(found topdown.QueryResult) error {
			r.value = found[answerVar].Value
			return nil
		})
	if err != nil {
		r = result{fault: faultOf(err), err: err}
	}
	if r.value != nil || err != nil {
		r.rule = from.at(place)
	}
	return r
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
