package plugins_test

import (
	"bytes"
	"cmp"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
)

// hostile is one module that means harm: it is refused with a reason, or ends with one
// of the faults.
type hostile struct {
	name   string
	binary []byte
	reason string           // of the refusal; empty if it is loaded
	faults string           // separated by '|'
	ev     *engine.Evidence // nil for a short error
}

// data is a data section that puts texts at places in the memory.
func data(texts map[int]string) []byte {
	var segments [][]byte
	for at, text := range texts {
		segments = append(segments, cat([]byte{0, 0x41}, sleb(int64(at)), []byte{0x0b}, str(text)))
	}
	return section(11, vec(segments...))
}

// slowSearch is a module without loops that asks one question, or thousands, each of which
// compares as much as a question can: 1,000 phrases in 32 texts of 8 KiB.
func slowSearch(name string, times int) hostile {
	const pathsAt, phrasesAt = 5000, 100
	texts := map[int]string{textAt: "k", phrasesAt: strings.Repeat("a*b|", 1000), pathsAt: "x-a"}
	ev := engine.Evidence{Transport: engine.TransportHTTP, Status: 500}
	params := []byte{i32, i32, i32, i32}
	long := strings.Repeat("a", 8<<10)
	var doc []byte
	if strings.HasPrefix(name, "json_") {
		texts[pathsAt] = "0"
		for i := 1; i < 32; i++ {
			texts[pathsAt] += "|" + strconv.Itoa(i)
		}
		ev.Body = []byte(`["` + strings.Repeat(long+`","`, 31) + long + `"]`)
		params, doc = append(params, i32), []byte{0x41, 0x7f}
	} else {
		ev.Headers = engine.Headers{{Name: "x-a", Value: long}}
	}
	result := byte(i32)
	if strings.HasSuffix(name, "_matches") {
		result = i64
	}
	ask := cat(doc, []byte{0x41}, sleb(pathsAt), []byte{0x41}, sleb(int64(len(texts[pathsAt]))),
		[]byte{0x41}, sleb(phrasesAt), []byte{0x41}, sleb(int64(len(texts[phrasesAt]))), []byte{0x10, 1, 0x1a})
	return hostile{
		name: "slow " + name, faults: "timeout", ev: &ev,
		binary: wasm{
			imports: []wasmFunc{importVerdict, {module: "fourgate", name: name, params: params, results: []byte{result}}},
			funcs:   []wasmFunc{{code: cat(bytes.Repeat(ask, times), callVerdict(1, 2, textAt, 1, -1))}},
			extra:   data(texts),
		}.bytes(),
	}
}

