package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/policies"
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
			"'opa fmt' does it, and have no import or variable that nobody uses.",
		RunE: func(cmd *cobra.Command, list []string) error {
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
