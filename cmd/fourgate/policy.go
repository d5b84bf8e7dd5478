package main

import "github.com/spf13/cobra"

// policyCommands are what can be done with a policy beside running it, in the order of the
// help.
var policyCommands = []func(*env) *cobra.Command{
	policyNewCommand,
	policyExplainCommand,
	policyCheckCommand,
	policyTestCommand,
	policyMatrixCommand,
	policyDiffCommand,
	policyReplayCommand,
}

func policyCommand(e *env) *cobra.Command {
	cmd := group("policy", "Read, compare, explain and test policies")
	for _, command := range policyCommands {
		cmd.AddCommand(command(e))
	}
	return cmd
}