// hostilePack are all the ways to do harm that we know, in the smallest form.
func hostilePack() []hostile {
	only := func(code ...byte) []byte { return wasm{funcs: []wasmFunc{{code: code}}}.bytes() }
	loop := func(body ...byte) []byte { return cat([]byte{0x03, 0x40}, body, []byte{0x0c, 0, 0x0b}) }
	verdict := answering(1, 2, textAt, 1, -1)
	verdict.extra = reasonK()
	with := func(change func(w *wasm)) []byte {
		w := verdict
		w.imports, w.funcs = slices.Clone(verdict.imports), slices.Clone(verdict.funcs)
		change(&w)
		return w.bytes()
	}
	imports := func(name string, params, results []byte) []wasmFunc {
		return []wasmFunc{{module: "fourgate", name: name, params: params, results: results}}
	}
	asking := func(code ...byte) []byte {
		return wasm{imports: imports("json_at", []byte{i32, i32, i32}, []byte{i32}), funcs: []wasmFunc{{code: code}}}.bytes()
	}
	table := wasm{table: []byte{0, 30}}
	for i := range 30 {
		var code []byte
		if i < 29 {
			call := cat([]byte{0x41}, sleb(int64(i+1)), []byte{0x11, 0, 0})
			code = cat(call, call)
		}
		table.funcs = append(table.funcs, wasmFunc{code: code})
	}
	long := make([]byte, 0, 300_000)
	for range 100_000 {
		long = append(long, 0x41, 0, 0x1a)
	}
	// A call that passes eight numbers of its own on, so that each frame is a large one.
	wide := wasm{funcs: []wasmFunc{{code: cat(bytes.Repeat([]byte{0x42, 1}, 8), []byte{0x10, 1})},
		{params: bytes.Repeat([]byte{i64}, 8), code: []byte{
			0x20, 0, 0x20, 1, 0x20, 2, 0x20, 3, 0x20, 4, 0x20, 5, 0x20, 6, 0x20, 7, 0x10, 1,
		}}}}
	store := []byte{0x41, 0, 0x23, 0, 0x36, 2, 0} // memory[0] = the global
	pack := []hostile{
		{"endless loop", only(loop()...), "", "timeout", nil},
		{"endless loop with stores", wasm{funcs: []wasmFunc{{code: loop(store...)}}, globals: counter}.bytes(), "", "timeout", nil},
		{"loop of questions", asking(loop(0x41, 0x7f, 0x41, 0, 0x41, 0, 0x10, 0, 0x1a)...), "", "timeout", nil},
		{"loop of verdicts", with(func(w *wasm) { w.funcs[0].code = loop(w.funcs[0].code...) }), "", "timeout", nil},
		{"doubling calls", doubling(40).bytes(), "call each other so often", "", nil},
		{"doubling calls through a table", withElements(table, indirectTable(30)), "", "timeout", nil},
		{"bulk fills", only(loop(0x41, 0, 0x41, 1, 0x41, 0xff, 0xff, 3, 0xfc, 11, 0)...), "bulk memory", "", nil},
		{"table bomb", with(func(w *wasm) { w.table = cat([]byte{0}, leb(100_000_000)) }), "the limit is 1000", "", nil},
		{"table.grow", only(0x41, 0, 0xfc, 15, 0, 0x1a), "bulk memory or tables", "", nil},
		{"memory bomb at the start", with(func(w *wasm) { w.memory = cat([]byte{0}, leb(60_000)) }), "raise the classifier's memory", "", nil},
		{"memory bomb page by page", only(loop(0x41, 1, 0x40, 0, 0x1a)...), "", "timeout", nil},
		{"memory bomb at once", only(cat([]byte{0x41}, sleb(65_000), []byte{0x40, 0, 0x1a})...), "", "nonsense", nil},
		{"memory touched to its end", wasm{
			funcs: []wasmFunc{{code: cat([]byte{0x41}, sleb(255), []byte{0x40, 0, 0x1a},
				loop(0x23, 0, 0x41, 1, 0x36, 2, 0, 0x23, 0, 0x41, 0x80, 0x20, 0x6a, 0x24, 0))}},
			globals: counter,
		}.bytes(), "", "trap|timeout", nil},
		{"stack bomb", only(0x10, 0), "", "trap|timeout", nil},
		{"stack bomb with large frames", wide.bytes(), "", "trap|timeout", nil},
		{"trap", only(0x00), "", "trap", nil},
		{"memory out of bounds", only(0x41, 0x7f, 0x28, 2, 0, 0x1a), "", "trap", nil},
		{"division by zero", only(0x41, 1, 0x41, 0, 0x6d, 0x1a), "", "trap", nil},
		{"start function", with(func(w *wasm) { w.start = true }), "start section", "", nil},
		{"initialiser without end", with(func(w *wasm) {
			w.funcs = append(w.funcs, wasmFunc{code: loop()})
			w.exports = [][]byte{cat(str("_initialize"), []byte{0}, leb(2))}
		}), "it can't be instantiated", "", nil},
		{"huge reason", answering(1, 2, 0, 1<<30, -1).bytes(), "", "nonsense", nil},
		{"huge buffer", wasm{
			imports: imports("body", []byte{i32, i32, i32}, []byte{i32}),
			funcs:   []wasmFunc{{code: []byte{0x41, 0, 0x41, 0, 0x41, 0x7f, 0x10, 0, 0x1a}}},
		}.bytes(), "", "trap", nil},
		{"huge path", asking(cat([]byte{0x41, 0x7f, 0x41, 0, 0x41}, sleb(1<<20), []byte{0x10, 0, 0x1a})...), "", "trap", nil},
		{"lie about the class", answering(13, 0, 0, 0, -1).bytes(), "", "nonsense", nil},
		{"lie about the wait", answering(1, 2, textAt, 1, 1<<60).bytes(), "", "nonsense", nil},
		{"lie about a handle", asking(cat([]byte{0x41}, sleb(1<<30|5<<16|77), []byte{0x41, 0, 0x41, 0, 0x10, 0, 0x1a})...), "", "trap", nil},
		{"two verdicts", with(func(w *wasm) { w.funcs[0].code = cat(w.funcs[0].code, w.funcs[0].code) }), "", "nonsense", nil},
		{"no verdict", only(), "", "nonsense", nil},
		{"foreign import", with(func(w *wasm) { w.imports[0].module = "wasi_snapshot_preview1" }), "is not ours", "", nil},
		{"import of another type", with(func(w *wasm) { w.imports[0].params = []byte{i32} }), "it should be", "", nil},
		{"export that is an import", with(func(w *wasm) { w.exports = [][]byte{cat(str("_initialize"), []byte{0}, leb(0))} }), "function of its own", "", nil},
		{"truncated file", verdict.bytes()[:60], "", "", nil},
		{"no module", []byte("#!/bin/sh\n"), "no WebAssembly module", "", nil},
		{"straight code that is large", only(long...), "", "nonsense", nil},
		{"too much code", only(bytes.Repeat(long, 2)...), "the limit is", "", nil},
		{"too many functions", wasm{funcs: make([]wasmFunc, 5000)}.bytes(), "the limit is", "", nil},
		{"SIMD", only(0xfd, 12), "SIMD", "", nil},
		{"type error", only(0x6a), "its code is not valid", "", nil},
	}
	return append(pack, slowSearch("json_contains", 1), slowSearch("json_matches", 1),
		slowSearch("header_contains", 2000), slowSearch("header_matches", 2000))
}

