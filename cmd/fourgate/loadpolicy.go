package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/policies"
	"github.com/fourgate-dev/fourgate/policies/bundle"
)

// compilePolicies compiles the policies of a configuration, all of them whatever is wrong
// with some, and gives each to the groups that it decides for. Without a bundle it takes
// those that need none, with one those that need it.
func (c *compiler) compilePolicies(ctx context.Context, l *loaded, from *bundle.Bundle) hcl.Diagnostics {
	var diags hcl.Diagnostics
	compile := func(p hcl.NamedPolicy, what hcl.Policy, prefix string) engine.Policy {
		if (what.Bundle != nil) != (from != nil) {
			return nil
		}
		set, err := c.policies.Load(ctx, optionsOf(what, from))
		if err != nil {
			diags = append(diags, policyDiagnostics(l.named, p, prefix, err)...)
			return nil
		}
		return set
	}
	for _, p := range l.named.Policies {
		if set := compile(p, p.Policy, ""); set != nil && p.Group == "" {
			l.parts.Policy = set
		} else if set != nil {
			l.parts.GroupPolicies[p.Group] = set
		}
		if p.Policy.Shadow == nil {
			continue
		}
		if set := compile(p, *p.Policy.Shadow, "shadow."); set != nil {
			l.candidates[p.Group] = set
		}
	}
	return onlyOnce(diags)
}

// bundlePrefix marks the places of a bundle's files, which stand nowhere on disk.
const bundlePrefix = "bundle:"

// optionsOf is a policy of the configuration as it is compiled.
func optionsOf(p hcl.Policy, from *bundle.Bundle) policies.Options {
	o := policies.Options{
		Profile: p.Profile, Paths: p.Paths, Query: p.Query, Timeout: p.Timeout, Params: p.Params, Location: p.Location,
	}
	if from != nil {
		o.Data, o.Modules = from.Data, make(map[string]string, len(from.Modules))
		for name, text := range from.Modules {
			o.Modules[bundlePrefix+name] = text
		}
	}
	return o
}

// policyDiagnostics are the problems of a policy, or with the prefix "shadow." those of its
// candidate. A problem in no file is one of the configuration's own words.
func policyDiagnostics(named hcl.Named, p hcl.NamedPolicy, prefix string, err error) hcl.Diagnostics {
	var refused *policies.LoadError
	if !errors.As(err, &refused) {
		return hcl.Diagnostics{named.PolicyError(p.Group, prefix, "Policy cannot be loaded", err.Error())}
	}
	var diags hcl.Diagnostics
	for _, problem := range refused.Problems {
		switch {
		case p.Partial && lacking(problem):
			// It lacks files: that a rule or a function is missing means nothing.
		case problem.File == "":
			diags = append(diags, named.PolicyError(p.Group, prefix+problem.Argument, "Policy cannot be used", problem.Text()))
		default:
			diags = append(diags, hcl.Diagnostic{
				Summary: "Policy does not compile", Detail: problem.Text(), File: problem.File, Line: problem.Line, Column: problem.Col,
			})
		}
	}
	return diags
}

// lacking says whether a problem may come of nothing but files that aren't there.
func lacking(p policies.Problem) bool {
	return p.File == "" || slices.ContainsFunc([]string{
		"undefined function", "cannot find data.fourgate", "cannot leave out data.fourgate",
	}, func(beginning string) bool { return strings.HasPrefix(p.Message, beginning) })
}

// onlyOnce leaves out repetitions: groups share files.
func onlyOnce(diags hcl.Diagnostics) hcl.Diagnostics {
	seen := map[string]bool{}
	var once hcl.Diagnostics
	for _, d := range diags {
		if text := d.String(); !seen[text] {
			seen[text] = true
			once = append(once, d)
		}
	}
	return once
}
