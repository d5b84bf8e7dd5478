package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fourgate-dev/fourgate/"

// mayImport is the order of the packages: each may import the packages of this module
// behind it and no other. Arrows point down only.
var mayImport = map[string][]string{
	"engine":                 {},
	"engine/enginetest":      {"engine"},
	"hcl":                    {"engine"},
	"policies":               {"engine"},
	"policies/replay":        {"engine"},
	"policies/bundle":        {"engine"},
	"policies/matrix":        {"engine"},
	"policies/starter":       {"policies"},
	"plugins":                {"engine", "plugins/oci"},
	"plugins/oci":            {},
	"plugins/sdk":            {},
	"plugins/sdk/go":         {},
	"plugins/starter":        {"plugins/sdk"},
	"proxy/sse":              {},
	"proxy/judge/strictjson": {},
	"proxy/gate":             {"engine", "proxy/sse", "proxy/judge/strictjson"},
	"proxy/judge":            {"engine", "proxy/judge/strictjson"},
	"proxy/upstream":         {"engine"},
	"proxy/watch":            {},
	"proxy/ledger":           {"engine"},
	"proxy/sim":              {},
	"proxy/state":            {"engine"},
	"proxy/state/redistest":  {},
	"proxy/admin":            {"engine", "proxy/ledger"},
	"proxy/probe":            {"engine", "proxy/upstream"},
	"proxy":                  {"engine", "proxy/gate", "proxy/judge", "proxy/sse", "proxy/upstream", "proxy/watch"},
	"cmd/fourgate":           {"engine", "hcl", "policies", "policies/bundle", "policies/matrix", "policies/replay", "policies/starter", "plugins", "plugins/starter", "proxy", "proxy/admin", "proxy/ledger", "proxy/probe", "proxy/sim", "proxy/state", "proxy/upstream", "proxy/watch"},
}

// homes says which packages may import a heavy dependency.
var homes = map[string][]string{
	"github.com/open-policy-agent/opa":    {"policies", "policies/bundle"},
	"github.com/tetratelabs/wazero":       {"plugins"},
	"github.com/hashicorp/hcl":            {"hcl"},
	"oras.land/oras-go":                   {"plugins/oci", "policies/bundle"},
	"github.com/opencontainers":           {"plugins/oci"},
	"github.com/zclconf/go-cty":           {"hcl"},
	"github.com/valyala/fasthttp":         {"proxy", "proxy/upstream", "proxy/sim"},
	"modernc.org/sqlite":                  {"proxy/ledger"},
	"database/sql":                        {"proxy/ledger"},
	"github.com/spf13/cobra":              {"cmd/fourgate"},
	"github.com/tidwall/gjson":            {"plugins", "proxy", "proxy/gate", "proxy/judge", "proxy/sim"},
	"github.com/redis/rueidis":            {"proxy/state"},
	"github.com/prometheus/client_golang": {"plugins", "policies", "policies/bundle", "proxy", "proxy/admin", "proxy/ledger", "proxy/probe", "proxy/state", "cmd/fourgate"},
}

// pure are the packages that do no I/O, and pureImports all of the standard library
// that they may import. (What those import in turn can't be banned: fmt brings os.)
var (
	pure        = []string{"engine", "proxy/gate", "proxy/sse", "proxy/judge", "proxy/judge/strictjson"}
	pureImports = []string{
		"bytes", "cmp", "crypto/sha256", "encoding/hex", "encoding/json", "errors", "fmt", "io", "maps", "math", "math/bits", "net/url", "slices", "strconv",
		"strings", "sync", "sync/atomic", "time", "unicode", "unicode/utf16", "unicode/utf8", "unsafe", "hash/maphash", "maps",
	}
	pureSelectors = []string{"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Sleep", "time.Tick"}
)

type sourceFile struct {
	pkg, path string
	ast       *ast.File
}

// sources parses every non-test file of the module.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []sourceFile
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") && name != ".." || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		files = append(files, sourceFile{filepath.ToSlash(rel), path, f})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		allowed, known := mayImport[f.pkg]
		if !known {
			t.Errorf("%s: package %s has no place in the order of packages", f.path, f.pkg)
			continue
		}
		for _, spec := range f.ast.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if own, ok := strings.CutPrefix(path, module); ok && !slices.Contains(allowed, own) {
				t.Errorf("%s: package %s may not import %s", f.path, f.pkg, own)
			}
			for heavy, home := range homes {
				if (path == heavy || strings.HasPrefix(path, heavy+"/")) && !slices.Contains(home, f.pkg) {
					t.Errorf("%s: %s has its home in %v", f.path, heavy, home)
				}
			}
		}
	}
}

func TestPurePackagesDoNoIO(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		if !slices.Contains(pure, f.pkg) {
			continue
		}
		for _, spec := range f.ast.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if !strings.Contains(path, ".") && !slices.Contains(pureImports, path) {
				t.Errorf("%s: a pure package may not import %s", f.path, path)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a pure package starts no goroutine", f.path)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains(pureSelectors, x.Name+"."+n.Sel.Name) {
					t.Errorf("%s: a pure package doesn't use %s.%s", f.path, x.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
}