// memoryInUse is what the process has of the system and hasn't given back.
func memoryInUse() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// TestHostilePack loads each hostile module and runs it until it is set aside, while well-behaved
// classifications go on. Those all get their right verdicts, and the process stays
// small. Their worst delay is logged; how long it is depends on the machine.
func TestHostilePack(t *testing.T) {
	host := openHost(t) // not parallel: it reads the process' memory
	all := builtins(t, host)
	runtime.GC()
	before := memoryInUse()

	var others sync.WaitGroup
	var done atomic.Bool
	var count, worst, most atomic.Int64
	others.Go(func() {
		want := map[string]engine.Verdict{}
		for !done.Load() {
			for name, ev := range shortErrors {
				began := time.Now()
				v := all[name].Classify(&ev)
				worst.Store(max(worst.Load(), int64(time.Since(began))))
				if first, ok := want[name]; !ok {
					want[name] = v
				} else if v != first || v.Class == engine.ClassUnknown {
					t.Errorf("%s: verdict %+v; want %+v", name, v, first)
					return
				}
				count.Add(1)
			}
			most.Store(max(most.Load(), memoryInUse()))
			time.Sleep(100 * time.Microsecond) // requests come one by one
		}
	})
	ev := jsonError(500, `{"error":{"message":"x"}}`)
	for _, h := range hostilePack() {
		m := file(t, h.binary)
		c, err := host.Load(t.Context(), m)
		switch {
		case h.faults == "" && err == nil:
			t.Errorf("%s: it was loaded", h.name)
			continue
		case h.faults == "" && !strings.Contains(err.Error(), h.reason):
			t.Errorf("%s: error %q lacks %q", h.name, err, h.reason)
			continue
		case h.faults == "":
			continue
		case err != nil:
			t.Errorf("%s: %v", h.name, err)
			continue
		}
		failure := cmp.Or(h.ev, &ev)
		for range 3 {
			v := c.Classify(failure)
			if v != (engine.Verdict{Fault: v.Fault}) || !slices.Contains(strings.Split(h.faults+"|timeout", "|"), v.Fault) {
				t.Errorf("%s: verdict %+v; want only the fault %q", h.name, v, h.faults)
			}
		}
		if v := c.Classify(failure); v.Fault != "set_aside" {
			t.Errorf("%s: after three faults: %+v", h.name, v)
		}
	}
	done.Store(true)
	others.Wait()
	if count.Load() == 0 {
		t.Error("no other classification went on")
	}
	if grown := most.Load() - before; grown > 64<<20 {
		t.Errorf("the process grew by %d MiB", grown>>20)
	}
	t.Logf("%d modules, %d other classifications, the longest took %v; the process grew by %d MiB",
		len(hostilePack()), count.Load(), time.Duration(worst.Load()), (most.Load()-before)>>20)
	if plugins.DefaultTimeout > 50*time.Millisecond {
		t.Error("a classification may take longer than what stalls others")
	}
}
