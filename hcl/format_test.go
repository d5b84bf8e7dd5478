package hcl

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/fmt/crooked.hcl")
	if err != nil {
		t.Fatal(err)
	}
	got, diags := Format(src, "crooked.hcl")
	if len(diags) > 0 {
		t.Fatal(picture(t, diags))
	}
	golden(t, "testdata/fmt/straight.hcl", string(got))
}

// The configurations of this repository have the layout that Format gives, so that
// formatting twice changes nothing.
func TestFormatOfFormatted(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"testdata/fmt/straight.hcl", "testdata/valid/full.hcl", "../testdata/examples/*.hcl"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, path := range files {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, diags := Format(src, path)
			if len(diags) > 0 || string(got) != string(src) {
				t.Errorf("%s changes: %v\n%s", path, diags, got)
			}
		}
	}
}

func TestFormatRefuses(t *testing.T) {
	t.Parallel()
	refuses := func(filename, src, want string) {
		t.Helper()
		out, diags := Format([]byte(src), filename)
		if out != nil || len(diags) == 0 || diags[0].Summary != want {
			t.Errorf("%s: %q, %v", filename, out, diags)
		}
	}
	refuses("x.hcl", "a {\n  b =\n}\n", "Invalid expression")
	refuses("x.hcl.json", "{}", "JSON has no canonical layout here")
}
