package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTheRoutingManualShowsTheChain runs the example of docs/routing.md and compares what
// `fourgate chain` prints with what the manual shows.
func TestTheRoutingManualShowsTheChain(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	for _, p := range []string{"openai", "azure_east", "reseller"} {
		fmt.Fprintf(&config, "provider %q {\n  base_url = \"https://%s.example/v1\"\n  auth     = \"none\"\n}\n", p, strings.ReplaceAll(p, "_", "-"))
	}
	dir, shown := t.TempDir(), 0
	for _, b := range blocksOf(string(text)) {
		first, want, _ := strings.Cut(b.text, "\n")
		args, isCommand := strings.CutPrefix(first, "$ fourgate ")
		switch {
		case b.language == "hcl":
			config.WriteString(b.text)
		case isCommand && !strings.Contains(args, "-live"):
			file := filepath.Join(dir, "fourgate.hcl")
			if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			e := &env{
				args: append(strings.Fields(args), "-c", file), stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
				lookup: func(string) (string, bool) { return "", false }, now: time.Now,
			}
			if code := run(context.Background(), e); code != 0 {
				t.Fatalf("line %d: %s exits with %d: %s", b.line, first, code, errs.String())
			}
			if out.String() != want {
				t.Errorf("line %d: %s prints\n%s\nand the manual shows\n%s", b.line, first, out.String(), want)
			}
			shown++
		}
	}
	if shown != 1 {
		t.Errorf("the manual shows %d chains that can be tried, want 1", shown)
	}
}
