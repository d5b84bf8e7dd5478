package main

import (
	"context"
	"errors"
	"strings"

	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/policies"
	"github.com/fourgate-dev/fourgate/proxy"
)

// compilePolicies compiles the policies of a configuration, all of them whatever is wrong
// with some, and gives each to the groups that it decides for.
func compilePolicies(ctx context.Context, named hcl.Named, parts *proxy.Parts) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, p := range named.Policies {
		set, err := policies.Load(ctx, optionsOf(p.Policy))
		if err != nil {
			diags = append(diags, policyDiagnostics(named, p, "", err)...)
			continue
		}
		if p.Group == "" {
			parts.Policy = set
		} else {
			parts.GroupPolicies[p.Group] = set
		}
	}
	return onlyOnce(diags)
}

// optionsOf is a policy of the configuration as it is compiled.
func optionsOf(p hcl.Policy) policies.Options {
	return policies.Options{Paths: p.Paths, Query: p.Query, Timeout: p.Timeout, Params: p.Params}
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
		case p.Partial && (problem.File == "" || strings.HasPrefix(problem.Message, "undefined function")):
			// It lacks files: that a rule or a function is missing means nothing.
		case problem.File == "":
			diags = append(diags, named.PolicyError(p.Group, prefix+argumentOf(problem), "Policy cannot be used", problem.Message))
		default:
			diags = append(diags, hcl.Diagnostic{
				Summary: "Policy does not compile", Detail: problem.Message, File: problem.File, Line: problem.Line, Column: problem.Col,
			})
		}
	}
	return diags
}

// argumentOf is the argument of a policy block that a problem is about, by its first words.
func argumentOf(p policies.Problem) string {
	for words, argument := range map[string]string{
		"cannot find policy profile": "profile",
		"cannot use policy param":    "params",
		"cannot use query":           "query",
		"cannot find a rule":         "query",
	} {
		if strings.HasPrefix(p.Message, words) {
			return argument
		}
	}
	return ""
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
