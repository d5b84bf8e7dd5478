package policies

import (
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// reads are the parts of the input that an entry point can look at. Nothing else of a
// question can change its answer, so only they are built for an evaluation, and only
// they make up the key of a remembered answer.
//
// They are found by walking every rule that the entry point can reach for references
// below input. That is coarser than OPA's dependency analysis, which leaves out what it
// can prove unused: here one field too many costs a little, and one too few would mix up
// answers.
type reads[Q any] struct {
	fields []field[Q]
	params bool
	clock  bool
	key    bool // the caller's Idempotency-Key
	tree   []branch[Q]
}

// branch is one name of the input with its value: a field's, or an object of branches.
type branch[Q any] struct {
	name  *ast.Term
	field *field[Q] // nil for an object
	kids  []branch[Q]
}

// pathsOf finds the references below input that an entry point's rules can look at.
func (p *program) pathsOf(entry ast.Ref) [][]string {
	var seen [][]string
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Package, *ast.Import, *ast.Annotations:
			return true
		case ast.Var:
			if x.Equal(ast.InputRootDocument.Value) {
				seen = append(seen, nil)
			}
		case ast.Ref:
			if !x.HasPrefix(ast.InputRootRef) {
				return false
			}
			seen = append(seen, constantPath(x[1:]))
			for _, operand := range x[1:] { // which may read more, in brackets
				visitor.Walk(operand)
			}
			return true
		}
		return false
	})
	for r := range p.reach(entry) {
		visitor.Walk(r)
	}
	return seen
}

// reach returns the rules that an entry point's answer can depend on, by the graph that
// OPA proves the absence of recursion with. Each branch of an else chain is one.
func (p *program) reach(entry ast.Ref) map[*ast.Rule]bool {
	reached := map[*ast.Rule]bool{}
	var next []*ast.Rule
	for _, r := range p.compiler.GetRules(entry) {
		for ; r != nil; r = r.Else {
			next = append(next, r)
		}
	}
	for len(next) > 0 {
		r := next[len(next)-1]
		next = next[:len(next)-1]
		if reached[r] {
			continue
		}
		reached[r] = true
		for other := range p.compiler.Graph.Dependencies(r) {
			next = append(next, other.(*ast.Rule))
		}
	}
	return reached
}

// readsOf picks from all fields those that one of the paths can look at.
func readsOf[Q any](all []field[Q], seen [][]string) reads[Q] {
	var r reads[Q]
	for _, f := range all {
		if slices.ContainsFunc(seen, func(path []string) bool { return overlaps(path, f.path) }) {
			r.fields = append(r.fields, f)
			r.clock = r.clock || f.path[0] == "clock"
			r.key = r.key || f.path[len(f.path)-1] == "key" && f.path[0] == "request"
		}
	}
	r.params = slices.ContainsFunc(seen, func(path []string) bool { return overlaps(path, []string{"params"}) })
	r.tree = branches(r.fields, 0)
	return r
}

// constantPath returns the names up to the first operand that is none.
func constantPath(operands ast.Ref) []string {
	path := []string{}
	for _, t := range operands {
		name, ok := t.Value.(ast.String)
		if !ok {
			break
		}
		path = append(path, string(name))
	}
	return path
}

// overlaps says whether one path is the beginning of the other.
func overlaps(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// branches groups fields, whose names up to depth are the same, by their next name.
func branches[Q any](fs []field[Q], depth int) []branch[Q] {
	var tree []branch[Q]
	for len(fs) > 0 {
		name := fs[0].path[depth]
		n := 1
		for n < len(fs) && fs[n].path[depth] == name {
			n++
		}
		b := branch[Q]{name: ast.StringTerm(name)}
		if len(fs[0].path) == depth+1 {
			b.field = &fs[0]
		} else {
			b.kids = branches(fs[:n], depth+1)
		}
		tree, fs = append(tree, b), fs[n:]
	}
	return tree
}

// on puts a question's time on the set's clock, if the rules look at that.
func (r *reads[Q]) on(now time.Time, where *time.Location) time.Time {
	if !r.clock {
		return time.Time{}
	}
	return now.In(where)
}

// input builds the part of the policy's input that it reads.
func (r *reads[Q]) input(q *Q, at time.Time, params ast.Object) *ast.Term {
	pairs := make([][2]*ast.Term, 0, len(r.tree)+1)
	pairs = appendPairs(pairs, r.tree, q, at)
	if r.params {
		pairs = append(pairs, ast.Item(ast.InternedTerm("params"), ast.NewTerm(params)))
	}
	return ast.ObjectTerm(pairs...)
}

func appendPairs[Q any](pairs [][2]*ast.Term, tree []branch[Q], q *Q, at time.Time) [][2]*ast.Term {
	for i := range tree {
		b := &tree[i]
		if b.field != nil {
			pairs = append(pairs, [2]*ast.Term{b.name, b.field.value(q, at)})
			continue
		}
		kids := appendPairs(make([][2]*ast.Term, 0, len(b.kids)), b.kids, q, at)
		pairs = append(pairs, [2]*ast.Term{b.name, ast.ObjectTerm(kids...)})
	}
	return pairs
}

// appendKey writes what makes two questions different for the policy.
func (r *reads[Q]) appendKey(b []byte, q *Q, at time.Time) []byte {
	for i := range r.fields {
		b = r.fields[i].key(b, q, at)
	}
	return b
}
