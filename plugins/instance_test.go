package plugins_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// reasonK is a data section with a reason of one letter at textAt.
func reasonK() []byte {
	return section(11, vec(cat([]byte{0, 0x41, textAt, 0x0b}, str("k"))))
}

// counter is one mutable global of the type i32 that is 0 at first.
var counter = vec([]byte{i32, 1, 0x41, 0, 0x0b})

// waiting is code that gives a verdict whose wait is the number that code leaves behind.
func waiting(code ...byte) []byte {
	return cat([]byte{0x41, 1, 0x41, 2, 0x41, textAt, 0x41, 1}, code, []byte{0xad, 0x10, 0})
}

// TestNothingIsRemembered shows that a classification finds the memory, its size and the
// globals as the module declares them, whatever the one before it did, and whether the
// host keeps instances or makes new ones.
func TestNothingIsRemembered(t *testing.T) {
	t.Parallel()
	host := openHost(t)
	f := func(name string, w wasm, statuses []int, want func(status int) int) {
		t.Helper()
		w.extra = reasonK()
		c, err := load(t, host, w.bytes())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for range 2 {
			for _, status := range statuses {
				v := c.Classify(&engine.Evidence{Transport: engine.TransportHTTP, Status: status, Body: []byte("dirt")})
				if want(status) < 0 {
					if v.Fault != "trap" {
						t.Errorf("%s: status %d: verdict %+v; want a trap", name, status, v)
					}
					continue
				}
				if wait, _ := v.RetryAfter.Get(); v.Fault != "" || wait != time.Duration(want(status))*time.Millisecond {
					t.Errorf("%s: status %d: verdict %+v; want a wait of %d ms", name, status, v, want(status))
				}
			}
		}
	}
	cell := cat([]byte{0x41}, sleb(5000))
	load8, store8 := []byte{0x2d, 0, 0}, []byte{0x3a, 0, 0}
	// The wait is the memory's byte plus the global plus the pages.
	look := cat(cell, load8, []byte{0x23, 0, 0x6a, 0x3f, 0, 0x6a})
	one := func(int) int { return 1 }
	some := []int{500, 429}

	f("memory and global", wasm{
		imports: []wasmFunc{importVerdict},
		funcs:   []wasmFunc{{code: cat(waiting(look...), cell, []byte{0x41, 7}, store8, []byte{0x41, 9, 0x24, 0})}},
		globals: counter,
	}, some, one)
	f("memory that grows", wasm{
		imports: []wasmFunc{importVerdict},
		funcs:   []wasmFunc{{code: cat(waiting(look...), []byte{0x41, 1, 0x40, 0, 0x1a})}},
		globals: counter,
	}, some, one)
	status := wasmFunc{module: "fourgate", name: "status", results: []byte{i32}}
	body := wasmFunc{module: "fourgate", name: "body", params: []byte{i32, i32, i32}, results: []byte{i32}}
	f("memory that the host wrote", wasm{
		imports: []wasmFunc{importVerdict, body},
		funcs:   []wasmFunc{{code: cat(waiting(look...), []byte{0x41, 0}, cell, []byte{0x41, 4, 0x10, 1, 0x1a})}},
		globals: counter,
	}, some, one)
	// The global is set from the failure before classify runs.
	f("an initialiser that asks", wasm{
		imports: []wasmFunc{importVerdict, status},
		funcs:   []wasmFunc{{code: waiting(0x23, 0)}, {code: []byte{0x10, 1, 0x24, 0}}},
		globals: counter,
		exports: [][]byte{cat(str("_initialize"), []byte{0}, leb(3))},
	}, some, func(status int) int { return status })
	f("an initialiser that only counts", wasm{
		imports: []wasmFunc{importVerdict},
		funcs:   []wasmFunc{{code: cat(waiting(0x23, 0), []byte{0x41, 3, 0x24, 0})}, {code: []byte{0x23, 0, 0x41, 5, 0x6a, 0x24, 0}}},
		globals: counter,
		exports: [][]byte{cat(str("_initialize"), []byte{0}, leb(2))},
	}, some, func(int) int { return 5 })
	// One that has an export of the host's name can't be put back, and is made anew.
	f("an export of the host's name", wasm{
		imports: []wasmFunc{importVerdict},
		funcs:   []wasmFunc{{code: cat(waiting(look...), []byte{0x41, 9, 0x24, 0})}},
		globals: counter,
		exports: [][]byte{cat(str("fourgate:global:0"), []byte{3}, leb(0))},
	}, some, one)
	// After half a verdict the module traps when the status is 429.
	f("a trap in between", wasm{
		imports: []wasmFunc{importVerdict, status},
		funcs: []wasmFunc{{code: cat(waiting(look...), cell, []byte{0x41, 7}, store8, []byte{0x41, 9, 0x24, 0},
			[]byte{0x10, 1, 0x41}, sleb(429), []byte{0x46, 0x04, 0x40, 0x00, 0x0b})}},
		globals: counter,
	}, []int{500, 429, 500}, func(status int) int {
		if status == 429 {
			return -1
		}
		return 1
	})
}

// TestAllocations holds that a classification allocates next to nothing, and no more for
// a long body than for a short one.
func TestAllocations(t *testing.T) {
	all := builtins(t, openHost(t)) // not parallel: it counts allocations
	short := shortErrors["openai"]
	for name, c := range all {
		least := map[string]float64{}
		for kind, ev := range map[string]engine.Evidence{"short": short, "long": longError()} {
			c.Classify(&ev) // the first one makes the instance
			least[kind] = testing.AllocsPerRun(50, func() { c.Classify(&ev) })
			if least[kind] > 16 {
				t.Errorf("%s: %v allocations for a %s body", name, least[kind], kind)
			}
		}
		if least["long"] > least["short"]+2 {
			t.Errorf("%s: %v allocations for a long body, %v for a short one", name, least["long"], least["short"])
		}
	}
}

// TestKeptMemory holds what the host keeps for the next classifications: all instances
// of all built-in classifiers and the state of as many calls as there were at once.
func TestKeptMemory(t *testing.T) {
	host := openHost(t) // not parallel: it reads the process' memory
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	all := builtins(t, host)
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for range 20 {
				for name, ev := range shortErrors {
					all[name].Classify(&ev)
				}
				ev := longError()
				all["generic"].Classify(&ev)
			}
		})
	}
	workers.Wait()
	runtime.GC() // what is pooled survives one collection
	runtime.ReadMemStats(&after)
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	if kept > 16<<20 {
		t.Errorf("%d KiB are kept", kept>>10)
	}
	t.Logf("kept: %d KiB", kept>>10)
	runtime.KeepAlive(all)
}
