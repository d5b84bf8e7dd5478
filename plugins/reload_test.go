package plugins_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
)

// TestReload replaces a module again and again while failures are classified, as a
// reload does: each classification is that of the version that it began with, none is
// dropped, and versions that nobody holds any more are freed.
func TestReload(t *testing.T) {
	t.Parallel()
	host := openHost(t)
	type version struct {
		classifier engine.Classifier
		wait       time.Duration
	}
	next := func(i int) *version {
		m := file(t, saying(1, 2, 1, int64(i)))
		m.Timeout = plugins.MaxTimeout
		c, err := host.Load(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return &version{c, time.Duration(i) * time.Millisecond}
	}
	var live atomic.Pointer[version]
	live.Store(next(0))
	var workers sync.WaitGroup
	var done atomic.Bool
	var classified atomic.Int64
	for range 4 {
		workers.Go(func() {
			for !done.Load() {
				v := live.Load() // a request's snapshot
				ev := jsonError(500, "{}")
				for range 3 { // its attempts
					got := v.classifier.Classify(&ev)
					if wait, _ := got.RetryAfter.Get(); got.Fault != "" || wait != v.wait {
						t.Errorf("verdict %+v; want a wait of %v", got, v.wait)
						return
					}
					classified.Add(1)
				}
			}
		})
	}
	const versions = 40
	for i := range versions {
		before := classified.Load()
		live.Store(next(i + 1))
		runtime.GC() // frees what the requests have left, under the others
		eventually(t, "a classification after a reload", func() bool { return classified.Load() > before || t.Failed() })
	}
	done.Store(true)
	workers.Wait()
	eventually(t, "freeing the replaced versions", func() bool {
		runtime.GC()
		return counted(t, host, "fourgate_classifier_modules") == 1
	})
	if v := live.Load(); v.classifier.Classify(new(engine.Evidence)).Fault != "" {
		t.Error("the last version doesn't answer")
	}
}
