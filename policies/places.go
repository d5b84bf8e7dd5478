package policies

import (
	"fmt"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// places are where the rules of the entry point stand, as file:line, and those of the
// default policy that an entry point may leave the answer to.
//
// To know which of them answered, each is given one more expression at the end of its
// body: a call of a builtin of our own with the rule's number. OPA's tracer would tell
// the same, but it doubles what a decision costs; the call is hardly seen. A default
// can't have a body: it has answered if no rule has.
//
// The last call belongs to the rule that answered, with one exception. A rule of the
// entry point that builds its own answer may use parts of the default policy's, whose
// rules are then called before it or, from its head, after it: it answered all the same.
// One whose answer is nothing but another rule's has left the answer to that rule.
type places struct {
	rules     []string
	ranks     []rank
	otherwise string // of the default, empty if there is none
}

// nobody is the number while no rule has answered.
const nobody = -1

func (p *places) at(i int) string {
	if i < 0 || i >= len(p.rules) {
		return p.otherwise
	}
	return p.rules[i]
}

// markBuiltin takes a rule's number and is always true.
var markBuiltin = &ast.Builtin{
	Name: "fourgate.answered_by",
	Decl: types.NewFunction(types.Args(types.N), types.B),
}

// embeddedAnswer says whether a rule is the decision of the default policy or of a
// profile, below their entry point.
func embeddedAnswer(rule ast.Ref) bool {
	profiles := len(profilesPackage)
	return rule.Equal(standard) || len(rule) == profiles+2 && rule.HasPrefix(profilesPackage) && rule[profiles+1].Equal(standard[len(standard)-1])
}

var (
	standard        = ast.MustParseRef("data.fourgate.standard.decision")
	profilesPackage = ast.MustParseRef("data.fourgate.profiles")
)

// marking numbers the rules of all entry points of one policy.
type marking struct {
	modules modules
	marked  map[*ast.Rule]bool
	rules   []string
	ranks   []rank
}

// rank orders the rules that are called in one evaluation: the last of the highest rank
// has answered.
type rank uint8

const (
	delegates    rank = iota // its answer is another rule's, or it is the default policy's
	buildsBelow              // a rule of a profile that builds its own answer
	buildsAnswer             // a rule of the entry point that builds its own answer
)

// entry adds the call to each rule of an entry point, and of the embedded policies, and
// to each branch of their else chains.
func (m *marking) entry(entry ast.Ref) places {
	var otherwise string
	for _, module := range m.modules {
		for _, r := range module.Rules {
			rule := module.Package.Path.Extend(r.Head.Ref())
			entered := rule.Equal(entry)
			switch {
			case entered && r.Default:
				otherwise = placeOf(r)
				continue
			case !entered && !embeddedAnswer(rule), m.marked[r]:
				continue
			}
			m.marked[r] = true
			for ; r != nil; r = r.Else {
				// Terms of its own: OPA shares those of small numbers.
				number := ast.NewTerm(ast.Number(strconv.Itoa(len(m.rules))))
				name := ast.NewTerm(markBuiltin.Ref())
				number.Location, name.Location = r.Location, r.Location
				call := ast.NewExpr([]*ast.Term{name, number})
				call.Location = r.Location
				r.Body.Append(call)
				m.rules = append(m.rules, placeOf(r))
				m.ranks = append(m.ranks, rankOf(r, entered, rule.Equal(standard)))
			}
		}
	}
	return places{otherwise: otherwise}
}

// with gives the places of an entry point all rules, once all are known.
func (m *marking) with(p *places) { p.rules, p.ranks = m.rules, m.ranks }

func rankOf(r *ast.Rule, entered, standard bool) rank {
	if standard && !entered || r.Head.Value == nil {
		return delegates
	}
	if _, delegated := r.Head.Value.Value.(ast.Ref); delegated {
		return delegates
	}
	if entered {
		return buildsAnswer
	}
	return buildsBelow
}

func placeOf(r *ast.Rule) string {
	return fmt.Sprintf("%s:%d", r.Location.File, r.Location.Row)
}

// witness is the builtin for one evaluation: it writes the rule's number to place.
func (p *places) witness(place *int) *topdown.Builtin {
	var highest rank
	return &topdown.Builtin{
		Decl: markBuiltin,
		Func: func(_ topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
			if n, ok := operands[0].Value.(ast.Number); ok {
				if i, whole := n.Int(); whole && i < len(p.ranks) && p.ranks[i] >= highest {
					*place, highest = i, p.ranks[i]
				}
			}
			return found(ast.InternedTerm(true))
		},
	}
}
