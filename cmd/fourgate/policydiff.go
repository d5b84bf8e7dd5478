package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/policies/matrix"
)

func policyDiffCommand(e *env) *cobra.Command {
	var ask matrixFlags
	var out matrixOutput
	var check bool
	cmd := &cobra.Command{
		Use: "diff [-check] [-c FILE [-group NAME]] [-json | -html[=FILE]] A B", Short: "Show in which cases two policies decide differently",
		Args: cobra.ArbitraryArgs,
		Long: "Show only the cells of the decision matrix in which policy B decides differently from policy A, with the\n" +
			"rules responsible on both sides. With -c and one policy, A is the group's own.\n\n" +
			sourceHelp + "\n\n" +
			"A cell has changed if its action is another one, or goes to another channel, if a fault or an interlock\n" +
			"comes or goes. Cells with the same action and another reason, delay, effects or gates are listed apart.\n" +
			"Where a rule stands is no difference. With -check the exit code is 1 if there is any of both.\n" +
			"Cells are compared with the facts of 'policy matrix', which -fact sets.",
		RunE: func(cmd *cobra.Command, list []string) error {
			list = out.take(list)
			if ask.ground.config != "" && len(list) == 1 {
				list = []string{configSource, list[0]}
			}
			if err := args(cobra.ExactArgs(2))(cmd, list); err != nil {
				return err
			}
			if err := out.check(); err != nil {
				return err
			}
			q, err := ask.open(e)
			if err != nil {
				return err
			}
			q.sources = out.html != ""
			actions := q.actions
			q.actions = nil // both sides of a change have one
			from, err := q.matrixOf(cmd.Context(), e, list[0])
			if err != nil {
				return err
			}
			to, err := q.matrixOf(cmd.Context(), e, list[1])
			if err != nil {
				return err
			}
			d := matrix.Compare(from, to, actions)
			if err := out.write(e, d, d.Stopped); err != nil {
				return err
			}
			if check && !d.Same() {
				return fmt.Errorf("%s and %s differ in %s", from.Policy, to.Policy, count(len(d.Moved)+len(d.Others), "cell"))
			}
			return nil
		},
	}
	ask.add(cmd)
	out.add(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "exit with 1 if the policies differ")
	return cmd
}
