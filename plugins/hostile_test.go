package plugins_test

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
)

// doubling is a chain of n functions that each call the next one twice: 2^n calls, and
// no loop that would look at the deadline.
func doubling(n int) wasm {
	w := wasm{}
	for i := range n {
		var code []byte
		if i < n-1 {
			code = cat([]byte{0x10}, leb(i+1), []byte{0x10}, leb(i+1))
		}
		w.funcs = append(w.funcs, wasmFunc{code: code})
	}
	return w
}

// indirectTable puts the functions 0 to n-1 into a table.
func indirectTable(n int) []byte {
	var elements [][]byte
	for i := range n {
		elements = append(elements, leb(i))
	}
	return section(9, vec(cat([]byte{0, 0x41, 0, 0x0b}, vec(elements...))))
}

// withElements puts the element section in front of the code section, where it belongs.
func withElements(w wasm, elements []byte) []byte {
	all := w.bytes()
	at := bytes.LastIndex(all, section(10, nil)[:1])
	for at > 0 && !validTail(all[at:]) {
		at = bytes.LastIndex(all[:at], []byte{10})
	}
	return cat(all[:at], elements, all[at:])
}

// validTail says whether text is exactly one section.
func validTail(text []byte) bool {
	size, shift := 0, 0
	for i, b := range text[1:] {
		size |= int(b&0x7f) << shift
		shift += 7
		if b&0x80 == 0 {
			return len(text) == 2+i+size
		}
	}
	return false
}

// TestRefusedAtLoad shows that what a module could do wrong by its shape is refused with
// a reason, before it is compiled.
func TestRefusedAtLoad(t *testing.T) {
	t.Parallel()
	host := openHost(t)
	ok := answering(0, 0, 0, 0, -1)
	f := func(name string, binary []byte, want ...string) {
		t.Helper()
		_, err := load(t, host, binary)
		if err == nil {
			t.Errorf("%s: it was loaded", name)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q lacks %q", name, err, w)
			}
		}
	}
	with := func(change func(w *wasm)) []byte {
		w := ok
		w.imports = append([]wasmFunc{}, ok.imports...)
		w.funcs = append([]wasmFunc{}, ok.funcs...)
		change(&w)
		return w.bytes()
	}

	f("foreign import", with(func(w *wasm) { w.imports[0].module = "wasi_snapshot_preview1" }),
		`import "wasi_snapshot_preview1.verdict" is not ours`)
	f("AssemblyScript's abort", with(func(w *wasm) { w.imports[0].module, w.imports[0].name = "env", "abort" }), "--use abort=")
	f("unknown import", with(func(w *wasm) { w.imports[0].name = "verdicts" }),
		`import "fourgate.verdicts" doesn't exist`, `did you mean "verdict"?`)
	f("a function behind other imports", with(func(w *wasm) {
		w.others = [][]byte{
			cat(str("env"), str("memory"), []byte{2, 1, 1, 2}), cat(str("env"), str("table"), []byte{1, 0x70, 0, 1}),
			cat(str("fourgate"), str("global"), []byte{3, i32, 0}),
		}
		w.imports = append(w.imports, wasmFunc{module: "fourgate", name: "statuss", results: []byte{i32}})
	}), `import "env.memory" is not ours`, `import "env.table" is not ours`, `import "fourgate.global" is no function`, `did you mean "status"?`)
	f("an import of another kind", with(func(w *wasm) { w.others = [][]byte{cat(str("env"), str("tag"), []byte{4, 0, 0})} }), "switched off")
	f("wrong import type", with(func(w *wasm) { w.imports[0].params = []byte{i32} }),
		`import "fourgate.verdict" has the type (i32)->; it should be (i32,i32,i32,i32,i64)->`)
	f("no marker", with(func(w *wasm) { w.noMarker = true }), `it exports no "fourgate_abi_1"`)
	f("wrong entry type", with(func(w *wasm) { w.funcs[0].results = []byte{i32} }),
		`its export "classify" has the type ()->i32; it should be ()->`)
	f("several mistakes at once", with(func(w *wasm) { w.noMarker, w.start = true, true }), "fourgate_abi_1", "start section")
	f("start function", with(func(w *wasm) { w.start = true }), "it has a start section")
	f("table bomb", with(func(w *wasm) { w.table = cat([]byte{0}, leb(100_000_000)) }), "its table has 100000000 entries; the limit is 1000")
	f("memory bomb at the start", with(func(w *wasm) { w.memory = cat([]byte{0}, leb(60_000)) }), "raise the classifier's memory")
	f("shared memory", with(func(w *wasm) { w.memory = []byte{3, 1, 1} }), "switched off")
	f("doubling calls", doubling(40).bytes(), "call each other so often")
	f("bulk fill", with(func(w *wasm) {
		w.funcs[0].code = []byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0}
	}), "bulk memory")
	f("SIMD", with(func(w *wasm) { w.funcs[0].code = []byte{0xfd, 12} }), "SIMD")
	f("a call of nobody", with(func(w *wasm) { w.funcs[0].code = []byte{0x10, 99} }), "function 99, which is not there")
	f("type error inside", with(func(w *wasm) { w.funcs[0].code = []byte{0x6a} }), "its code is not valid")
	f("too many functions", wasm{funcs: make([]wasmFunc, 5000)}.bytes(), "the limit is")
	f("empty file", nil, "no WebAssembly module")
	f("a component", []byte("\x00asm\x0d\x00\x01\x00"), "component")
	whole := ok.bytes()
	for n := range whole {
		if _, err := load(t, host, whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were loaded", n, len(whole))
		}
	}
}

