package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

func factOfTests(i int) engine.Fact {
	return engine.Fact{Kind: engine.FactKeyCooled, Provider: "p", Key: fmt.Sprint(i), KeyPrint: "00", Until: time.Now().Add(time.Hour)}
}

// TestTheBoxKeepsTheLatest of each fact and no more facts than fit.
func TestTheBoxKeepsTheLatest(t *testing.T) {
	t.Parallel()
	dropped := 0
	o := newOutbox(func() { dropped++ })
	for range 3 {
		for i := range maxOutbox + 10 {
			o.put(factOfTests(i))
		}
	}
	lifted := factOfTests(7)
	lifted.Lifted = true
	o.put(lifted)
	waiting, lost := o.take()
	about, _ := split(lifted)
	if len(waiting) != maxOutbox || !lost || dropped != 30 || !waiting[about].lifted {
		t.Errorf("%d facts wait, lost %v, %d dropped, the latest of one: %+v", len(waiting), lost, dropped, waiting[about])
	}
	// What couldn't be told comes back, unless something newer has come of it.
	o.put(factOfTests(7))
	o.putBack(waiting)
	waiting, lost = o.take()
	if len(waiting) != maxOutbox || lost || waiting[about].lifted {
		t.Errorf("after a failure %d facts wait, lost %v, the latest of one: %+v", len(waiting), lost, waiting[about])
	}
}

// TestSharingAllocatesNothing for a fact that waits already, whatever the backend does.
func TestSharingAllocatesNothing(t *testing.T) {
	s := &Shared{box: newOutbox(func() {})}
	f := factOfTests(1)
	s.Share(f)
	if n := testing.AllocsPerRun(1000, func() { s.Share(f) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkShare(b *testing.B) {
	s := &Shared{box: newOutbox(func() {})}
	facts := make([]engine.Fact, 100)
	for i := range facts {
		facts[i] = factOfTests(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Share(facts[i%len(facts)])
	}
}
