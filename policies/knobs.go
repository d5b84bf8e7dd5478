package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// checkKnobs finds parameters that the default policy doesn't have, or whose value it
// can't use: a misspelt knob would be a change that nobody made. Which there are, and
// of what type, is read from knobs.rego itself. With files of the user's own any
// parameter may have its reader, so there only the values of knobs are checked.
func (l *loading) checkKnobs(params ast.Value) {
	given, ok := params.(ast.Object)
	if !ok {
		return
	}
	module := l.modules[builtinPrefix+"knobs.rego"]
	if module == nil {
		return
	}
	knobs := map[string]*ast.Rule{}
	var names []string
	for _, r := range module.Rules {
		if r.Default {
			name := r.Head.Name.String()
			knobs[name] = r
			names = append(names, name)
		}
	}
	own := false
	for name := range l.modules {
		own = own || !strings.HasPrefix(name, builtinPrefix)
	}
	given.Foreach(func(k, v *ast.Term) {
		name := string(k.Value.(ast.String))
		knob := knobs[name]
		switch {
		case knob == nil && !own:
			l.problem("", "cannot use policy param %q: the default policy has %s", name, strings.Join(names, ", "))
		case knob != nil && ast.ValueName(v.Value) != ast.ValueName(knob.Head.Value.Value):
			l.problem("", "cannot use policy param %s: it is of type %s; write a value of type %s, such as %s",
				name, ast.ValueName(v.Value), ast.ValueName(knob.Head.Value.Value), knob.Head.Value)
		case knob != nil && negative(v.Value):
			l.problem("", "cannot use policy param %s = %s: it can't be less than zero", name, v)
		case knob != nil && !mayBe(knob, v.Value):
			l.problem("", "cannot use policy param %s = %s: write one of %v", name, v, choices(knob))
		}
	})
}

func negative(v ast.Value) bool {
	n, ok := v.(ast.Number)
	return ok && n.Compare(ast.Number("0")) < 0
}

// mayBe says whether a knob can have a value: one of its annotation's one_of, if it has
// that.
func mayBe(knob *ast.Rule, v ast.Value) bool {
	of := choices(knob)
	text, ok := v.(ast.String)
	return len(of) == 0 || ok && slices.Contains(of, string(text))
}

func choices(knob *ast.Rule) []string {
	var of []string
	for _, a := range knob.Annotations {
		list, _ := a.Custom["one_of"].([]any)
		for _, c := range list {
			of = append(of, fmt.Sprint(c))
		}
	}
	return of
}
