package policies

import (
	"os"
	"path/filepath"
	"testing"
)

// A path may be a link to a directory, which whoever publishes the next version moves.
func TestPathIsALink(t *testing.T) {
	t.Parallel()
	dir := directory(t, map[string]string{
		"one/p.rego": "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": \"one\"}\n", "one/.draft.rego": "package",
	})
	link := filepath.Join(dir, "current")
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	set, err := Load(t.Context(), Options{Paths: []string{link}})
	if err != nil {
		t.Fatal(err)
	}
	q := failed(t)
	if d := set.Decide(&q); d.Reason.String() != "one" || d.Rule != filepath.ToSlash(filepath.Join(link, "p.rego"))+":3" {
		t.Errorf("decided %s at %s", d.Reason, d.Rule)
	}
}

// A problem of an option says of which, so that a configuration shows its place.
func TestProblemsOfOptions(t *testing.T) {
	t.Parallel()
	for argument, opts := range map[string]Options{
		"profile": {Profile: "kunawo"},
		"query":   {Query: "data.acme.decision"},
		"params":  {Params: map[string]any{"retry_on_netwrk": true}},
		"data":    {Data: map[string]any{"f": func() {}}},
	} {
		for _, p := range problemsOf(t, opts) {
			if p.Argument != argument || p.File != "" {
				t.Errorf("%s: the problem %q is about %q", argument, p, p.Argument)
			}
		}
	}
}
