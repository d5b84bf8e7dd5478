package policies

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// maxWeight bounds how many parts a value may have by the way a policy puts it together.
//
// Values that name the same part twice double at each step: after x1 := [x0, x0],
// x2 := [x1, x1] and so on, x40 has a trillion parts. OPA's type checker walks all of
// them, and so do an evaluation's comparisons, inside which no time limit is looked at,
// until memory or the stack is gone. So what a chain of names can add up to is computed
// when a policy is loaded; what comes from input and data counts as one part, because
// its size is bounded elsewhere.
const maxWeight = 20_000

// weight is how many parts a value has: at least one, more for each time that a function
// uses its arguments.
type weight struct{ fixed, perArgument float64 }

func (w weight) plus(v weight) weight {
	return weight{w.fixed + v.fixed, w.perArgument + v.perArgument}.finite()
}

// finite keeps sums and products from becoming infinite, because nothing times infinity
// isn't a number, and so more than no limit. It is far beyond maxWeight.
func (w weight) finite() weight {
	const ceiling = 1e12
	return weight{min(w.fixed, ceiling), min(w.perArgument, ceiling)}
}

func (w weight) most(v weight) weight {
	return weight{max(w.fixed, v.fixed), max(w.perArgument, v.perArgument)}
}

func (w weight) total() float64 { return w.fixed + w.perArgument }

var one = weight{fixed: 1}

// scale weighs the rules of one compiled policy. Rules and variables that are being
// weighed count as one: OPA has proved that there is no recursion by then.
type scale struct {
	compiler *ast.Compiler
	rules    map[*ast.Rule]weight
	vars     map[ast.Var]weight
	sources  map[ast.Var][]*ast.Term // what each variable of the rule at hand is set from
}

// checkWeights finds rules with values that may double. It is called when variables have
// got names of their own, and types were not looked at yet.
func (ps *problems) checkWeights(c *ast.Compiler) {
	s := &scale{compiler: c, rules: map[*ast.Rule]weight{}}
	for _, m := range c.Modules {
		ast.WalkRules(m, func(r *ast.Rule) bool {
			if s.ofRule(r).total() > maxWeight {
				ps.at(r.Location, "build the value in fewer steps, without naming a part twice in each",
					"cannot use rule %s: a value in it may double with every step, to more than %d parts", r.Head.Ref(), maxWeight)
			}
			return false
		})
	}
}

// weights is the stage for a compiler's WithStageAfterID. It ends the work when it has
// found something, and what that is stands among the problems.
func (ps *problems) weights() (ast.StageID, ast.CompilerStageDefinition) {
	return ast.StageCheckSafetyRuleBodies, ast.CompilerStageDefinition{
		Name: "CheckWeights", MetricName: "compile_stage_check_weights",
		Stage: func(c *ast.Compiler) *ast.Error {
			before := len(*ps)
			if ps.checkWeights(c); len(*ps) > before {
				return ast.NewError(ast.CompileErr, nil, "values may double with every step")
			}
			return nil
		},
	}
}

// ofRule is the weight of the heaviest value in a rule, else branches not included.
func (s *scale) ofRule(r *ast.Rule) weight {
	if w, known := s.rules[r]; known {
		return w
	}
	s.rules[r] = one
	outer := *s
	s.vars, s.sources = map[ast.Var]weight{}, map[ast.Var][]*ast.Term{}
	for _, a := range r.Head.Args {
		ast.WalkVars(a, func(v ast.Var) bool { s.vars[v] = weight{perArgument: 1}; return false })
	}
	ast.WalkExprs(r, func(e *ast.Expr) bool { s.bind(e); return false })
	w := one
	weigh := func(t *ast.Term) {
		if t != nil {
			w = w.most(s.of(t))
		}
	}
	weigh(r.Head.Key)
	weigh(r.Head.Value)
	for _, t := range r.Head.Reference {
		weigh(t)
	}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if terms, ok := e.Terms.([]*ast.Term); ok {
			switch {
			case sets(terms):
				weigh(terms[1])
				weigh(terms[2])
				return false
			case s.hasOutput(terms[0], len(terms)-1):
				terms = terms[:len(terms)-1]
			}
			w = w.most(s.ofCall(terms))
		} else if t, ok := e.Terms.(*ast.Term); ok {
			weigh(t)
		}
		return false
	})
	s.vars, s.sources = outer.vars, outer.sources
	s.rules[r] = w
	return w
}

// bind notes what an expression sets variables from. Which side that is was made sure of
// by checkShape.
func (s *scale) bind(e *ast.Expr) {
	set := func(pattern, from *ast.Term) {
		ast.WalkVars(pattern, func(v ast.Var) bool { s.sources[v] = append(s.sources[v], from); return false })
	}
	switch terms := e.Terms.(type) {
	case *ast.Every:
		set(terms.Value, terms.Domain)
		if terms.Key != nil {
			set(terms.Key, terms.Domain)
		}
	case []*ast.Term:
		operands := terms[1:]
		switch name := terms[0].String(); {
		case sets(terms):
			set(operands[0], operands[1])
			if !settable(operands[0]) {
				set(operands[1], operands[0]) // input.x = y
			}
		case (name == "internal.member_2" || name == "internal.member_3") && len(operands) > 1:
			last := len(operands) - 1
			for _, o := range operands[:last] {
				set(o, operands[last])
			}
		case s.hasOutput(terms[0], len(operands)):
			last := len(operands) - 1
			set(operands[last], ast.CallTerm(terms[:last+1]...))
		}
	}
	// Operands of references that are variables run over the parts of what is referred to.
	ast.WalkRefs(e, func(r ast.Ref) bool {
		for _, o := range r[1:] {
			if v, ok := o.Value.(ast.Var); ok {
				s.sources[v] = append(s.sources[v], r[0])
			}
		}
		return false
	})
}

