package policies

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A compiler's time and stack grow with the square, or worse, of what stands inside one
// another or in one chain. These bounds are some ten times what a policy for people to
// read has; with them the worst file compiles in seconds.
const (
	maxNesting  = 40   // brackets inside one another
	maxBranches = 200  // of one else chain
	maxBody     = 300  // expressions of one body
	maxRules    = 4000 // of one policy, else branches included
	maxParts    = 150_000
	maxLiteral  = 4096 // bytes of a text: OPA reads all of it each time that it goes into a list
)

// checkNesting finds brackets too deep inside one another, before the parser does: its
// own bound is so high that what it lets pass stops the compiler.
func (ps *problems) checkNesting(name, text string) bool {
	depth, line, start := 0, 1, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\n':
			line, start = line+1, i+1
		case '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case '"':
			for i++; i < len(text) && text[i] != '"' && text[i] != '\n'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			i = backOn(text, i)
		case '`':
			for i++; i < len(text) && text[i] != '`'; i++ {
				if text[i] == '\n' {
					line, start = line+1, i+1
				}
			}
		case '(', '[', '{':
			if depth++; depth > maxNesting {
				*ps = append(*ps, Problem{
					File: name, Line: line, Col: i - start + 1, Message: fmt.Sprintf("cannot use brackets more than %d deep", maxNesting),
					Hint: "give the inner parts names: a rule or a variable of their own",
				})
				return false
			}
		case ')', ']', '}':
			depth--
		}
	}
	return true
}

// backOn stays before a line break that ended a string, so that lines are counted.
func backOn(text string, i int) int {
	if i < len(text) && text[i] == '\n' {
		return i - 1
	}
	return i
}

// checkShape finds what is too long, and unifications that hide which side is set. Tests
// don't run in the proxy and are left out.
func (ps *problems) checkShape(all modules) {
	rules, parts := 0, 0
	for name, m := range all {
		if strings.HasPrefix(name, builtinPrefix) || strings.HasSuffix(name, "_test.rego") {
			continue
		}
		for _, r := range m.Rules {
			chain := 0
			for e := r; e != nil; e = e.Else {
				if chain++; chain == maxBranches+1 {
					ps.at(e.Location, "look the value up in an object, or split the rule", "cannot use an else chain of more than %d branches", maxBranches)
				}
			}
			rules += chain
		}
		ast.WalkTerms(m, func(t *ast.Term) bool {
			if s, ok := t.Value.(ast.String); ok && len(s) > maxLiteral {
				ps.at(t.Location, "move it into params or a bundle's data", "cannot use a text of %d bytes, the limit is %d", len(s), maxLiteral)
			}
			parts++
			return parts > 2*maxParts
		})
		ast.WalkBodies(m, func(b ast.Body) bool {
			if len(b) > maxBody {
				ps.at(b.Loc(), "split it into rules", "cannot use a body of more than %d expressions", maxBody)
			}
			return false
		})
		ast.WalkRefs(m, func(r ast.Ref) bool {
			if r.Equal(markBuiltin.Ref()) {
				ps.at(r[0].Location, "give the rule or function another name", "cannot call %s: it is Fourgate's own", markBuiltin.Name)
			}
			return false
		})
		ast.WalkExprs(m, func(e *ast.Expr) bool {
			if callDepth(e) > maxNesting {
				ps.at(e.Location, "give the inner parts names: a rule or a variable of their own", "cannot use calls or operators more than %d deep", maxNesting)
				return true
			}
			if e.IsEquality() && e.Location != nil && settable(e.Operand(0)) && settable(e.Operand(1)) {
				ps.at(e.Location, "write := to set a variable, == to compare", "cannot use = where both sides have variables")
			}
			return false
		})
	}
	switch {
	case rules > maxRules:
		ps.add("", "cannot use a policy of more than %d rules; move lists into params or a bundle's data", maxRules)
	case parts > maxParts:
		ps.add("", "cannot use a policy of more than %d terms; move lists into params or a bundle's data", maxParts)
	}
}

// callDepth is how many calls, which operators are too, stand inside one another.
func callDepth(x any) int {
	deepest := 0
	below := func(terms []*ast.Term) {
		for _, t := range terms {
			deepest = max(deepest, callDepth(t))
		}
	}
	switch x := x.(type) {
	case *ast.Expr:
		switch terms := x.Terms.(type) {
		case []*ast.Term:
			below(terms)
			return deepest + 1
		case *ast.Term:
			return callDepth(terms)
		}
	case *ast.Term:
		switch v := x.Value.(type) {
		case ast.Call:
			below(v)
			return deepest + 1
		case ast.Ref:
			below(v)
		case *ast.Array:
			v.Foreach(func(t *ast.Term) { deepest = max(deepest, callDepth(t)) })
		case ast.Set:
			v.Foreach(func(t *ast.Term) { deepest = max(deepest, callDepth(t)) })
		case ast.Object:
			v.Foreach(func(k, t *ast.Term) { deepest = max(deepest, callDepth(k), callDepth(t)) })
		}
	}
	return deepest
}

func (ps *problems) at(where *ast.Location, hint, format string, args ...any) {
	ps.add("", format, args...)
	p := &(*ps)[len(*ps)-1]
	p.Hint = hint
	if where != nil {
		p.File, p.Line, p.Col = where.File, where.Row, where.Col
	}
}

// settable says whether a unification may set variables of a term: one that is a variable,
// or has one outside its references, calls and comprehensions.
func settable(t *ast.Term) bool {
	found := false
	each := func(t *ast.Term) { found = found || settable(t) }
	switch v := t.Value.(type) {
	case ast.Var:
		return !v.Equal(ast.InputRootDocument.Value) && !v.Equal(ast.DefaultRootDocument.Value)
	case *ast.Array:
		v.Foreach(each)
	case ast.Set:
		v.Foreach(each)
	case ast.Object:
		v.Foreach(func(_, t *ast.Term) { each(t) })
	}
	return found
}
