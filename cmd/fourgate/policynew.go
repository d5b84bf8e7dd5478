package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/policies"
	"github.com/fourgate-dev/fourgate/policies/starter"
)

func policyNewCommand(e *env) *cobra.Command {
	var parent, profile string
	cmd := &cobra.Command{
		Use: "new [-dir DIR] [-profile NAME] NAME", Short: "Begin a policy", Args: args(cobra.ExactArgs(1)),
		Long: "Write a small policy into the new directory NAME: a rule that decides one case and leaves the others to\n" +
			"the default policy, or to a profile; its tests, the schemas, and a README with the next commands.",
		RunE: func(_ *cobra.Command, list []string) error {
			if list[0] == "" {
				return errNoName
			}
			dir := filepath.Join(parent, filepath.Clean(list[0]))
			files, err := starter.Files(filepath.Base(dir), filepath.ToSlash(dir), profile)
			if err != nil {
				return usageError{err}
			}
			if err := writeNew(dir, files); err != nil {
				return fmt.Errorf("cannot write policy: %w", err)
			}
			from, beside := embeddedSource, ""
			if profile != "" {
				from, beside = profilePrefix+profile, "-profile "+profile+" "
			}
			_, err = fmt.Fprintf(e.stdout, "%[1]s is a policy. Next:\n\n  fourgate policy test %[2]s%[1]s\n  fourgate policy check %[2]s%[1]s\n"+
				"  fourgate policy diff -fact request.caller=batch %[3]s %[1]s\n\nThen change %[4]s, and its tests.\n",
				dir, beside, from, filepath.Join(dir, "policy.rego"))
			return err
		},
	}
	cmd.Flags().StringVar(&parent, "dir", "", "make the new directory below this one")
	cmd.Flags().StringVar(&profile, "profile", "", "leave the other cases to this profile: "+strings.Join(policies.Profiles(), ", "))
	return cmd
}
