package policies

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// checkNames finds references to rules of Fourgate's packages that nobody defines. OPA
// takes them for data that may come, so that a misspelt one would be silently undefined.
func (p *program) checkNames(ps *problems, decision ast.Ref) {
	reached := p.reach(decision)
	packages := map[string]*ast.Location{} // the user's own
	for name, m := range p.compiler.Modules {
		if !strings.HasPrefix(name, builtinPrefix) {
			packages[m.Package.Path.String()] = m.Package.Location
		}
	}
	missed := map[string]bool{}
	for _, m := range p.compiler.Modules {
		ast.WalkRules(m, func(rule *ast.Rule) bool {
			embedded := strings.HasPrefix(rule.Location.File, builtinPrefix)
			if embedded && !reached[rule] {
				return false
			}
			ast.WalkRefs(rule, func(r ast.Ref) bool {
				if len(r) <= len(entryPackage) || !r.HasPrefix(entryPackage) || !r.IsGround() || len(p.compiler.GetRulesDynamicWithOpts(r, ast.RulesOptions{IncludeHiddenModules: true})) > 0 {
					return false
				}
				switch where, replaced := packages[r[:len(r)-1].String()]; {
				case missed[r.String()]:
				case !embedded:
					ps.at(r[0].Location, p.meantRule(r), "cannot find %s", r)
				case replaced:
					ps.at(where, "define it; see the package of the same name in the default policy", "cannot leave out %s: the embedded policy uses it", r)
				}
				missed[r.String()] = true
				return false
			})
			return false
		})
	}
}

// meantRule finds the rule whose name is nearest.
func (p *program) meantRule(r ast.Ref) string {
	var names []string
	for _, m := range p.compiler.Modules {
		for _, rule := range m.Rules {
			if name := rule.Ref().String(); !strings.Contains(name, "._") {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	if meant := nearest(r.String(), names); meant != "" {
		return "did you mean " + meant + "?"
	}
	return "define it, or correct its name"
}

// noDecision is the problem of a policy whose entry point has no rule.
func (p *program) noDecision(ps *problems, query ast.Ref) {
	pkg := query[:len(query)-1]
	last, _ := query[len(query)-1].Value.(ast.String)
	for _, m := range p.compiler.Modules {
		if !m.Package.Path.Equal(pkg) {
			continue
		}
		for _, r := range m.Rules {
			name := r.Head.Name.String()
			if nearest(name, []string{string(last)}) == "" {
				continue
			}
			if strings.HasPrefix(r.Location.File, builtinPrefix) || query.String() != defaultQuery {
				ps.addTo("query", "cannot find a rule for query %q", query.String())
				(*ps)[len(*ps)-1].Hint = "did you mean " + m.Package.Path.String() + "." + name + "?"
			} else {
				ps.at(r.Location, "did you mean "+string(last)+"?", "cannot find a rule for query %q; here is %s", query.String(), name)
			}
			return
		}
	}
	ps.addTo("query", "cannot find a rule for query %q; define it, or correct policy.query", query.String())
}

// checkFacts finds facts that an entry point's rules read and that its question doesn't
// have: a route rule is asked before there is a failure. The schema has the facts of both.
func (p *program) checkFacts(ps *problems, decision, route ast.Ref) {
	deciding, routing := p.reach(decision), p.reach(route)
	check := func(rules, others map[*ast.Rule]bool, names []string, entry string) {
		for r := range rules {
			if others[r] || strings.HasPrefix(r.Location.File, builtinPrefix) {
				continue
			}
			ast.WalkRefs(r, func(ref ast.Ref) bool {
				path := constantPath(ref[1:])
				if !ref.HasPrefix(ast.InputRootRef) || len(path) == 0 ||
					slices.ContainsFunc(names, func(n string) bool { return overlaps(path, strings.Split(n, "/")[1:]) }) {
					return false
				}
				ps.at(ref[0].Location, "see docs/policies.md for what each question has", "cannot read %s here: the question of %s has no such fact", ref, entry)
				return false
			})
		}
	}
	check(routing, deciding, pathNames(routeFields()), "data.fourgate.route")
	check(deciding, routing, pathNames(fields()), decision.String())
}

func pathNames[Q any](all []field[Q]) []string {
	names := []string{"/params"}
	for _, f := range all {
		names = append(names, "/"+strings.Join(f.path, "/"))
	}
	return names
}
