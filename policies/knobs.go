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
func (p *program) checkKnobs(ps *problems, given ast.Object) {
	if p.knobs == nil {
		return
	}
	names := make([]string, len(p.knobs))
	for i, k := range p.knobs {
		names[i] = k.Head.Name.String()
	}
	given.Foreach(func(k, v *ast.Term) {
		name := string(k.Value.(ast.String))
		i := slices.Index(names, name)
		if i < 0 {
			if !p.own {
				ps.unknownKnob(name, names)
			}
			return
		}
		knob := p.knobs[i]
		switch {
		case ast.ValueName(v.Value) != ast.ValueName(knob.Head.Value.Value):
			ps.addTo("params", "cannot use policy param %s: it is of type %s; write a value of type %s, such as %s",
				name, ast.ValueName(v.Value), ast.ValueName(knob.Head.Value.Value), knob.Head.Value)
		case negative(v.Value):
			ps.addTo("params", "cannot use policy param %s = %s: it can't be less than zero", name, v)
		case !mayBe(knob, v.Value):
			ps.addTo("params", "cannot use policy param %s = %s: write one of %v", name, v, choices(knob))
		}
	})
}

func (ps *problems) unknownKnob(name string, names []string) {
	p := Problem{Argument: "params", Message: fmt.Sprintf("cannot use policy param %q: the default policy has %s", name, strings.Join(names, ", "))}
	if meant := nearest(name, names); meant != "" {
		p.Hint = "did you mean " + meant + "?"
	}
	*ps = append(*ps, p)
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
