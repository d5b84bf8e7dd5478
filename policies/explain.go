package policies

import (
	"context"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/fourgate-dev/fourgate/engine"
)

// Explanation is why a policy answers a question as it does, for people.
type Explanation struct {
	Question engine.Question // its time is on the policy's clock
	Decision engine.Decision
	Rule     RuleSource // that answered; the zero value if that isn't known
	Gates    []GateMark // of the decision, in the order of the documentation
	// Changes are the single changes of the question that would change the decision,
	// those that change the action first, otherwise in the order of the documentation.
	Changes []Change
	// Idle are facts that the policy looks at, but no other value that was tried changes
	// the decision. Unread are those that it can't look at. Both by path.
	Idle, Unread []string
}

// RuleSource is a rule, or one branch of its else chain, with its text.
type RuleSource struct {
	Place string // file:line, as in [engine.Decision.Rule]
	Line  int    // of the first line of the text
	Text  string
	Title string // of the rule's METADATA, if it has one
}

// GateMark is what one gate said, and the rule that said so.
type GateMark struct {
	Name string
	Mark engine.GateMark
	Rule string // file:line; empty if the policy makes its marks in its own way
}

// Explain asks the same as [Set.Decide], and then what another answer would take: each fact
// that the policy can look at is given other values, one at a time. That are some thousand
// questions, each of which a slow policy may take its time limit for: none is asked of a
// policy that has been late, and no more once ctx is done.
func (s *Set) Explain(ctx context.Context, q engine.Question) Explanation {
	q.Now = q.Now.In(s.clockLocation())
	x := Explanation{Question: q, Decision: s.Decide(&q)}
	x.Rule = s.RuleAt(x.Decision.Rule)
	marking := s.gateRules(&q)
	for _, g := range []struct {
		name string
		mark engine.GateMark
	}{
		{"failure_class", x.Decision.Gates.FailureClass}, {"response_phase", x.Decision.Gates.ResponsePhase},
		{"idempotency", x.Decision.Gates.Idempotency}, {"attempt_budget", x.Decision.Gates.AttemptBudget},
	} {
		mark := GateMark{Name: g.name, Mark: g.mark}
		if r := marking[g.name]; r != nil && g.mark != engine.GateSilent {
			mark.Rule = placeOf(r)
		}
		x.Gates = append(x.Gates, mark)
	}
	s.explore(ctx, &x)
	return x
}

func (s *Set) clockLocation() *time.Location {
	if s.location == nil {
		return time.UTC
	}
	return s.location
}

// RuleAt finds the rule, or the branch, that stands at file:line as in
// [engine.Decision.Rule]. Where there is none the result has nothing but the place.
func (s *Set) RuleAt(place string) RuleSource {
	if place == "" {
		return RuleSource{}
	}
	for _, m := range s.compiler.Modules {
		for _, chain := range m.Rules {
			for r := chain; r != nil; r = r.Else {
				if placeOf(r) != place {
					continue
				}
				text := string(r.Location.Text)
				if r.Default { // of which OPA keeps the first word alone
					text += " " + string(r.Head.Location.Text)
				}
				if r.Else != nil { // whose text ends that of the chain
					text = strings.TrimSuffix(text, string(r.Else.Location.Text))
				}
				return RuleSource{Place: place, Line: r.Location.Row, Text: strings.TrimRight(text, " \t\n"), Title: titleOf(chain)}
			}
		}
	}
	return RuleSource{Place: place}
}

// titleOf is the title of the annotation before a rule.
func titleOf(r *ast.Rule) string {
	for _, a := range r.Annotations {
		if a.Title != "" {
			return a.Title
		}
	}
	return ""
}

// gatesPackage is where the embedded gates are, and a user's that take their place.
var gatesPackage = ast.MustParseRef("data.fourgate.gates")

// gateRules evaluates the policy once more with a tracer, which production doesn't pay for,
// and returns the rule that made each gate's mark.
func (s *Set) gateRules(q *engine.Question) map[string]*ast.Rule {
	ctx := context.Background()
	txn, err := s.store.NewTransaction(ctx)
	if err != nil {
		return nil
	}
	defer s.store.Abort(ctx, txn)
	cancel := topdown.NewCancel()
	timer := time.AfterFunc(s.timeout, cancel.Cancel)
	defer timer.Stop()
	e := &s.decision
	place := nobody
	watch := gateWatch{}
	// What goes wrong here went wrong in the decision, too, and stands there as its fault.
	_ = topdown.NewQuery(e.query).
		WithCompiler(s.compiler).
		WithStore(s.store).
		WithTransaction(txn).
		WithInput(e.reads.input(q, e.reads.on(q.Now, s.location), s.params)).
		WithCancel(cancel).
		WithStrictBuiltinErrors(true).
		WithBuiltins(map[string]*topdown.Builtin{markBuiltin.Name: e.places.witness(&place)}).
		WithQueryTracer(watch).
		Iter(ctx, func(topdown.QueryResult) error { return nil })
	return watch
}

// gateWatch notes which rule each gate's mark came from. It is a tracer.
type gateWatch map[string]*ast.Rule

func (gateWatch) Enabled() bool { return true }

func (gateWatch) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

func (w gateWatch) TraceEvent(e topdown.Event) {
	r, ok := e.Node.(*ast.Rule)
	if !ok || e.Op != topdown.ExitOp {
		return
	}
	path := r.Ref()
	if len(path) != len(gatesPackage)+2 || !path.HasPrefix(gatesPackage) || !path[len(path)-1].Equal(ast.StringTerm("mark")) {
		return
	}
	if name, ok := path[len(gatesPackage)].Value.(ast.String); ok {
		w[string(name)] = r
	}
}
