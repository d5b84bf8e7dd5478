package plugins_test

import (
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
)

// saying is a module that always gives the same verdict, with the reason "k".
func saying(class, scope, length, wait int64) []byte {
	w := answering(class, scope, textAt, length, wait)
	w.extra = section(11, vec(cat([]byte{0, 0x41, textAt, 0x0b}, str("kk"))))
	return w.bytes()
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%s: it never came", what)
		}
	}
}

func TestShadow(t *testing.T) {
	t.Parallel()
	f := func(candidate []byte, want string) {
		t.Helper()
		host := openHost(t)
		m := file(t, saying(1, 2, 1, 1000))
		shadow := file(t, candidate)
		m.Shadow = &shadow
		c, err := host.Load(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		ev := jsonError(500, "{}")
		v := c.Classify(&ev)
		if wait, _ := v.RetryAfter.Get(); v.Class != engine.ClassKeyFault || v.Scope != engine.ScopeKey || v.Reason.String() != "k" || wait != time.Second {
			t.Errorf("%s: the verdict is %+v, not the live one", want, v)
		}
		ev.Body[0] = 'x' // the request's bytes are used again at once
		eventually(t, want, func() bool {
			return counted(t, host, "fourgate_classifier_shadow_total", "classifier=test", "result="+want) == 1
		})
	}
	f(saying(1, 2, 1, 1000), "same")
	f(saying(2, 2, 1, 1000), "class")
	f(saying(1, 3, 1, 1000), "scope")
	f(saying(1, 2, 2, 1000), "reason")
	f(saying(1, 2, 1, -1), "retry_after")
	f(saying(99, 2, 1, 1000), "fault")
	f(wasm{funcs: []wasmFunc{{code: []byte{0x03, 0x40, 0x0c, 0, 0x0b}}}}.bytes(), "fault")
}

// TestShadowKeepsUp shows that a slow candidate costs comparisons and not verdicts.
func TestShadowKeepsUp(t *testing.T) {
	t.Parallel()
	host := openHost(t)
	m := file(t, saying(1, 2, 1, 1000))
	m.Timeout = plugins.MaxTimeout
	// It counts to three million before it gives its verdict.
	slow := file(t, wasm{
		imports: []wasmFunc{importVerdict},
		funcs: []wasmFunc{{code: cat([]byte{0x03, 0x40, 0x23, 0, 0x41, 1, 0x6a, 0x24, 0, 0x23, 0, 0x41}, sleb(3_000_000), []byte{0x49, 0x0d, 0, 0x0b},
			callVerdict(1, 2, textAt, 1, 1000))}},
		globals: counter,
		extra:   reasonK(),
	}.bytes())
	m.Shadow = &slow
	c, err := host.Load(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		ev := jsonError(500, string(make([]byte, 100*i)))
		if v := c.Classify(&ev); v.Class != engine.ClassKeyFault {
			t.Fatalf("verdict %+v", v)
		}
	}
	if counted(t, host, "fourgate_classifier_shadow_dropped_total", "classifier=test") == 0 {
		t.Error("nothing was dropped")
	}
}

func TestShadowThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	host := openHost(t)
	_, err := host.Load(t.Context(), plugins.Module{Name: "x", Source: "builtin:openai", Shadow: &plugins.Module{Source: "none.wasm"}})
	if err == nil || err.Error() == "" {
		t.Errorf("error %v", err)
	}
}
