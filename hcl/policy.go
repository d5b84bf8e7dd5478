package hcl

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// queryForm is a reference to a rule: data, then packages, then the rule.
var queryForm = regexp.MustCompile(`^data(\.[A-Za-z_][A-Za-z0-9_]*){1,16}$`)

// profileForm is what a profile's name looks like. Which there are is known to whoever
// loads them.
var profileForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// policyBlock is what one block says of a policy. What it leaves out comes from the
// policy around it.
type policyBlock struct {
	sourced  bool // it has paths or a profile
	paths    []string
	profile  string
	query    string
	timeout  time.Duration
	location *time.Location
	params   map[string]any
	shadow   *policyBlock
}

// over returns the policy of a block that stands in, or beside, another policy. Paths,
// profile and bundle are one choice, the policy's source, and a block that makes it
// takes over nothing of the outer one's; parameters merge name by name. Only a profile
// in the place of files or a bundle takes none over: it refuses what it doesn't know.
func (b *policyBlock) over(p Policy) Policy {
	if b.sourced {
		if b.profile != "" && (len(p.Paths) > 0 || p.Bundle != nil) {
			p.Params = nil
		}
		p.Paths, p.Profile, p.Bundle = b.paths, b.profile, nil
		if b.profile != "" {
			p.Query = defaultPolicyQuery
		}
	}
	p.Query = cmp.Or(b.query, p.Query)
	p.Timeout = cmp.Or(b.timeout, p.Timeout)
	p.Location = cmp.Or(b.location, p.Location)
	if len(b.params) > 0 {
		merged := maps.Clone(p.Params)
		if merged == nil {
			merged = map[string]any{}
		}
		maps.Copy(merged, b.params)
		p.Params = merged
	}
	p.Shadow = nil
	if b.shadow != nil {
		candidate := b.shadow.over(p)
		p.Shadow = &candidate
	}
	return p
}

// policy reads the block that holds for all groups.
func (d *decoder) policy(s *section) {
	d.outer = s.policy()
	p := Policy{Query: defaultPolicyQuery, Timeout: defaultPolicyTimeout, Location: time.UTC}
	if b := s.inner("bundle", &bundleShape); b.written() {
		p.Bundle = b.bundle()
		for _, name := range []string{"paths", "profile"} {
			if s.has(name) {
				s.failAt(name, s.placeOfAttr(name), "Two sources of one policy",
					"The block bundle says where the policy comes from, and a bundle is a whole policy. Remove %s, or the bundle.", name)
			}
		}
	}
	d.cfg.Policy = d.outer.over(p)
}

// groupPolicy reads a group's own block. A candidate beside the outer policy stands
// beside the group's, too, unless that comes from elsewhere.
func (d *decoder) groupPolicy(group string, s *section) {
	if !s.written() {
		return
	}
	b := s.policy()
	if b.shadow == nil && !b.sourced && b.query == "" {
		b.shadow = d.outer.shadow
	}
	if d.cfg.GroupPolicies == nil {
		d.cfg.GroupPolicies = map[string]Policy{}
	}
	d.cfg.GroupPolicies[group] = b.over(d.cfg.Policy)
}

// policy reads the arguments that every policy block has, and its candidate.
func (s *section) policy() *policyBlock {
	b := &policyBlock{
		sourced:  s.has("paths") || s.has("profile"),
		paths:    s.policyPaths(),
		profile:  s.str("profile", ""),
		query:    s.str("query", ""),
		timeout:  s.duration("timeout", 0, minPolicyTimeout, maxPolicyTimeout),
		location: s.location("timezone"),
		params:   s.params(),
	}
	if s.has("query") && !queryForm.MatchString(b.query) {
		s.failAt("query", s.placeOfAttr("query"), "Not a policy query",
			"The query names a rule, such as %q.", defaultPolicyQuery)
		b.query = ""
	}
	if s.has("profile") && !profileForm.MatchString(b.profile) {
		s.failAt("profile", s.placeOfAttr("profile"), "Not a profile's name",
			"A profile is one word, such as %q; docs/policies.md lists them. Leave profile out for the default policy.", "kunavo")
		b.profile = ""
	}
	if b.profile != "" && b.query != "" {
		s.failAt("query", s.placeOfAttr("query"), "Profile with another query",
			"A profile is asked at its own rule, so query would leave it unused. Remove query, or the profile.")
	}
	if inner := s.inner("shadow", &policyShadowShape); inner.written() {
		b.shadow = inner.policy()
		if len(inner.attrs) == 0 {
			s.fail(inner.path, inner.place, "Candidate like the policy itself",
				"The block shadow says what a candidate has different: paths, profile, query, params or timeout. Write one, or remove the block.")
		}
	}
	return b
}

func (s *section) policyPaths() []string {
	var paths []string
	for _, path := range s.list("paths") {
		resolved := s.resolve(path.text)
		if _, err := s.env.reach(resolved); err != nil {
			s.fail(join(s.path, "paths", path.text), path.at, "Policy path cannot be read",
				"%s cannot be read: %v. Correct the path, or leave paths out for the default policy.", bounded(resolved), reason(err))
			continue
		}
		paths = append(paths, resolved)
	}
	return paths
}

// location reads a time zone, nil if none is written.
func (s *section) location(name string) *time.Location {
	zone := s.str(name, "")
	if !s.has(name) || s.isFaulty(join(s.path, name)) {
		return nil
	}
	if zone != "" && zone != "Local" { // which would be another zone on another machine
		if location, err := time.LoadLocation(zone); err == nil {
			return location
		}
	}
	s.failAt(name, s.placeOfAttr(name), "Unknown time zone",
		"%s is no name of the time zone database. Write one such as %q, or %q.", bounded(zone), "Europe/Berlin", "UTC")
	return nil
}

func (s *section) params() map[string]any {
	params := map[string]any{}
	for name, pair := range s.pairs("params") {
		path := join(s.path, "params", name)
		s.ranges[pathKey(path)] = pair.Value.Range()
		if v, ok := s.value(pair.Value, cty.DynamicPseudoType, path, bounded(name)); ok {
			params[name] = plain(v)
		}
	}
	return params
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

// namedPolicies adds the policies that can be checked, and the places of their
// arguments.
func (d *decoder) namedPolicies(n *Named) {
	outer := []string{"policy"}
	partial := d.hasFault(outer)
	if _, written := d.ranges[pathKey(outer)]; written || !d.diags.HasErrors() {
		n.Policies = append(n.Policies, NamedPolicy{Policy: d.cfg.Policy, Partial: partial})
		d.policyPlaces(n, "", outer)
	}
	for _, g := range d.cfg.Spec.Groups {
		p, own := d.cfg.GroupPolicies[g.Name]
		if !own {
			continue
		}
		block := []string{"route_group", g.Name, "policy"}
		n.Policies = append(n.Policies, NamedPolicy{g.Name, p, partial || d.hasFault(block)})
		d.policyPlaces(n, g.Name, block)
	}
}

func (d *decoder) policyPlaces(n *Named, group string, block []string) {
	arguments := []string{"", "bundle", "shadow"}
	for _, name := range policyAttrs {
		arguments = append(arguments, name, "shadow."+name)
	}
	for _, name := range arguments {
		path := block
		if name != "" {
			path = join(block, strings.Split(name, ".")...)
		}
		if at, written := d.ranges[pathKey(path)]; written {
			places := Diagnostics{diagnosticAt(Error, at, "", "")}
			d.illustrate(places)
			n.policies[policyPlace(group, name)] = places[0]
		}
	}
}
