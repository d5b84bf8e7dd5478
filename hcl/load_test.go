package hcl

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// theSecret is the value of every secret in the tests; nothing may ever print it.
const theSecret = "sk-7f3a9c0d55aa-do-not-print"

// testEnvironment has a few variables and the real files of testdata. Modules and policies,
// whose content nobody here looks at, are there without a file.
func testEnvironment() Environment {
	variables := map[string]string{
		"OPENAI_API_KEY": theSecret, "EMPTY": "", "LISTEN": "127.0.0.1:9000", "RPM": "60",
		"SPACED": theSecret + " and more",
	}
	return Environment{
		LookupEnv: func(name string) (string, bool) {
			v, ok := variables[name]
			return v, ok
		},
		ReadFile: func(path string) ([]byte, error) {
			if slices.Contains([]string{"x.wasm", "house.wasm", "candidate.wasm"}, filepath.Base(path)) {
				return nil, nil
			}
			return os.ReadFile(path)
		},
		ReadDir: func(path string) ([]fs.DirEntry, error) {
			if base := filepath.Base(path); base == "policies" || strings.HasSuffix(path, "layout/x") {
				return nil, nil
			}
			return os.ReadDir(path)
		},
	}
}

// inMemory is an environment whose only files are the given ones.
func inMemory(files map[string]string) Environment {
	env := testEnvironment()
	env.ReadFile = func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	env.ReadDir = func(path string) ([]fs.DirEntry, error) {
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: fs.ErrInvalid}
	}
	return env
}

var marker = regexp.MustCompile(`(?:#|//) (ERROR|WARNING): (.*?)\s*$`)

// expected reads the markers of a file: "line severity: summary" for each. A line may
// have several, separated by " | ".
func expected(t *testing.T, path string) []string {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	lines := bufio.NewScanner(bytes.NewReader(src))
	for n := 1; lines.Scan(); n++ {
		if m := marker.FindStringSubmatch(lines.Text()); m != nil {
			for _, summary := range strings.Split(m[2], " | ") {
				want = append(want, fmt.Sprintf("%d %s: %s", n, strings.ToLower(m[1]), summary))
			}
		}
	}
	return want
}

func found(diags Diagnostics) []string {
	var got []string
	for _, d := range diags {
		got = append(got, fmt.Sprintf("%d %s: %s", d.Line, d.Severity, d.Summary))
	}
	return got
}

// Each file of testdata/valid, invalid and warning says on its own lines what Load has
// to say about them.
func TestMarkedFiles(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"valid", "invalid", "warning"} {
		files, err := filepath.Glob(filepath.Join("testdata", kind, "*.hcl"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files for %s: %v", kind, err)
		}
		for _, path := range files {
			t.Run(kind+"/"+filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				cfg, diags := Load(path, testEnvironment())
				want, got := expected(t, path), found(diags)
				slices.Sort(want)
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("diagnostics (-marked +reported):\n%s\n%s", diff, picture(t, diags))
				}
				checkWording(t, diags)
				if (cfg == nil) != (kind == "invalid") {
					t.Errorf("configuration returned: %t", cfg != nil)
				}
				if cfg != nil && cfg.Catalog == nil {
					t.Error("no catalog")
				}
			})
		}
	}
}

// checkWording holds what every diagnostic promises.
func checkWording(t *testing.T, diags Diagnostics) {
	t.Helper()
	for _, d := range diags {
		if n := len(strings.Fields(d.Summary)); n >= 10 {
			t.Errorf("summary has %d words: %s", n, d.Summary)
		}
		if d.Detail == "" {
			t.Errorf("no detail: %s", d.Summary)
		}
		if d.File == "" || d.Line == 0 {
			t.Errorf("no place: %s", d)
		}
	}
	if text := picture(t, diags); strings.Contains(text, theSecret) {
		t.Errorf("a secret is printed:\n%s", text)
	}
}

func picture(t *testing.T, diags Diagnostics) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteDiagnostics(&out, diags, false, 78); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// golden compares a text with a file, and writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-golden +now):\n%s", path, diff)
	}
}
