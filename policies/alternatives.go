package policies

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxConstants bounds the constants that are tried for one fact. An evaluation takes a tenth
// of a millisecond, so even a policy of long lists is explored in a moment.
const maxConstants = 64

// constants are the numbers and texts of a policy that a fact may be compared with: in the
// rules that name it, by its path, and anywhere, params included.
type constants struct {
	near map[string]*literals
	all  literals
}

// literals are in the order in which they stand, each once.
type literals struct {
	numbers []int64
	texts   []string
}

func (l *literals) add(v ast.Value) {
	switch v := v.(type) {
	case ast.Number:
		if n, whole := v.Int64(); whole && !slices.Contains(l.numbers, n) && len(l.numbers) < maxConstants {
			l.numbers = append(l.numbers, n)
		}
	case ast.String:
		if !slices.Contains(l.texts, string(v)) && len(l.texts) < maxConstants {
			l.texts = append(l.texts, string(v))
		}
	}
}

// constants walks the rules that the decision can depend on.
func (s *Set) constants() constants {
	c := constants{near: map[string]*literals{}}
	var rules []*ast.Rule
	for r := range s.reach(s.decisionRef()) {
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b *ast.Rule) int { return a.Location.Compare(b.Location) })
	for _, r := range rules {
		paths, found := literalsOf(r)
		for _, path := range paths {
			if c.near[path] == nil {
				c.near[path] = &literals{}
			}
			for _, v := range found {
				c.near[path].add(v)
			}
		}
		for _, v := range found {
			c.all.add(v)
		}
	}
	ast.WalkTerms(s.params, func(t *ast.Term) bool {
		c.all.add(t.Value)
		return false
	})
	return c
}

// decisionRef is the entry point as the compiled query names it.
func (s *Set) decisionRef() ast.Ref {
	var entry ast.Ref
	ast.WalkRefs(s.decision.query, func(r ast.Ref) bool {
		if entry == nil && r.HasPrefix(ast.DefaultRootRef) {
			entry = r
		}
		return false
	})
	return entry
}

// literalsOf are the facts that a rule, or a branch of one, names, and the constants in it.
func literalsOf(r *ast.Rule) (paths []string, found []ast.Value) {
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Rule:
			return x != r // the other branches are rules of their own
		case *ast.Expr:
			return x.IsCall() && x.Operator().Equal(markBuiltin.Ref())
		case ast.Ref:
			if x.HasPrefix(ast.InputRootRef) {
				paths = append(paths, dotted(constantPath(x[1:])))
			}
			for _, operand := range x {
				if _, name := operand.Value.(ast.String); !name {
					if _, inner := operand.Value.(ast.Var); !inner {
						visitor.Walk(operand)
					}
				}
			}
			return true
		case ast.Number, ast.String:
			found = append(found, x.(ast.Value))
		}
		return false
	})
	visitor.Walk(r)
	return paths, found
}

func dotted(path []string) string { return strings.Join(path, ".") }

// alternatives are the other values that are tried of a fact: every word, the other truth
// value, and of what is open what the policy itself may compare it with.
func (f *fact) alternatives(now any, known constants) []any {
	var list []any
	if f.nullable && now != nil {
		list = append(list, nil)
	}
	near := known.near[f.path]
	if near == nil {
		near = &literals{}
	}
	switch f.kind {
	case factFlag:
		list = append(list, now == false)
	case factWord:
		for _, w := range f.words {
			list = append(list, w)
		}
	case factNumber:
		if f.codes {
			for _, c := range firstOf([]int64{otherStatus, 0}, near.numbers, known.all.numbers) {
				list = append(list, c)
			}
			break
		}
		n, _ := now.(int64)
		for _, c := range f.numbers(n, near.numbers, known.all.numbers) {
			list = append(list, c)
		}
	case factText:
		for _, t := range firstOf([]string{otherText}, near.texts, known.all.texts) {
			list = append(list, t)
		}
	case factTexts:
		names, _ := now.([]string)
		list = append(list, []string{})
		if len(names) == 0 {
			list = append(list, []string{otherText})
		}
		for _, t := range near.texts {
			list = append(list, append(slices.Clone(names), t))
		}
	}
	return list
}

// otherText is a name, and otherStatus a status, that no policy knows.
const (
	otherText         = "another"
	otherStatus int64 = 599
)

// numbers are the boundaries at which a number may matter, or all of them if it has few.
func (f *fact) numbers(n int64, near, all []int64) []int64 {
	if f.most > 0 {
		list := make([]int64, 0, f.most+1)
		for v := range f.most + 1 {
			list = append(list, v)
		}
		return list
	}
	list := []int64{n - 1, n + 1, 0, 1}
	if n <= maxMillis/2 {
		list = append(list, 2*n)
	}
	for _, c := range firstOf(near, all) {
		list = append(list, c-1, c, c+1)
	}
	return slices.DeleteFunc(list, func(v int64) bool { return v < f.least })
}

// firstOf joins lists up to the limit, each value once.
func firstOf[T comparable](lists ...[]T) []T {
	var joined []T
	for _, list := range lists {
		for _, v := range list {
			if len(joined) < maxConstants && !slices.Contains(joined, v) {
				joined = append(joined, v)
			}
		}
	}
	return joined
}
