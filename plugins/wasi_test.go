package plugins_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
)

// wasiProbe asks WASI for 8 bytes of something, which become the verdict's wait.
func wasiProbe(name string, params []byte, code []byte) []byte {
	return wasm{
		imports: []wasmFunc{importVerdict, {module: "wasi_snapshot_preview1", name: name, params: params, results: []byte{i32}}},
		funcs: []wasmFunc{{code: cat(code, []byte{0x10, 1, 0x1a}, // call, drop
			[]byte{0x41, 1, 0x41, 2, 0x41, textAt, 0x41, 1}, // class, scope, reason, its length
			[]byte{0x41}, sleb(bufferAt), []byte{0x29, 3, 0, 0x10, 0})}}, // i64.load, verdict
		extra: section(11, vec(cat([]byte{0, 0x41, textAt, 0x0b}, str("r")))),
	}.bytes()
}

func loadWASI(t *testing.T, binary []byte) (engine.Classifier, error) {
	t.Helper()
	m := file(t, binary)
	m.Profile, m.Timeout = plugins.ProfileWASI, plugins.MaxTimeout
	return openHost(t).Load(t.Context(), m)
}

func TestNothingIsBehindWASI(t *testing.T) {
	t.Parallel()
	buf := cat([]byte{0x41}, sleb(bufferAt))
	f := func(name string, params, code []byte, want int64) {
		t.Helper()
		c, err := loadWASI(t, wasiProbe(name, params, code))
		if err != nil {
			t.Fatal(err)
		}
		var verdicts []engine.Verdict
		for range 3 {
			verdicts = append(verdicts, c.Classify(probeEvidence()))
		}
		d, _ := verdicts[0].RetryAfter.Get()
		if verdicts[0].Fault != "" || d.Milliseconds() != want {
			t.Errorf("%s gives %v, fault %q; want %d", name, d.Milliseconds(), verdicts[0].Fault, want)
		}
		if verdicts[0] != verdicts[1] || verdicts[1] != verdicts[2] {
			t.Errorf("%s isn't the same each time: %v", name, verdicts)
		}
	}
	f("random_get", []byte{i32, i32}, cat(buf, []byte{0x41, 8}), 0)
	f("clock_time_get", []byte{i32, i64, i32}, cat([]byte{0x41, 0, 0x42, 0}, buf), 1_000_000_000)
	f("environ_sizes_get", []byte{i32, i32}, cat(buf, buf), 0)
	f("fd_prestat_get", []byte{i32, i32}, cat([]byte{0x41, 3}, buf), 0)
}

func TestWASIIsRefused(t *testing.T) {
	t.Parallel()
	random := wasiProbe("random_get", []byte{i32, i32}, cat([]byte{0x41}, sleb(bufferAt), []byte{0x41, 8}))
	_, err := openHost(t).Load(t.Context(), file(t, random))
	if err == nil || !strings.Contains(err.Error(), `set profile = "wasi"`) {
		t.Errorf("without the profile: %v", err)
	}
	f := func(binary []byte, want string) {
		t.Helper()
		if _, err := loadWASI(t, binary); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	f(wasiProbe("sock_send", nil, nil), "no function of WASI preview 1 that the profile")
	f(wasiProbe("random_get", []byte{i64}, []byte{0x42, 0}), `has the type (i64)->i32; it should be (i32,i32)->i32`)
	m := file(t, random)
	m.Profile = "posix"
	if _, err := openHost(t).Load(t.Context(), m); err == nil || !strings.Contains(err.Error(), `there is no profile "posix"`) {
		t.Errorf("an unknown profile: %v", err)
	}
	m.Profile, m.MemoryBytes = plugins.ProfileWASI, plugins.MaxWASIMemoryBytes+1
	if _, err := openHost(t).Load(t.Context(), m); err == nil || !strings.Contains(err.Error(), "use 65536 to 67108864") {
		t.Errorf("too much memory: %v", err)
	}
}

// fill is n times memory.fill over the whole of a memory of unknown length.
func fill(n int) []byte {
	var code []byte
	for range n {
		code = cat(code, []byte{0x41, 0, 0x41, 1, 0x3f, 0, 0x41, 16, 0x74, 0xfc, 11, 0}) // 0, 1, memory.size << 16
	}
	return code
}

func TestWASIFillsAreBounded(t *testing.T) {
	t.Parallel()
	// Recursion, so that calls are watched and not added up.
	module := func(code []byte) []byte {
		return wasm{imports: []wasmFunc{importVerdict}, funcs: []wasmFunc{{code: cat(code, []byte{0x41, 0, 0x04, 0x40, 0x10, 1, 0x0b})}}}.bytes()
	}
	if _, err := loadWASI(t, module(fill(1))); err != nil {
		t.Errorf("one fill: %v", err)
	}
	if _, err := loadWASI(t, module(fill(2))); err == nil || !strings.Contains(err.Error(), "fill or copy so much memory") {
		t.Errorf("two fills: %v", err)
	}
	constant := cat([]byte{0x41, 0, 0x41, 1, 0x41}, sleb(64), []byte{0xfc, 11, 0})
	var many []byte
	for range 1000 {
		many = cat(many, constant)
	}
	if _, err := loadWASI(t, module(many)); err != nil {
		t.Errorf("many small fills: %v", err)
	}
	if _, err := openHost(t).Load(t.Context(), file(t, module(fill(1)))); err == nil || !strings.Contains(err.Error(), "bulk memory") {
		t.Errorf("a fill without the profile: %v", err)
	}
}

func TestInspectTellsTheProfile(t *testing.T) {
	t.Parallel()
	m := file(t, wasiProbe("random_get", []byte{i32, i32}, cat([]byte{0x41}, sleb(bufferAt), []byte{0x41, 8})))
	found := inspect(t, m.Source)
	if diff := cmp.Diff([]string(nil), found.Problems); diff != "" || found.Profile != plugins.ProfileWASI {
		t.Errorf("profile %q, problems %v", found.Profile, found.Problems)
	}
}

// TestWASIEndsToo shows that the wider profile lets nothing run on.
func TestWASIEndsToo(t *testing.T) {
	t.Parallel()
	f := func(name string, funcs ...wasmFunc) {
		t.Helper()
		m := file(t, wasm{imports: []wasmFunc{importVerdict}, funcs: funcs, memory: cat([]byte{0}, leb(200))}.bytes())
		m.Profile = plugins.ProfileWASI
		c, err := openHost(t).Load(t.Context(), m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if v := c.Classify(probeEvidence()); v.Fault == "" {
			t.Errorf("%s gave the verdict %v", name, v)
		}
	}
	call := func(i byte) []byte { return []byte{0x10, i} }
	f("loop of fills", wasmFunc{code: cat([]byte{0x03, 0x40}, fill(1), []byte{0x0c, 0, 0x0b})})
	f("recursion", wasmFunc{code: call(1)})
	f("doubling recursion with fills", wasmFunc{code: cat(fill(1), call(1), call(1))})
	f("two that call each other", wasmFunc{code: cat(fill(1), call(2), call(2))}, wasmFunc{code: cat(fill(1), call(1), call(1))})
}
