package policies

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// checkDoubts finds what compiles and means something else than it seems to: comparisons
// with a word that the fact never is, and of a number that may be null, which Rego sorts
// before all numbers; and an effect after no failure at all.
func (ps *problems) checkDoubts(m *ast.Module) {
	ps.checkAfter(m)
	known := map[string]*fact{}
	for _, f := range facts() {
		known[f.path] = &f
	}
	ast.WalkRules(m, func(r *ast.Rule) bool {
		guarded := map[string]bool{} // nullable facts that are also compared otherwise
		type below struct {
			fact *fact
			at   *ast.Location
		}
		var belows []below
		ast.WalkExprs(r, func(e *ast.Expr) bool {
			terms, ok := e.Terms.([]*ast.Term)
			if !ok || len(terms) < 2 {
				return false
			}
			operands := terms[1:]
			for i, t := range operands {
				f := factAt(known, t)
				if f == nil {
					continue
				}
				other := operands[len(operands)-1-i]
				switch name := terms[0].String(); name {
				case "equal", "eq", "neq", "internal.member_2":
					ps.checkWords(f, other)
					guarded[f.path] = guarded[f.path] || f.nullable
				case "lt", "lte", "gt", "gte":
					if first := strings.HasPrefix(name, "lt"); f.nullable && f.kind == factNumber && first == (i == 0) {
						belows = append(belows, below{f, e.Location})
						continue
					}
					guarded[f.path] = true
				default:
					guarded[f.path] = guarded[f.path] || name == "is_number" || name == "is_null"
				}
			}
			return false
		})
		for _, b := range belows {
			if !guarded[b.fact.path] {
				ps.at(b.at, "add "+inputName(b.fact)+" != null, or compare it with null where that is meant",
					"%s may be null, which is less than every number: this holds then, too", inputName(b.fact))
			}
		}
		return false
	})
}

// checkAfter finds quarantines after 0 failures: that is after the first, as if nothing was
// said.
func (ps *problems) checkAfter(m *ast.Module) {
	kind, after := ast.InternedTerm("kind"), ast.InternedTerm("after")
	ast.WalkTerms(m, func(t *ast.Term) bool {
		effect, ok := t.Value.(ast.Object)
		if !ok || effect.Get(kind) == nil {
			return false
		}
		if n := effect.Get(after); n != nil && n.Value.Compare(ast.Number("0")) == 0 {
			ps.at(n.Location, "leave it out, or write 2 or more failures", "after is 0, which is the same as 1: the first failure sets the channel aside")
		}
		return false
	})
}

// checkWords looks at what a fact with a fixed list of words is compared with: a text, or a
// list or set of them.
func (ps *problems) checkWords(f *fact, with *ast.Term) {
	check := func(t *ast.Term) {
		word, ok := t.Value.(ast.String)
		if !ok || len(f.words) == 0 || slices.Contains(f.words, string(word)) {
			return
		}
		hint := "its words are " + strings.Join(f.words, ", ")
		if meant := nearest(string(word), f.words); meant != "" {
			hint = "did you mean " + meant + "? " + hint
		}
		ps.at(t.Location, hint, "%s is never %q", inputName(f), string(word))
	}
	switch v := with.Value.(type) {
	case *ast.Array:
		v.Foreach(check)
	case ast.Set:
		v.Foreach(check)
	default:
		check(with)
	}
}

func inputName(f *fact) string { return "input." + f.path }

// factAt is the fact that a term names, or nil.
func factAt(known map[string]*fact, t *ast.Term) *fact {
	ref, ok := t.Value.(ast.Ref)
	if !ok || !ref.HasPrefix(ast.InputRootRef) || !ref.IsGround() {
		return nil
	}
	return known[dotted(constantPath(ref[1:]))]
}
