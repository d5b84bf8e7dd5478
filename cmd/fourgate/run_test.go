package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// Flags get their second dash, and their values, arguments and the rest after -- don't.
func TestLongFlags(t *testing.T) {
	t.Parallel()
	f := func(line, want string) {
		t.Helper()
		root := &cobra.Command{Use: "fourgate"}
		for _, command := range commands {
			root.AddCommand(command(&env{}))
		}
		if diff := cmp.Diff(want, strings.Join(longFlags(root, strings.Fields(line)), " ")); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
	f("version -json", "version --json")
	f("policy replay -c F -since -5h -json new", "policy replay -c F --since -5h --json new")
	f("policy replay -since=-5h -json new", "policy replay --since=-5h --json new")
	f("policy replay -c -json new", "policy replay -c -json new")
	f("policy matrix -html -json", "policy matrix --html --json") // its file is optional
	f("policy explain --input - -json", "policy explain --input - --json")
	f("policy check -w -strict=false p", "policy check -w --strict=false p")
	f("serve -colour -help", "serve --colour --help")
	f("policy test p -- -json", "policy test p -- -json")
	f("-help", "--help")
}
