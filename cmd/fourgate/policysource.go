package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/policies"
	"github.com/fourgate-dev/fourgate/policies/bundle"
)

// The policies that have a name instead of a path on a command line.
const (
	embeddedSource = "embedded" // the default policy
	configSource   = "config"   // with -c: the policy of the group
	profilePrefix  = "profile:"
	bundleSuffix   = ".tar.gz"
)

// sourceHelp says in a command's help how a policy is named.
const sourceHelp = "A policy is a directory or a .rego file, a bundle (*.tar.gz), embedded for the default\n" +
	"policy, profile:NAME (or just NAME, where no such path exists), or, with -c, config for\n" +
	"the group's own; a directory of such a name is ./embedded. With -c the group's params,\n" +
	"query and time zone are used, and below files its profile. The default policy and\n" +
	"profiles get its params only if its own policy is one of them, because they refuse params\n" +
	"that they don't know."

// policyGround is the configuration that a policy command stands on: the group gives
// budget and channels, and its policy the params. It is nil without -c.
type policyGround struct {
	path   string
	config *hcl.Config
	named  hcl.Named
	group  *engine.Group
}

// groundFlags are -c and -group of a policy command.
type groundFlags struct{ config, group string }

func (f *groundFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.config, "config", "c", "", "configuration whose group, budget and params are used")
	cmd.Flags().StringVar(&f.group, "group", "", "route group of the configuration (default: the only one)")
}

// open reads the configuration; the result is nil if there is none.
func (f *groundFlags) open(e *env) (*policyGround, error) {
	if f.config == "" {
		if f.group != "" {
			return nil, usageError{errors.New("-group names a route group of a configuration; name that with -c FILE")}
		}
		return nil, nil
	}
	config, named, diags := hcl.LoadNamed(f.config, hcl.Environment{LookupEnv: e.lookup, WithoutSecrets: true})
	if diags.HasErrors() {
		return nil, reported(e, diags)
	}
	g := &policyGround{path: f.config, config: config, named: named}
	groups := config.Catalog.Groups()
	var names []string
	for _, group := range groups {
		names = append(names, group.Name())
		if group.Name() == f.group || f.group == "" && len(groups) == 1 {
			g.group = group
		}
	}
	switch {
	case g.group != nil:
		return g, nil
	case f.group == "":
		return nil, usageError{fmt.Errorf("there are %d route groups; choose one with -group: %s", len(names), strings.Join(names, ", "))}
	}
	return nil, noSuchGroup(f.group, f.config, names)
}

// policy is the one that decides for the group; without a configuration it is empty,
// which is the default policy.
func (g *policyGround) policy() hcl.Policy {
	if g == nil {
		return hcl.Policy{}
	}
	return g.config.PolicyOf(g.group.Name())
}

// caller names the first caller that may use the group.
func (g *policyGround) caller() string {
	for _, c := range g.config.Catalog.Callers() {
		if slices.Contains(c.Groups(), g.group) {
			return c.Name()
		}
	}
	return ""
}

// loadPolicy compiles the policy that a command line names. What is wrong with it is
// written to stderr with its places. ground may be nil.
func loadPolicy(ctx context.Context, e *env, source string, ground *policyGround) (*policies.Set, error) {
	options, err := policyOptions(source, ground)
	if err != nil {
		return nil, err
	}
	set, err := policies.Load(ctx, options)
	if err == nil {
		return set, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var diags hcl.Diagnostics
	if source == configSource && ground != nil {
		diags = policyDiagnostics(ground.named, ground.ownPolicy(), "", err)
	} else {
		diags = sourceDiagnostics(err)
	}
	diags.Illustrate(hcl.Environment{LookupEnv: e.lookup})
	diags.Sort()
	if err := report(e.stderr, diags, false); err != nil {
		return nil, err
	}
	fmt.Fprintf(e.stderr, "fourgate: %s in policy %s\n", count(len(diags), "error"), source)
	return nil, reportedError{}
}

// ownPolicy is the policy that decides for the group, with whose block it is.
func (g *policyGround) ownPolicy() hcl.NamedPolicy {
	p := hcl.NamedPolicy{Policy: g.policy()}
	if _, own := g.config.GroupPolicies[g.group.Name()]; own {
		p.Group = g.group.Name()
	}
	return p
}

// policyOptions finds out what a source means.
func policyOptions(source string, ground *policyGround) (policies.Options, error) {
	own := ground.policy()
	if source == configSource && ground != nil {
		if own.Bundle != nil {
			return policies.Options{}, fmt.Errorf("group %q takes its policy from a bundle; fetch that from policy.bundle.url and name its file instead of %q",
				ground.group.Name(), configSource)
		}
		return optionsOf(own, nil), nil
	}
	options := policies.Options{Timeout: own.Timeout, Location: own.Location}
	if profile, named := strings.CutPrefix(source, profilePrefix); named || source == embeddedSource {
		if named {
			options.Profile = profile
		}
		return embeddedOptions(options, own), nil
	}
	_, err := os.Stat(source)
	switch {
	case err != nil && source == configSource:
		return policies.Options{}, usageError{fmt.Errorf("%s is the policy of a configuration's group; name that with -c FILE", configSource)}
	case err != nil && slices.Contains(policies.Profiles(), source):
		options.Profile = source
		return embeddedOptions(options, own), nil
	case err != nil:
		return policies.Options{}, fmt.Errorf("cannot find policy %q: name a directory, a .rego file or a bundle (*%s) that exists, %s, or a profile: %s",
			source, bundleSuffix, embeddedSource, strings.Join(policies.Profiles(), ", "))
	}
	own.Paths, own.Bundle = []string{source}, nil
	if !strings.HasSuffix(source, bundleSuffix) {
		return optionsOf(own, nil), nil
	}
	// Whoever names a file trusts it; its signature is checked where it is fetched.
	b, err := bundle.ReadFile(source, nil)
	if err != nil {
		return policies.Options{}, err
	}
	own.Paths = nil
	return optionsOf(own, &b), nil
}

// embeddedOptions adds the group's params where they are knobs: the default policy and the
// profiles refuse what they don't know, and another policy may have params of its own.
func embeddedOptions(options policies.Options, own hcl.Policy) policies.Options {
	if len(own.Paths) == 0 && own.Bundle == nil {
		options.Params = own.Params
	}
	return options
}

// sourceDiagnostics are the problems of a policy that a command line names.
func sourceDiagnostics(err error) hcl.Diagnostics {
	var refused *policies.LoadError
	if !errors.As(err, &refused) {
		return hcl.Diagnostics{{Summary: "Policy cannot be loaded", Detail: err.Error()}}
	}
	var diags hcl.Diagnostics
	for _, p := range refused.Problems {
		d := hcl.Diagnostic{Summary: "Policy does not compile", Detail: p.Text(), File: p.File, Line: p.Line, Column: p.Col}
		if p.Line == 0 {
			d.Summary = "Policy cannot be used"
		}
		diags = append(diags, d)
	}
	return diags
}
