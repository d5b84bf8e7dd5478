package plugins_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
)

// wasm is a module that a test puts together: enough of an assembler for what hostile
// modules need, so that the tests need no tool.
type wasm struct {
	imports  []wasmFunc // name is "module.name"
	others   [][]byte   // imports that are no functions, before the functions
	funcs    []wasmFunc // the first one is exported as classify
	memory   []byte     // limits; nil means one page
	table    []byte     // limits
	start    bool       // a start section that names the first function
	noMarker bool
	globals  []byte   // the global section's content
	exports  [][]byte // more of them
	extra    []byte   // raw sections at the end
}

type wasmFunc struct {
	module, name    string
	params, results []byte
	code            []byte // without locals and end
}

const (
	i32 = 0x7f
	i64 = 0x7e
)

func leb(n int) []byte {
	var out []byte
	for {
		b := byte(n & 0x7f)
		if n >>= 7; n == 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

// sleb is a signed number, for constants.
func sleb(n int64) []byte {
	var out []byte
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func vec(items ...[]byte) []byte {
	out := leb(len(items))
	for _, i := range items {
		out = append(out, i...)
	}
	return out
}

func str(s string) []byte { return append(leb(len(s)), s...) }

func cat(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func section(id byte, body []byte) []byte { return cat([]byte{id}, leb(len(body)), body) }

func (w wasm) bytes() []byte {
	var types, imports, funcs, codes [][]byte
	for _, f := range append(append([]wasmFunc{}, w.imports...), w.funcs...) {
		types = append(types, cat([]byte{0x60}, leb(len(f.params)), f.params, leb(len(f.results)), f.results))
	}
	imports = append(imports, w.others...)
	for i, f := range w.imports {
		imports = append(imports, cat(str(f.module), str(f.name), []byte{0}, leb(i)))
	}
	for i, f := range w.funcs {
		funcs = append(funcs, leb(len(w.imports)+i))
		body := cat([]byte{0}, f.code, []byte{0x0b})
		codes = append(codes, cat(leb(len(body)), body))
	}
	memory := w.memory
	if memory == nil {
		memory = []byte{0, 1}
	}
	exports := [][]byte{
		cat(str("classify"), []byte{0}, leb(len(w.imports))),
		cat(str("memory"), []byte{2, 0}),
	}
	if !w.noMarker {
		exports = append(exports, cat(str(plugins.ABIMarker), []byte{0}, leb(len(w.imports))))
	}
	out := cat([]byte("\x00asm\x01\x00\x00\x00"), section(1, vec(types...)))
	if len(imports) > 0 {
		out = cat(out, section(2, vec(imports...)))
	}
	out = cat(out, section(3, vec(funcs...)))
	if w.table != nil {
		out = cat(out, section(4, vec(cat([]byte{0x70}, w.table))))
	}
	out = cat(out, section(5, vec(memory)))
	if w.globals != nil {
		out = cat(out, section(6, w.globals))
	}
	out = cat(out, section(7, vec(append(exports, w.exports...)...)))
	if w.start {
		out = cat(out, section(8, leb(len(w.imports))))
	}
	return cat(out, section(10, vec(codes...)), w.extra)
}

var importVerdict = wasmFunc{module: "fourgate", name: "verdict", params: []byte{i32, i32, i32, i32, i64}}

// answering is a module that calls verdict with the given arguments; the reason's text
// lies in the memory, which is all zeros.
func answering(class, scope, ptr, length, wait int64) wasm {
	return wasm{
		imports: []wasmFunc{importVerdict},
		funcs:   []wasmFunc{{code: callVerdict(class, scope, ptr, length, wait)}},
	}
}

func callVerdict(class, scope, ptr, length, wait int64) []byte {
	return cat([]byte{0x41}, sleb(class), []byte{0x41}, sleb(scope), []byte{0x41}, sleb(ptr),
		[]byte{0x41}, sleb(length), []byte{0x42}, sleb(wait), []byte{0x10, 0})
}

// file writes a module's bytes and returns how to load it, pinned.
func file(t testing.TB, binary []byte) plugins.Module {
	t.Helper()
	path := filepath.Join(t.TempDir(), "module.wasm")
	if err := os.WriteFile(path, binary, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(binary)
	return plugins.Module{Name: "test", Source: path, SHA256: hex.EncodeToString(sum[:])}
}

func load(t testing.TB, host *plugins.Host, binary []byte) (engine.Classifier, error) {
	t.Helper()
	return host.Load(t.Context(), file(t, binary))
}
