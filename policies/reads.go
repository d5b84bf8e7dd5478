package policies

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fourgate-dev/fourgate/engine"
)

// reads are the parts of the input that a compiled policy can look at. Nothing else of
// a question can change its answer, so only they are built for an evaluation, and only
// they make up the key of a remembered answer.
//
// They are found by walking every rule that was loaded for references below input. That
// is coarser than OPA's dependency analysis, which leaves out what it can prove unused:
// here one field too many costs a little, and one too few would mix up answers.
type reads struct {
	fields []field
	params bool
	tree   []branch
}

// branch is one name of the input with its value: a field's, or an object of branches.
type branch struct {
	name  *ast.Term
	field *field // nil for an object
	kids  []branch
}

// readsOf finds what the compiled modules and the query look at.
func readsOf(modules map[string]*ast.Module) reads {
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
	for _, m := range modules {
		for _, r := range m.Rules {
			visitor.Walk(r)
		}
	}

	var r reads
	for _, f := range fields() {
		if slices.ContainsFunc(seen, func(path []string) bool { return overlaps(path, f.path) }) {
			r.fields = append(r.fields, f)
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
func branches(fs []field, depth int) []branch {
	var tree []branch
	for len(fs) > 0 {
		name := fs[0].path[depth]
		n := 1
		for n < len(fs) && fs[n].path[depth] == name {
			n++
		}
		b := branch{name: ast.StringTerm(name)}
		if len(fs[0].path) == depth+1 {
			b.field = &fs[0]
		} else {
			b.kids = branches(fs[:n], depth+1)
		}
		tree, fs = append(tree, b), fs[n:]
	}
	return tree
}

// input builds the part of the policy's input that it reads; params is the ready term.
func (r *reads) input(q *engine.Question, params [2]*ast.Term) *ast.Term {
	pairs := make([][2]*ast.Term, 0, len(r.tree)+1)
	pairs = appendPairs(pairs, r.tree, q)
	if r.params {
		pairs = append(pairs, params)
	}
	return ast.ObjectTerm(pairs...)
}

func appendPairs(pairs [][2]*ast.Term, tree []branch, q *engine.Question) [][2]*ast.Term {
	for i := range tree {
		b := &tree[i]
		if b.field != nil {
			pairs = append(pairs, [2]*ast.Term{b.name, b.field.value(q)})
			continue
		}
		kids := appendPairs(make([][2]*ast.Term, 0, len(b.kids)), b.kids, q)
		pairs = append(pairs, [2]*ast.Term{b.name, ast.ObjectTerm(kids...)})
	}
	return pairs
}

// appendKey writes what makes two questions different for the policy.
func (r *reads) appendKey(b []byte, q *engine.Question) []byte {
	for i := range r.fields {
		b = r.fields[i].key(b, q)
	}
	return b
}
