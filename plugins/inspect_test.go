package plugins_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/plugins"
)

func inspect(t *testing.T, source string) *plugins.Inspection {
	t.Helper()
	found, err := openHost(t).Inspect(t.Context(), plugins.Module{Name: "module", Source: source})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestInspectBuiltins(t *testing.T) {
	t.Parallel()
	for _, name := range plugins.Builtins() {
		found := inspect(t, plugins.BuiltinPrefix+name)
		if len(found.Problems) > 0 || len(found.SHA256) != 64 {
			t.Errorf("%s: %v, digest %q", name, found.Problems, found.SHA256)
		}
		if !slices.Contains(found.Imports, plugins.Extern{Name: "fourgate.verdict", Kind: "function", Type: "(i32,i32,i32,i32,i64)->"}) ||
			!slices.Contains(found.Exports, plugins.Extern{Name: "classify", Kind: "function", Type: "()->"}) {
			t.Errorf("%s: imports %v, exports %v", name, found.Imports, found.Exports)
		}
		for _, l := range found.Limits {
			if l.Used > l.Limit {
				t.Errorf("%s: %+v", name, l)
			}
		}
	}
}

func TestInspectSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	f := func(binary []byte, want ...string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "m.wasm")
		if err := os.WriteFile(path, binary, 0o600); err != nil {
			t.Fatal(err)
		}
		found := inspect(t, path)
		all := strings.Join(found.Problems, "\n")
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("the problems don't have %q:\n%s", w, all)
			}
		}
		if len(found.Problems) < len(want) {
			t.Errorf("%d problems, want %d apart:\n%s", len(found.Problems), len(want), all)
		}
	}
	f([]byte("text"), "no WebAssembly module")
	f(wasm{
		imports: []wasmFunc{importVerdict, {module: "env", name: "abort"}, {module: "fourgate", name: "statsu", results: []byte{i32}}},
		funcs:   []wasmFunc{{code: nil}}, noMarker: true,
	}.bytes(), `import "env.abort" is not ours`, `did you mean "status"`, `it exports no "fourgate_abi_1"`)
	if _, err := openHost(t).Inspect(t.Context(), plugins.Module{Source: "nowhere.wasm"}); err == nil || !strings.Contains(err.Error(), "nowhere.wasm") {
		t.Errorf("a file that isn't there: %v", err)
	}
}
