package ledger

import (
	"fmt"
	"time"
)

const (
	// retryFirst and retryMost are the waits between tries to write a batch.
	retryFirst = 50 * time.Millisecond
	retryMost  = time.Second
	// patience is how long a batch is tried. Longer than a backup that locks the
	// file; after that the newer records are worth more.
	patience = 30 * time.Second
	// pruneEvery is how often the retention looks for old rows, and pruneAgain how
	// soon it goes on while there are more.
	pruneEvery = time.Minute
	pruneAgain = 10 * time.Millisecond
)

// writer is the goroutine that owns the file.
type writer struct {
	store *Store
	file  *file // nil after an error, until it was opened again
	spare *batch

	outage  time.Time // when the trouble began; zero while all is well
	dropped int       // in this outage
	last    error     // what this outage has cost, for Close
	lost    int       // since Close gave up on the disk
	end     error     // what that has cost
}

func (w *writer) run() {
	s := w.store
	defer close(s.ended)
	prune := time.NewTimer(0)
	defer prune.Stop()
	if s.options.Retention <= 0 {
		prune.Stop()
	}
	for {
		select {
		case <-s.begun:
			w.gather()
			w.write()
		case <-prune.C:
			prune.Reset(w.prune())
		case <-s.quit:
			w.write()
			if w.file != nil {
				w.file.close()
			}
			s.metrics.unregister()
			return
		}
	}
}

// gather waits until enough has come together or the time is up.
func (w *writer) gather() {
	s := w.store
	if s.options.Durability == Sync {
		return // those who come while the disk works share the next commit
	}
	limit := time.NewTimer(batchEvery)
	defer limit.Stop()
	select {
	case <-s.hurry:
	case <-limit.C:
	case <-s.quit:
	}
}

// write brings the pending batch to disk, or drops it after a bounded time.
func (w *writer) write() {
	s := w.store
	b := s.take(w.spare)
	defer func() {
		b.reset()
		w.spare = b
	}()
	if b.empty() {
		b.settle(nil)
		return
	}
	begun := time.Now()
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		err := w.try(b)
		if err == nil {
			s.metrics.written.Add(float64(b.closings))
			w.recovered()
			b.settle(nil)
			return
		}
		err = explain("write to", s.options.Path, err)
		w.failed(err)
		s.fail(b, err)
		if time.Since(begun) >= patience || !w.pause(wait) {
			w.drop(b, err)
			return
		}
	}
}

// try writes the batch once. A file that fails is closed and opened again for the next
// try: that ends every half-done transaction, and finds a file that was replaced.
func (w *writer) try(b *batch) error {
	if err := w.reopen(); err != nil {
		return err
	}
	if err := w.file.put(b); err != nil {
		w.file.close()
		w.file = nil
		return err
	}
	return nil
}

func (w *writer) reopen() error {
	if w.file != nil {
		return nil
	}
	f, err := openFile(w.store.options.Path, w.store.options.Durability, w.store.seams)
	if err != nil {
		return err
	}
	w.file = f
	return nil
}

// pause waits before the next try; false says that there is no time for one.
func (w *writer) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.store.giveUp:
		return false
	}
}

func (w *writer) failed(err error) {
	if !w.outage.IsZero() {
		return
	}
	w.outage, w.dropped = time.Now(), 0
	w.store.log.Error("ledger is in trouble; requests go on, records wait in memory",
		"err", err)
}

func (w *writer) recovered() {
	if w.outage.IsZero() {
		return
	}
	w.store.trouble.Store(nil)
	w.store.log.Info("ledger works again",
		"path", w.store.options.Path,
		"outage_ms", time.Since(w.outage).Milliseconds(),
		"dropped", w.dropped)
	w.outage, w.last = time.Time{}, nil
}

func (w *writer) drop(b *batch, err error) {
	w.dropped += b.closings
	w.store.metrics.dropped.Add(float64(b.closings))
	w.store.metrics.othersDropped.Add(float64(len(b.others)))
	w.last = lostTo(err, w.dropped)
	select {
	case <-w.store.giveUp:
		// A later, smaller batch may fit; what was lost at the end is lost all the same.
		w.lost += b.closings
		w.end = lostTo(err, w.lost)
	default:
	}
}

// result is what closing has to say once the writer has ended.
func (w *writer) result() error {
	if w.lost > 0 {
		return w.end
	}
	return w.last
}

func lostTo(err error, records int) error {
	if records == 0 {
		return err
	}
	return fmt.Errorf("%w; %d records are lost", err, records)
}

// prune deletes a few old rows and says when to go on. Its errors aren't reported: the
// next batch meets the same trouble, and deleting can wait.
func (w *writer) prune() time.Duration {
	if w.file == nil {
		return pruneEvery
	}
	more, err := w.file.prune(time.Now().Add(-w.store.options.Retention))
	if err == nil && more {
		return pruneAgain
	}
	return pruneEvery
}
