package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// env is what a command may touch of its process.
type env struct {
	args   []string // without the program's name
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	lookup func(string) (string, bool)
	now    func() time.Time
}

func processEnv() *env {
	return &env{os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv, time.Now}
}

// commands is the whole command line, in the order of its help.
var commands = []func(*env) *cobra.Command{
	demoCommand,
	serveCommand,
	validateCommand,
	fmtCommand,
	chainCommand,
	ledgerCommand,
	adminCommand,
	policyCommand,
	pluginCommand,
	simCommand,
	versionCommand,
}

// Exit codes: 1 for what went wrong, 2 for a command line that can't be understood.
const (
	exitOK = iota
	exitFailure
	exitUsage
)

// usageError is a command line that can't be understood.
type usageError struct{ error }

// reportedError has told the user everything already.
type reportedError struct{}

func (reportedError) Error() string { return "reported" }

// run is the program: it returns the exit code.
func run(ctx context.Context, e *env) int {
	root := &cobra.Command{
		Use:           "fourgate",
		Short:         "A policy-as-code routing engine for AI APIs",
		Long:          "Fourgate is a proxy between applications and AI providers. When an upstream attempt\nfails, a Rego policy decides: retry the same route, fall back to another route of the\nsame model and protocol, or abort.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError{unknownCommand(cmd, args[0])}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\nRun '%s -help' for the flags that there are", err, cmd.CommandPath())}
	})
	for _, command := range commands {
		root.AddCommand(command(e))
	}
	root.InitDefaultHelpCmd()
	if cmd, word := strayWord(root, e.args); word != "" {
		// Before its flags are looked at, which another command may have.
		fmt.Fprintf(e.stderr, "fourgate: %v\n", unknownCommand(cmd, word))
		return exitUsage
	}
	root.SetArgs(longFlags(root, e.args))
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)

	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, reportedError{}):
		return exitFailure
	case errors.As(err, &usage):
		fmt.Fprintf(e.stderr, "fourgate: %v\n", err)
		return exitUsage
	}
	fmt.Fprintf(e.stderr, "fourgate: %v\n", err)
	return exitFailure
}

// strayWord returns the first word that stands in the place of a command and is none, and
// the command that it was written behind.
func strayWord(root *cobra.Command, args []string) (*cobra.Command, string) {
	cmd := root
	for _, word := range args {
		if !cmd.HasSubCommands() || strings.HasPrefix(word, "-") || strings.HasPrefix(word, cobra.ShellCompRequestCmd) || cmd == root && word == "completion" {
			break
		}
		i := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
		if i < 0 {
			return cmd, word
		}
		cmd = cmd.Commands()[i]
	}
	return nil, ""
}

func unknownCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	hint := fmt.Sprintf("Run '%s -help' for the commands that there are", cmd.CommandPath())
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf("Did you mean '%s %s'?", cmd.CommandPath(), near[0])
	}
	return fmt.Errorf("unknown command %q\n%s", name, hint)
}

// longFlags lets a long flag be written with one dash as Go and Terraform do: -json is
// --json. A single letter such as -c stays what it is, and so does what a flag takes as its
// value: -since -5h is a flag with a wrong time.
func longFlags(root *cobra.Command, args []string) []string {
	out := slices.Clone(args)
	cmd := root
	for i := 0; i < len(out) && out[i] != "--"; i++ {
		a := out[i]
		if len(a) < 2 || a[0] != '-' {
			for _, c := range cmd.Commands() {
				if c.Name() == a {
					cmd = c
					break
				}
			}
			continue
		}
		name, _, given := strings.Cut(strings.TrimLeft(a, "-"), "=")
		flag := cmd.Flags().Lookup(name)
		switch {
		case len(name) == 1 && a[1] != '-':
			flag = cmd.Flags().ShorthandLookup(name)
		case a[1] != '-':
			out[i] = "-" + a
		}
		if flag != nil && flag.NoOptDefVal == "" && !given {
			i++ // to the value
		}
	}
	return out
}

// args wraps a check of positional arguments as wrong usage.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, list []string) error {
		if err := check(cmd, list); err != nil {
			return usageError{fmt.Errorf("wrong number of arguments: %d\nUsage: %s", len(list), cmd.UseLine())}
		}
		return nil
	}
}

// group is a command that only holds others.
func group(use, short string, parts ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, list []string) error {
			if len(list) == 0 {
				return nil
			}
			return usageError{unknownCommand(cmd, list[0])}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(parts...)
	return c
}