// sets says whether a call makes its two operands the same.
func sets(terms []*ast.Term) bool {
	name := terms[0].String()
	return (name == "eq" || name == "assign") && len(terms) == 3
}

// hasOutput says whether a call has its result as the last operand.
func (s *scale) hasOutput(name *ast.Term, operands int) bool {
	ref, ok := name.Value.(ast.Ref)
	if !ok {
		return false
	}
	if rules := s.compiler.GetRulesExact(ref); len(rules) > 0 {
		return operands > len(rules[0].Head.Args)
	}
	b := ast.BuiltinMap[ref.String()]
	return b != nil && operands > b.Decl.Arity()
}

// textPart is how many bytes of a text or digits of a number count as one part.
const textPart = 8

func (s *scale) of(t *ast.Term) weight {
	switch v := t.Value.(type) {
	case ast.String:
		return weight{fixed: 1 + float64(len(v)/textPart)}
	case ast.Number:
		return weight{fixed: 1 + float64(len(v)/textPart)}
	case ast.Var:
		return s.ofVar(v)
	case ast.Ref:
		return s.ofRef(v)
	case *ast.Array:
		w := one
		v.Foreach(func(t *ast.Term) { w = w.plus(s.of(t)) })
		return w
	case ast.Set:
		w := one
		v.Foreach(func(t *ast.Term) { w = w.plus(s.of(t)) })
		return w
	case ast.Object:
		w := one
		v.Foreach(func(k, t *ast.Term) { w = w.plus(s.of(k)).plus(s.of(t)) })
		return w
	case ast.Call:
		return s.ofCall(v)
	case *ast.ArrayComprehension:
		return one.plus(s.of(v.Term))
	case *ast.SetComprehension:
		return one.plus(s.of(v.Term))
	case *ast.ObjectComprehension:
		return one.plus(s.of(v.Key)).plus(s.of(v.Value))
	}
	return one
}

func (s *scale) ofVar(v ast.Var) weight {
	if w, known := s.vars[v]; known {
		return w
	}
	s.vars[v] = one
	w := one
	for _, t := range s.sources[v] {
		w = w.most(s.of(t))
	}
	s.vars[v] = w
	return w
}

// ofRef weighs a part as the whole that it is taken from.
func (s *scale) ofRef(r ast.Ref) weight {
	if r[0].Equal(ast.DefaultRootDocument) {
		w := one
		for _, rule := range s.compiler.GetRulesDynamicWithOpts(r, ast.RulesOptions{IncludeHiddenModules: true}) {
			for ; rule != nil; rule = rule.Else {
				w = w.most(s.ofRule(rule))
			}
		}
		return w
	}
	if _, ok := r[0].Value.(ast.Var); ok {
		return s.ofVar(r[0].Value.(ast.Var))
	}
	return s.of(r[0])
}

// ofCall adds up the operands of a builtin, but for replace; a function of the policy's own
// multiplies them by how often it uses them.
func (s *scale) ofCall(terms []*ast.Term) weight {
	if terms[0].String() == ast.Replace.Name && len(terms) > 3 {
		return s.ofReplace(terms[1], terms[2], terms[3])
	}
	operands := weight{}
	for _, t := range terms[1:] {
		operands = operands.plus(s.of(t))
	}
	ref, ok := terms[0].Value.(ast.Ref)
	if !ok {
		return one.plus(operands)
	}
	rules := s.compiler.GetRulesExact(ref)
	if len(rules) == 0 {
		return one.plus(operands)
	}
	w := one
	for _, r := range rules {
		for ; r != nil; r = r.Else {
			w = w.most(s.ofRule(r))
		}
	}
	return weight{w.fixed + w.perArgument*operands.fixed, w.perArgument * operands.perArgument}.finite()
}

// ofReplace weighs replace(text, old, by): each byte of the text may become the whole of by.
func (s *scale) ofReplace(text, old, by *ast.Term) weight {
	w := s.of(text)
	if by, ok := by.Value.(ast.String); ok {
		grows := float64(len(by) + 1) // an empty old stands between all letters
		if old, ok := old.Value.(ast.String); ok && old != "" {
			grows = max(1, float64(len(by))/float64(len(old)))
		}
		return weight{w.fixed * grows, w.perArgument * grows}.finite()
	}
	// A text from input is longer than the one part as which it counts elsewhere.
	const shortest = 4
	v := s.of(by)
	w.fixed, v.fixed = max(w.fixed, shortest), max(v.fixed, shortest)
	// Of a function's argument the square counts, which is written as a multiple that no
	// argument exceeds without exceeding maxWeight.
	const heaviest = 50
	return weight{
		textPart * w.fixed * v.fixed,
		textPart * (w.fixed*v.perArgument + w.perArgument*v.fixed + heaviest*w.perArgument*v.perArgument),
	}.finite()
}
