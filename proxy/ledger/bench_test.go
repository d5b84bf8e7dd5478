package ledger

import (
	"sync/atomic"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// benchRecords are a day in the life of a proxy: mostly one attempt, now and then a
// fallback. Each comes as it opens and as it closes.
func benchRecords(b *testing.B, n int) (opened, closed []*engine.Record) {
	b.Helper()
	for i := range n {
		opened = append(opened, record(b, i, "", openAttempt(1, "openai")))
		if i%20 == 0 {
			closed = append(closed, record(b, i, "success",
				failedAttempt(1, "openai", "provider_transient"), goodAttempt(2, "azure-east")))
			continue
		}
		closed = append(closed, success(b, i))
	}
	return opened, closed
}

// BenchmarkLedgerRecord is the whole cost of a record: both calls and the writer. The
// CPU of all threads is reported beside the time.
func BenchmarkLedgerRecord(b *testing.B) {
	// The records are made before the measurement, so there is an end to them. When
	// they come again they have new keys, as far as the store can tell.
	const n = 40 * batchRecords
	opened, closed := benchRecords(b, n)

	// write runs every pair through one store, batch by batch as under a steady load.
	// Where requests last, another batch begins between opening and closing.
	write := func(b *testing.B, lasts bool) {
		b.ReportAllocs()
		s := openStore(b, Options{}, seams{})
		begun, records := processCPU(), 0
		for b.Loop() {
			at := records % n
			for i := at; i < at+batchRecords; i++ {
				s.Opened(opened[i])
				if !lasts {
					s.Closed(closed[i])
				}
			}
			s.flush()
			if lasts {
				for i := at; i < at+batchRecords; i++ {
					s.Closed(closed[i])
				}
				s.flush()
			}
			records += batchRecords
		}
		b.ReportMetric(float64(processCPU()-begun)/float64(records), "cpu-ns/record")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
	}
	b.Run("short", func(b *testing.B) { write(b, false) })
	b.Run("lasting", func(b *testing.B) { write(b, true) })
}

// BenchmarkCalls is what a request itself pays: the two calls without the writer.
func BenchmarkCalls(b *testing.B) {
	s := openStore(b, Options{}, seams{})
	opened, closed := benchRecords(b, batchRecords)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.Opened(opened[i])
		s.Closed(closed[i])
		if i = (i + 1) % batchRecords; i == 0 {
			b.StopTimer()
			s.flush()
			b.StartTimer()
		}
	}
}

// TestCallsDoNotAllocate isn't parallel, since it counts the whole process.
func TestCallsDoNotAllocate(t *testing.T) {
	var held atomic.Bool
	hold := make(chan struct{})
	s := openStore(t, Options{}, seams{fail: func(step) error {
		if held.Load() {
			<-hold
		}
		return nil
	}})
	opened, closed := record(t, 1, "", openAttempt(1, "openai")), success(t, 1)
	calls := func() {
		s.Opened(opened)
		s.Closed(closed)
	}
	for range 2 { // each of the two batches grows once
		for range batchRecords {
			calls()
		}
		s.flush()
	}
	held.Store(true)
	if got := testing.AllocsPerRun(batchRecords/2, calls); got > 0 {
		t.Errorf("opening and closing allocates %v times", got)
	}
	close(hold)
}
