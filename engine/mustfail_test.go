package engine_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrongStatesDoNotCompile adds each file of testdata/mustfail to the package and
// expects the compile error that stands in the file behind "want:".
func TestWrongStatesDoNotCompile(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var pkg []*ast.File
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		pkg = append(pkg, f)
	}
	std := importer.ForCompiler(fset, "source", nil)
	check := func(files []*ast.File) (errs []string) {
		conf := types.Config{Importer: std, Error: func(err error) { errs = append(errs, err.Error()) }}
		_, _ = conf.Check("github.com/fourgate-dev/fourgate/engine", fset, files, nil)
		return errs
	}
	if errs := check(pkg); len(errs) > 0 {
		t.Fatalf("the package itself doesn't compile: %v", errs)
	}
	snippets, err := filepath.Glob("testdata/mustfail/*.go.txt")
	if err != nil || len(snippets) == 0 {
		t.Fatalf("no snippet found: %v", err)
	}
	for _, name := range snippets {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, want, ok := strings.Cut(string(src), "// want: ")
		want, _, _ = strings.Cut(want, "\n")
		f, err := parser.ParseFile(fset, name, src, 0)
		if err != nil || !ok {
			t.Fatalf("%s: %v, want line found: %v", name, err, ok)
		}
		if errs := check(append(pkg[:len(pkg):len(pkg)], f)); len(errs) != 1 || !strings.Contains(errs[0], want) {
			t.Errorf("%s: got %q, want %q", name, errs, want)
		}
	}
}
