package policies

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// Each file of testdata/hostile wants something that no policy may have, and says in its
// head what becomes of it: "refused: " and a part of the message, "fault: " and the faults
// that will do, or "fine" for what turns out to be harmless. They end in .txt so that OPA
// doesn't take them for policies of ours.
//
// Not parallel, because it counts what all goroutines allocate.
func TestHostilePolicies(t *testing.T) {
	const (
		limit = 50 * time.Millisecond
		// A busy machine is slow, and a late policy is asked twice.
		patience = 2 * 40 * limit
		// What is allocated in that time; most of it is garbage at once.
		memory = 512 << 20
	)
	files, err := filepath.Glob("testdata/hostile/*.rego.txt")
	if err != nil || len(files) < 24 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".rego.txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.SplitN(string(text), "\n", 3)
			want, found := strings.CutPrefix(lines[1], "# expect: ")
			if !found {
				t.Fatalf("the second line is %q", lines[1])
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			set, err := Load(t.Context(), Options{Modules: map[string]string{"hostile.rego": string(text)}, Timeout: limit})
			checkHostile(t, want, set, err)
			if took := time.Since(start); took > patience {
				t.Errorf("it took %v", took)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > memory {
				t.Errorf("it allocated %d MiB", n>>20)
			}
		})
	}
}

func checkHostile(t *testing.T, want string, set *Set, err error) {
	t.Helper()
	if message, refused := strings.CutPrefix(want, "refused: "); refused {
		var e *LoadError
		if !errors.As(err, &e) {
			t.Fatalf("loading gives %v, want %q", err, message)
		}
		if !strings.Contains(e.Error(), message) {
			t.Errorf("refused with %.300q, want %q", e.Error(), message)
		}
		for _, p := range e.Problems {
			if p.Line == 0 {
				t.Errorf("the problem %.300q has no line", p)
			}
		}
		return
	}
	if err != nil {
		t.Fatalf("loading gives %.300v, want %s", err, want)
	}
	q := failed(t)
	got := set.Decide(&q)
	if want == "fine" {
		want = "fault: "
	}
	if !slices.Contains(strings.Split(strings.TrimPrefix(want, "fault: "), "|"), got.Fault) {
		t.Errorf("got %+v, want %s", got, want)
	}
	if got.Fault != "" && (got.Action != engine.Abort || len(got.Effects) > 0 || len(got.Why) > maxWhy) {
		t.Errorf("the fault comes with %+v", got)
	}
}
