package state

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// documentedUser is the command of docs/state.md that makes the backend's user, with a
// password in it.
func documentedUser(t *testing.T, password string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/state.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin = "ACL SETUSER"
	_, rest, _ := strings.Cut(string(text), "```\n"+begin)
	command, _, whole := strings.Cut(rest, "```")
	words := strings.Fields(begin + command)
	at := slices.Index(words, ">PASSWORD")
	if !whole || at < 0 {
		t.Fatalf("docs/state.md has no command that makes a user with >PASSWORD: %q", words)
	}
	words[at] = ">" + password
	return words
}
