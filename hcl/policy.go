package hcl

import (
	"encoding/json"
	"regexp"

	"github.com/zclconf/go-cty/cty"
)

// queryForm is a reference to a rule: data, then packages, then the rule.
var queryForm = regexp.MustCompile(`^data(\.[A-Za-z_][A-Za-z0-9_]*){1,16}$`)

func (d *decoder) policy(s *section) {
	p := Policy{
		Query:   s.str("query", defaultPolicyQuery),
		Timeout: s.duration("timeout", defaultPolicyTimeout, minPolicyTimeout, maxPolicyTimeout),
	}
	if !queryForm.MatchString(p.Query) {
		s.failAt("query", s.placeOfAttr("query"), "Not a policy query",
			"The query names a rule, such as %q.", defaultPolicyQuery)
		p.Query = defaultPolicyQuery
	}
	for _, path := range s.list("paths") {
		resolved := d.resolve(path.text)
		if _, err := d.env.reach(resolved); err != nil {
			s.fail(join(s.path, "paths", path.text), path.at, "Policy path cannot be read",
				"%s cannot be read: %v. Correct the path, or leave paths out for the default policy.", bounded(resolved), reason(err))
			continue
		}
		p.Paths = append(p.Paths, resolved)
	}
	for name, pair := range s.pairs("params") {
		path := join(s.path, "params", name)
		s.ranges[pathKey(path)] = pair.Value.Range()
		v, ok := s.value(pair.Value, cty.DynamicPseudoType, path, bounded(name))
		if !ok {
			continue
		}
		if p.Params == nil {
			p.Params = map[string]any{}
		}
		p.Params[name] = plain(v)
	}
	d.cfg.Policy = p
}

// plain turns a value into what a JSON document would hold. The guard has bounded its
// depth.
func plain(v cty.Value) any {
	switch {
	case v.IsNull():
		return nil
	case v.Type() == cty.Bool:
		return v.True()
	case v.Type() == cty.String:
		return v.AsString()
	case v.Type() == cty.Number:
		return json.Number(v.AsBigFloat().Text('g', -1))
	case v.Type().IsObjectType() || v.Type().IsMapType():
		object := map[string]any{}
		for name, field := range v.AsValueMap() {
			object[name] = plain(field)
		}
		return object
	}
	list := []any{}
	for _, element := range v.AsValueSlice() {
		list = append(list, plain(element))
	}
	return list
}
