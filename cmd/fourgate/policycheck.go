package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/policies"
	"github.com/fourgate-dev/fourgate/policies/matrix"
)

// checkForm is the JSON of policy check.
type checkForm struct {
	Diagnostics hcl.Diagnostics `json:"diagnostics"`
	Files       int             `json:"files"`
	Rules       int             `json:"rules"`
	Tests       int             `json:"tests"`
}

func policyCheckCommand(e *env) *cobra.Command {
	var opts policies.Options
	var strict, write, asJSON bool
	cmd := &cobra.Command{
		Use: "check [-w] [-strict=false] [-profile NAME] PATH...", Short: "Check policy files and their tests", Args: args(cobra.MinimumNArgs(1)),
		Long: "Compile policy files as the proxy does, beside the default policy: the list of builtins, the schema of\n" +
			"the input, the limits. Tests (*_test.rego) are compiled, too. Besides, the files should be formatted as\n" +
			"'opa fmt' does it, and have no import or variable that nobody uses. Warnings are of comparisons that never\n" +
			"hold, or hold for null, of waits and effects that are longer than they can be, and of cells of the\n" +
			"decision matrix to which the policy gives no usable answer: with a configuration's params it may give one.",
		RunE: func(cmd *cobra.Command, list []string) error {
			for _, name := range list {
				if strings.HasSuffix(name, bundleSuffix) {
					return usageError{fmt.Errorf("cannot check the bundle %s: check the directory that it is built from; 'fourgate policy matrix' loads a bundle", name)}
				}
			}
			opts.Paths = list
			r, err := policies.Check(cmd.Context(), opts, strict)
			if err != nil {
				return err
			}
			if write {
				if err := formatPolicies(e, r); err != nil {
					return err
				}
			}
			diags := checkDiagnostics(r)
			if len(r.Problems) == 0 {
				faults, err := faultDiagnostics(cmd.Context(), opts)
				if err != nil {
					return err
				}
				diags = append(diags, faults...)
			}
			diags.Illustrate(hcl.Environment{LookupEnv: e.lookup})
			diags.Sort()
			errs, _ := diags.Count()
			if asJSON {
				if diags == nil {
					diags = hcl.Diagnostics{}
				}
				err = json.NewEncoder(e.stdout).Encode(checkForm{diags, r.Files, r.Rules, r.Tests})
			} else {
				err = report(e.stderr, diags, false)
			}
			switch {
			case err != nil:
				return err
			case errs > 0 && asJSON:
				return reportedError{}
			case errs > 0:
				return fmt.Errorf("%s in %s", count(errs, "error"), strings.Join(list, ", "))
			case asJSON:
				return nil
			}
			_, err = fmt.Fprintf(e.stdout, "%s, %s, %s: fine\n", count(r.Files, "file"), count(r.Rules, "rule"), count(r.Tests, "test"))
			return err
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&strict, "strict", true, "also find what OPA's strict mode does, such as unused imports and variables")
	flags.BoolVarP(&write, "write", "w", false, "format the files that aren't, and list them")
	flags.StringVar(&opts.Profile, "profile", "", "the policy beside the files is this profile: "+strings.Join(policies.Profiles(), ", "))
	flags.StringVar(&opts.Query, "query", "", "the entry point, if the configuration names another than data.fourgate.decision")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// formatPolicies writes unformatted files anew; the report names them no more.
func formatPolicies(e *env, r *policies.CheckReport) error {
	for _, name := range r.Unformatted {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		out, err := policies.Format(name, text)
		if err != nil {
			return err
		}
		if bytes.Equal(out, text) {
			continue
		}
		if err := replaceFile(name, out); err != nil {
			return err
		}
		fmt.Fprintln(e.stderr, "formatted", name)
	}
	r.Unformatted = nil
	return nil
}

func checkDiagnostics(r *policies.CheckReport) hcl.Diagnostics {
	var diags hcl.Diagnostics
	if len(r.Problems) > 0 {
		diags = sourceDiagnostics(&policies.LoadError{Problems: r.Problems})
	}
	if len(r.Doubts) > 0 {
		for _, d := range sourceDiagnostics(&policies.LoadError{Problems: r.Doubts}) {
			d.Severity, d.Summary = hcl.Warning, "Policy hardly means this"
			diags = append(diags, d)
		}
	}
	for _, name := range r.Unformatted {
		diags = append(diags, hcl.Diagnostic{
			Summary: "Policy is not formatted", File: name,
			Detail: fmt.Sprintf("Run 'fourgate policy check -w' on it, or 'opa fmt -w %s'.", name),
		})
	}
	for _, name := range r.Data {
		diags = append(diags, hcl.Diagnostic{
			Severity: hcl.Warning, Summary: "Data file is not loaded", File: name,
			Detail: "'opa test' loads it below data, but the proxy loads data of bundles only; use params, or a bundle.",
		})
	}
	return diags
}

// faultDiagnostics asks a policy that compiles about all cells, and warns of what is no
// usable answer, or hardly means what it says. It is no error, since what the params are is not known here.
func faultDiagnostics(ctx context.Context, opts policies.Options) (hcl.Diagnostics, error) {
	set, err := policies.Load(ctx, opts)
	if err != nil {
		return nil, err
	}
	limited, asker, end := withLimit(ctx, set, 1)
	defer end()
	facts := matrix.Default()
	answers, err := matrix.Ask(limited, asker, facts, nil, nil)
	if err != nil && asker.why == nil {
		return nil, err
	}
	// Of each rule the first fault of a kind is enough: what it says may name the values of the cell.
	type place struct {
		fault, file string
		line        int
	}
	seen := map[place]bool{}
	var diags hcl.Diagnostics
	for _, f := range matrix.FaultsOf(answers) {
		at := place{f.Fault, f.File, f.Line}
		if seen[at] {
			continue
		}
		seen[at] = true
		text := fmt.Sprintf("The fault is %s, first met for %s, %s", f.Fault, f.First.Class, f.First.Phase)
		if f.Why != "" {
			text += ": " + f.Why
		}
		diags = append(diags, hcl.Diagnostic{
			Severity: hcl.Warning, Summary: "Policy gives no usable answer", File: f.File, Line: f.Line,
			Detail: text + ". A request that meets it ends with the upstream's own error. " +
				"'fourgate policy matrix' shows all such cells.",
		})
	}
	for _, d := range matrix.DoubtsOf(facts, answers) {
		diags = append(diags, hcl.Diagnostic{
			Severity: hcl.Warning, Summary: "Policy hardly means this", File: d.File, Line: d.Line,
			Detail: fmt.Sprintf("First met for %s, %s: %s.", d.First.Class, d.First.Phase, d.What),
		})
	}
	return diags, nil
}
