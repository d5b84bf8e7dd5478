package state

import (
	"sync"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// maxOutbox bounds the facts that wait for the backend. Each takes some 200 bytes.
const maxOutbox = 4096

// outbox holds what is to be told: the latest of each fact, so that a fact that changes
// often while the backend hangs takes one place. It never blocks.
type outbox struct {
	mu      sync.Mutex
	waiting map[engine.Fact]notice // by the fact without its end
	spare   map[engine.Fact]notice // memory for the next round
	lost    bool                   // something was dropped since the last take
	dropped func()
	ready   chan struct{} // has one when something waits
}

// notice is what is to be told of a fact.
type notice struct {
	until  time.Time
	lifted bool
}

func newOutbox(dropped func()) *outbox {
	return &outbox{
		waiting: map[engine.Fact]notice{}, spare: map[engine.Fact]notice{},
		dropped: dropped, ready: make(chan struct{}, 1),
	}
}

// split takes a fact apart: what it is about, and what is to be told of it.
func split(f engine.Fact) (engine.Fact, notice) {
	n := notice{f.Until, f.Lifted}
	f.Until, f.Lifted = time.Time{}, false
	return f, n
}

// put leaves a fact to be told. What doesn't fit is dropped: it is told again with
// everything that is set aside here, see [session.tell].
func (o *outbox) put(f engine.Fact) {
	f, n := split(f)
	o.mu.Lock()
	if _, known := o.waiting[f]; known || len(o.waiting) < maxOutbox {
		o.waiting[f] = n
	} else {
		o.lost = true
		o.dropped()
	}
	o.mu.Unlock()
	o.wake()
}

func (o *outbox) wake() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// take returns what waits, and whether anything was dropped. The map is the caller's
// until its next take.
func (o *outbox) take() (waiting map[engine.Fact]notice, lost bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.spare)
	waiting, o.waiting, o.spare = o.waiting, o.spare, o.waiting
	lost, o.lost = o.lost, false
	return waiting, lost
}

// putBack returns what couldn't be told, unless something newer has come of it.
func (o *outbox) putBack(waiting map[engine.Fact]notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for f, n := range waiting {
		if _, newer := o.waiting[f]; newer {
			continue
		}
		if len(o.waiting) >= maxOutbox {
			o.lost = true
			o.dropped()
			continue
		}
		o.waiting[f] = n
	}
}

func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)
}

// Share tells other instances of a fact, soon. It is called on a request's way: it takes
// a lock for a moment and waits for nothing.
func (s *Shared) Share(f engine.Fact) {
	if s.shares(f.Kind) {
		s.box.put(f)
	}
}

// shares says whether facts of a kind are told and believed.
func (s *Shared) shares(k engine.FactKind) bool {
	switch k {
	case engine.FactKeyCooled, engine.FactChannelQuarantined, engine.FactModelEvicted:
		return true
	case engine.FactBreakerOpen:
		return s.options.Breakers
	}
	return false
}
