package policies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A check of a policy that is refused for what it would outgrow ends, too, and says the
// same as loading it.
func TestCheckOfHostilePolicies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"doubled_nesting", "doubled_rules", "hidden_direction", "deep_comprehensions", "long_else"} {
		text, err := os.ReadFile(filepath.Join("testdata", "hostile", name+".rego.txt"))
		if err != nil {
			t.Fatal(err)
		}
		_, want, _ := strings.Cut(string(text), "# expect: refused: ")
		want, _, _ = strings.Cut(want, "\n")
		report, err := Check(t.Context(), Options{Paths: []string{writePolicy(t, string(text))}}, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Problems) == 0 || !strings.Contains(report.Problems[0].Message, want) {
			t.Errorf("%s: problems %.300v, want %q", name, report.Problems, want)
		}
	}
}
