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
	otherwise string // of the default, empty if there is none
}

// nobody is the number while no rule has answered.
const nobody = -1

func (p places) at(i int) string {
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

// standard is the default policy's own decision, below its entry point.
var standard = ast.MustParseRef("data.fourgate.standard.decision")

// mark adds the call to each rule of the entry point, and of the default policy, and to
// each branch of their else chains.
func mark(modules map[string]*ast.Module, entry ast.Ref) places {
	var p places
	for _, m := range modules {
		for _, r := range m.Rules {
			rule := m.Package.Path.Extend(r.Head.Ref())
			switch entered := rule.Equal(entry); {
			case entered && r.Default:
				p.otherwise = placeOf(r)
				continue
			case !entered && !rule.Equal(standard):
				continue
			}
			for ; r != nil; r = r.Else {
				// Terms of its own: OPA shares those of small numbers.
				number := ast.NewTerm(ast.Number(strconv.Itoa(2*len(p.rules) + finality(r, rule.Equal(entry)))))
				name := ast.NewTerm(markBuiltin.Ref())
				number.Location, name.Location = r.Location, r.Location
				call := ast.NewExpr([]*ast.Term{name, number})
				call.Location = r.Location
				r.Body.Append(call)
				p.rules = append(p.rules, placeOf(r))
			}
		}
	}
	return p
}

// finality is 1 for a rule of the entry point that builds its own answer.
func finality(r *ast.Rule, entered bool) int {
	if !entered || r.Head.Value == nil {
		return 0
	}
	if _, delegates := r.Head.Value.Value.(ast.Ref); delegates {
		return 0
	}
	return 1
}

func placeOf(r *ast.Rule) string {
	return fmt.Sprintf("%s:%d", r.Location.File, r.Location.Row)
}

// witness is the builtin for one evaluation: it writes the rule's number to place.
func witness(place *int) map[string]*topdown.Builtin {
	final := false
	return map[string]*topdown.Builtin{markBuiltin.Name: {
		Decl: markBuiltin,
		Func: func(_ topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
			if n, ok := operands[0].Value.(ast.Number); ok {
				if i, whole := n.Int(); whole && (i%2 == 1 || !final) {
					*place, final = i/2, i%2 == 1
				}
			}
			return found(ast.InternedTerm(true))
		},
	}}
}
