package policies

import (
	"errors"
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

// The tests of such a policy aren't run: they would never end.
func TestTestsOfHostilePolicies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"deep_brackets", "doubled_nesting", "doubled_array", "long_else"} {
		text, err := os.ReadFile(filepath.Join("testdata", "hostile", name+".rego.txt"))
		if err != nil {
			t.Fatal(err)
		}
		_, want, _ := strings.Cut(string(text), "# expect: refused: ")
		want, _, _ = strings.Cut(want, "\n")
		report, err := RunTests(t.Context(), TestOptions{Paths: []string{filepath.Dir(writePolicy(t, string(text)))}})
		var refused *LoadError
		if !errors.As(err, &refused) || refused.Problems[0].Line == 0 || !strings.Contains(refused.Problems[0].Message, want) {
			t.Errorf("%s: report %v, error %.300v, want %q", name, report, err, want)
		}
	}
}

// What has no end is no policy file, wherever a policy is read.
func TestDevicesAreNoPolicyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.rego", "a_test.rego"} {
		if err := os.Symlink(os.DevNull, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	const want = "a pipe or a device"
	if _, err := Load(t.Context(), Options{Paths: []string{dir}}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("loading gives %v", err)
	}
	report, err := Check(t.Context(), Options{Paths: []string{dir}}, true)
	if err != nil || len(report.Problems) != 2 || !strings.Contains(report.Problems[0].Message, want) {
		t.Errorf("checking gives %+v, %v", report, err)
	}
	if _, err := RunTests(t.Context(), TestOptions{Paths: []string{dir}}); err == nil || strings.Count(err.Error(), want) != 2 {
		t.Errorf("testing gives %v", err)
	}
}
