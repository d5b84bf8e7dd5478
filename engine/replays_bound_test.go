package engine

import (
	"encoding/binary"
	"testing"
	"time"
)

// TestTheMemoryOfReplaysIsBounded floods it with twice what it holds.
func TestTheMemoryOfReplaysIsBounded(t *testing.T) {
	t.Parallel()
	m := &replays{}
	now := time.Unix(1_800_000_000, 0)
	key := func(i int) (k replayKey) {
		binary.LittleEndian.PutUint64(k[:], uint64(i))
		return k
	}
	const flood = 2 * maxReplays
	for i := range flood {
		m.remember(now, key(i), now.Add(time.Minute), 1, 503)
		if i%3 == 0 {
			m.forget(key(i)) // leaves a place that isn't its own any more
			m.remember(now, key(i), now.Add(time.Minute), 2, 503)
		}
	}
	if len(m.entries) > maxReplays || len(m.ring) > maxReplays {
		t.Fatalf("%d entries in %d places, at most %d", len(m.entries), len(m.ring), maxReplays)
	}
	for i := flood - maxReplays/2; i < flood; i++ {
		if e, known := m.find(now, key(i)); !known || i%3 == 0 && e.count != 2 {
			t.Fatalf("request %d of %d is forgotten or miscounted: %v %+v", i, flood, known, e)
		}
	}
	if _, known := m.find(now, key(0)); known {
		t.Error("the oldest request is still remembered")
	}
	if _, known := m.find(now.Add(time.Minute), key(flood-1)); known {
		t.Error("a request is remembered past its time")
	}
}