// TestEndedWhileRunning shows that what a module does wrong while it runs becomes an
// unknown verdict with a fault, and that it ends at all.
func TestEndedWhileRunning(t *testing.T) {
	t.Parallel()
	host := openHost(t)
	ev := jsonError(500, `{"error":{"message":"x"}}`)
	f := func(name string, binary []byte, want string) {
		t.Helper()
		m := file(t, binary)
		if !strings.Contains(want, "timeout") {
			m.Timeout = plugins.MaxTimeout // a busy test machine is no fault of the module
		}
		c, err := host.Load(t.Context(), m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for range 3 { // the second time, too: nothing is left over from the first
			v := c.Classify(&ev)
			if v != (engine.Verdict{Fault: v.Fault}) || !slices.Contains(strings.Split(want, "|"), v.Fault) {
				t.Errorf("%s: verdict %+v; want only the fault %q", name, v, want)
			}
		}
	}
	only := func(code ...byte) []byte { return wasm{funcs: []wasmFunc{{code: code}}}.bytes() }
	grow := []byte{0x41, 1, 0x40, 0, 0x1a}

	f("endless loop", only(0x03, 0x40, 0x0c, 0, 0x0b), "timeout")
	f("memory bomb in a loop", only(cat([]byte{0x03, 0x40}, grow, []byte{0x0c, 0, 0x0b})...), "timeout")
	f("endless recursion", only(0x10, 0), "trap|timeout") // the stack's end or the deadline, whichever comes first
	f("trap", only(0x00), "trap")
	f("memory out of bounds", only(0x41, 0x7f, 0x28, 2, 0, 0x1a), "trap")
	f("division by zero", only(0x41, 1, 0x41, 0, 0x6d, 0x1a), "trap")
	f("no verdict", only(), "nonsense")

	// Doubling through a table can't be proved to end, so every call looks at the deadline.
	w := wasm{table: []byte{0, 30}}
	for i := range 30 {
		var code []byte
		if i < 29 {
			call := cat([]byte{0x41}, sleb(int64(i+1)), []byte{0x11, 0, 0})
			code = cat(call, call)
		}
		w.funcs = append(w.funcs, wasmFunc{code: code})
	}
	f("doubling calls through a table", withElements(w, indirectTable(30)), "timeout")

	f("class out of range", answering(13, 0, 0, 0, -1).bytes(), "nonsense")
	f("scope out of range", answering(1, 6, 0, 0, -1).bytes(), "nonsense")
	f("negative class", answering(-1, 0, 0, 0, -1).bytes(), "nonsense")
	f("no reason", answering(1, 2, 0, 0, -1).bytes(), "nonsense")
	f("a reason of zeros", answering(1, 2, 0, 8, -1).bytes(), "nonsense")
	f("a huge reason", answering(1, 2, 0, 1<<30, -1).bytes(), "nonsense")
	f("a reason outside the memory", answering(1, 2, 65530, 64, -1).bytes(), "trap")
	f("a wait of a thousand years", answering(1, 2, 0, 8, 1000*365*86400*1000).bytes(), "nonsense")
	f("a negative wait", answering(1, 2, 0, 8, -2).bytes(), "nonsense")

	path := []byte{i32, i32, i32}
	read := func(code ...byte) []byte {
		return wasm{
			imports: []wasmFunc{{module: "fourgate", name: "json_at", params: path, results: []byte{i32}}},
			funcs:   []wasmFunc{{code: code}},
		}.bytes()
	}
	f("a path outside the memory", read(0x41, 0x7f, 0x41, 0x7f, 0x41, 10, 0x10, 0, 0x1a), "trap")
	f("a path of a megabyte", read(cat([]byte{0x41, 0x7f, 0x41, 0, 0x41}, sleb(1<<20), []byte{0x10, 0, 0x1a})...), "trap")
	f("a handle that was never given", read(cat([]byte{0x41}, sleb(1<<30|5<<16|77), []byte{0x41, 0, 0x41, 0, 0x10, 0, 0x1a})...), "trap")
	f("host functions without end", read(cat([]byte{0x03, 0x40, 0x41, 0x7f, 0x41, 0, 0x41, 0, 0x10, 0, 0x1a, 0x0c, 0, 0x0b})...), "timeout")
}

// TestMemoryIsGivenBack shows that instances don't add up, whatever they took.
func TestMemoryIsGivenBack(t *testing.T) {
	host := openHost(t) // not parallel: it reads the process' memory
	grow := cat([]byte{0x41}, sleb(200), []byte{0x40, 0, 0x1a})
	c, err := load(t, host, wasm{funcs: []wasmFunc{{code: grow}}}.bytes())
	if err != nil {
		t.Fatal(err)
	}
	ev := jsonError(500, "")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 50 { // 625 MiB in all
		c.Classify(&ev)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

// TestSameInputSameVerdict runs one classifier from many goroutines, with other cases in
// between: nothing of one classification may reach another.
func TestSameInputSameVerdict(t *testing.T) {
	t.Parallel()
	all := builtins(t, openHost(t))
	cases := readCorpus(t, "testdata/corpus/failures.jsonl")
	want := make([]engine.Verdict, len(cases))
	for i, c := range cases {
		want[i] = all[plugins.BuiltinFor(c.Provider)].Classify(c.Evidence)
	}
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for k := range cases {
				i := (k*7 + w*31) % len(cases) // another order for each
				c := cases[i]
				if got := all[plugins.BuiltinFor(c.Provider)].Classify(c.Evidence); got != want[i] {
					t.Errorf("%s: %+v, and %+v the first time", c.ID, got, want[i])
				}
			}
		})
	}
	workers.Wait()
}
