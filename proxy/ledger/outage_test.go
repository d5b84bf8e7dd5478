package ledger

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

func TestALongOutageDropsTheNewestAndCounts(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	b := openStore(t, Options{QueueRecords: 10}, seams{fail: func(step) error {
		if broken.Load() {
			return errors.New("disk I/O error")
		}
		return nil
	}})
	broken.Store(true)
	b.Closed(success(t, 0))
	if err := b.Flush(t.Context()); err == nil {
		t.Fatal("a broken disk took a record")
	}
	// The first is in the writer's hands now; ten fit behind it, five of them openings.
	for i := range 8 {
		b.Opened(record(t, 1+i, "", openAttempt(1, "openai")))
	}
	for i := range 20 {
		b.Closed(success(t, 1+i))
	}
	if got := b.count("fourgate_ledger_dropped_total"); got != 10 {
		t.Errorf("%v drops were counted, want 10", got)
	}
	if got := b.count("fourgate_ledger_queue_records"); got != 10 {
		t.Errorf("%v records wait, want 10", got)
	}
	broken.Store(false)
	b.close()
	if got := len(b.ids()); got != 11 {
		t.Errorf("the ledger has %d records, want 11", got)
	}
}

func TestSyncDoesNotHoldRequestsUpInAnOutage(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	b := openStore(t, Options{Durability: Sync}, seams{fail: func(step) error {
		if broken.Load() {
			return errors.New("disk I/O error")
		}
		return nil
	}})
	broken.Store(true)
	for i := range 5 {
		b.Closed(success(t, i))
	}
	if got := b.count("fourgate_ledger_unsynced_total"); got != 5 {
		t.Errorf("%v calls went on unsynced, want 5", got)
	}
	broken.Store(false)
	eventually(t, "all is written", func() bool { return b.count("fourgate_ledger_records_total") == 5 })
}

func TestAHangingDiskHoldsARequestUpForABoundedTime(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	var hangs atomic.Bool
	b := openStore(t, Options{Durability: Sync}, seams{fail: func(s step) error {
		if s == stepCommit && hangs.Load() {
			<-hang
		}
		return nil
	}})
	hangs.Store(true)
	b.Closed(success(t, 1)) // returns although the commit doesn't
	if got := b.count("fourgate_ledger_unsynced_total"); got != 1 {
		t.Errorf("%v calls went on unsynced, want 1", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Store.Close(ctx); err == nil || !strings.Contains(err.Error(), "the disk hangs") {
		t.Errorf("closing said %v", err)
	}
	close(hang)
	<-b.ended
}
