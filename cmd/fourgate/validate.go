package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/plugins"
)

func validateCommand(e *env) *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "validate -c FILE", Short: "Check a configuration with its policies, plugins and secrets", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			host, err := plugins.Open(cmd.Context(), hostOptions(e))
			if err != nil {
				return err
			}
			defer host.Close(cmd.Context())
			l, source, diags := newInspector(host).openAll(cmd.Context(), path, e, quietLogger(e))
			source.close()
			out := e.stderr
			if asJSON {
				out = e.stdout
			}
			if err := report(out, diags, asJSON); err != nil {
				return err
			}
			errs, warnings := diags.Count()
			if l == nil {
				if !asJSON {
					fmt.Fprintf(e.stderr, "fourgate: %s in %s\n", count(errs, "error"), path)
				}
				return reportedError{}
			}
			if !asJSON {
				also := ""
				if warnings > 0 {
					also = ", " + count(warnings, "warning")
				}
				fmt.Fprintf(e.stdout, "%s is valid: %s, %s%s\n", path,
					count(len(l.config.Spec.Groups), "route group"), count(len(l.config.Spec.Providers), "provider"), also)
			}
			return nil
		},
	}
	configFlag(cmd, &path)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the diagnostics as JSON")
	return cmd
}

// configFlag adds -c to a command.
func configFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVarP(path, "config", "c", "fourgate.hcl", "configuration: a file, or a directory of *.hcl")
}
