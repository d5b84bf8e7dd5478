package ledger

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
)

// Durability says when a record counts as kept.
type Durability uint8

// The durabilities. The zero value is the fast one.
const (
	// Batch keeps records in memory for up to a tenth of a second. A killed process
	// loses that much; a machine that loses power may lose a little more, because
	// SQLite syncs the write-ahead log only when it folds it into the file.
	Batch Durability = iota
	// Sync makes Opened and Closed wait until the record is on disk. Requests that
	// wait at the same time share one commit.
	Sync
)

// ParseDurability reads "batch" or "sync".
func ParseDurability(s string) (Durability, error) {
	switch s {
	case "batch":
		return Batch, nil
	case "sync":
		return Sync, nil
	}
	return Batch, fmt.Errorf(`cannot read durability %q; use "batch" or "sync"`, s)
}

func (d Durability) String() string {
	if d == Sync {
		return "sync"
	}
	return "batch"
}

// Options say where and how records are kept.
type Options struct {
	Path       string // of the SQLite file; it is made if it is missing, its directory isn't
	Durability Durability
	// Retention is how long records are kept; 0 keeps them for ever. The space of
	// deleted records is used again, the file doesn't shrink.
	Retention time.Duration
	Logger    *slog.Logger          // nil logs nothing
	Registry  prometheus.Registerer // nil counts nothing

	// QueueRecords and QueueBytes bound what waits to be written; 0 means 16,384
	// records and 32 MiB. In an outage of the disk that is what is kept in memory.
	QueueRecords int
	QueueBytes   int
}

const (
	// batchEvery bounds what a kill loses, and how long a record takes to become
	// visible to `fourgate ledger`. Ten transactions a second cost next to nothing.
	batchEvery = 100 * time.Millisecond
	// batchRecords writes sooner under load. From some hundreds of rows on, a
	// transaction's own cost no longer shows in the cost of a row.
	batchRecords = 500
	// queueRecords and queueBytes are some seconds of a busy proxy.
	queueRecords = 16384
	queueBytes   = 32 << 20
	// syncWait is the longest that [Sync] holds a request up. A commit takes some
	// milliseconds; a disk that needs longer than this is out of order.
	syncWait = 2 * time.Second
)

var errClosed = errors.New("the ledger is closed")

// Store is an [engine.Ledger] in a SQLite file. Its methods may be called from many
// goroutines. Only one process should write to a file; any number may read it.
type Store struct {
	options Options
	seams   seams
	log     *slog.Logger
	metrics *metrics
	seed    maphash.Seed

	trouble atomic.Pointer[trouble] // why the last try to write has failed; nil if it has not

	mu         sync.Mutex
	pending    *batch // what the writer takes next
	turn       uint64 // counts the batches, so that [place] can name one
	lastKey    int64  // of a record
	lastOther  int64  // of a disagreement
	lastChange int64
	running    map[identity]place
	closed     bool

	begun  chan struct{} // pending is no longer empty
	hurry  chan struct{} // don't wait for more
	quit   chan struct{} // closed by Close
	giveUp chan struct{} // closed when Close has no time left
	ended  chan struct{} // closed when the writer has ended

	w writer
}

var _ engine.Ledger = (*Store)(nil)

// identity tells requests apart. The id alone doesn't: callers may choose it, and
// choose the same one twice.
type identity struct {
	id uint64 // hash, so that no string of the record is kept
	at int64
}

// place is where a request that runs was written: its key, and its row if the batch of
// that turn is still pending.
type place struct {
	key  int64
	turn uint64
	row  int
}

// Open opens the file, or makes it, and starts the writer. The error is one line with
// the path, the reason and what to do.
func Open(options Options) (*Store, error) { return open(options, seams{}) }

func open(options Options, seams seams) (*Store, error) {
	if options.QueueRecords <= 0 {
		options.QueueRecords = queueRecords
	}
	if options.QueueBytes <= 0 {
		options.QueueBytes = queueBytes
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Path == "" {
		return nil, errors.New(`cannot open ledger: it has no path; set path = "fourgate.db" in the ledger block`)
	}
	f, err := openFile(options.Path, options.Durability, seams)
	if err != nil {
		return nil, explain("open", options.Path, err)
	}
	s := &Store{
		options: options,
		seams:   seams,
		log:     options.Logger,
		seed:    maphash.MakeSeed(),
		pending: &batch{},
		running: make(map[identity]place),
		begun:   make(chan struct{}, 1),
		hurry:   make(chan struct{}, 1),
		quit:    make(chan struct{}),
		giveUp:  make(chan struct{}),
		ended:   make(chan struct{}),
	}
	s.w = writer{store: s, file: f, spare: &batch{}}
	if s.metrics, err = newMetrics(options.Registry, s.queued); err != nil {
		f.close()
		return nil, fmt.Errorf("cannot open ledger %q: %w", options.Path, err)
	}
	go s.w.run()
	return s, nil
}

// Opened leaves the record as it is before an attempt goes out, so that a process that
// is killed leaves a trace of the attempt. With [Sync] it waits as Closed does.
func (s *Store) Opened(r *engine.Record) { s.note(r, false) }

// Closed keeps the record of a request that is over; it takes the place of what
// Opened has left. With [Batch] it returns at once. With [Sync] it returns when the
// record is on disk, after two seconds at most, and at once while the disk is known to
// be in trouble; the record stays in the queue then.
func (s *Store) Closed(r *engine.Record) { s.note(r, true) }

func (s *Store) note(r *engine.Record, closing bool) {
	id := identity{maphash.String(s.seed, r.RequestID()), r.At().UnixNano()}

	s.mu.Lock()
	first := s.pending.empty()
	full, kept := s.keep(id, r, closing)
	var fate *fate
	if kept && s.options.Durability == Sync {
		fate = s.pending.wait()
	}
	s.mu.Unlock()

	if !kept {
		if closing {
			s.metrics.dropped.Inc()
		}
		return
	}
	if first {
		signal(s.begun)
	}
	if full {
		signal(s.hurry)
	}
	if fate != nil {
		s.await(fate)
	}
}

// keep puts the record in the pending batch. It says whether the batch should be
// written now, and whether there was room. Call it with mu held.
func (s *Store) keep(id identity, r *engine.Record, closing bool) (full, kept bool) {
	b := s.pending
	p, known := s.running[id]
	if closing {
		delete(s.running, id)
	}
	rows, bytes := s.options.QueueRecords, s.options.QueueBytes
	if !closing {
		// Of a request that will close anyway the opening is the lesser loss.
		rows, bytes = (rows+1)/2, bytes/2
	}
	here := known && p.turn == s.turn
	if s.closed || len(b.text) >= bytes || !here && len(b.rows) >= rows {
		return false, false
	}
	if !known {
		// A request that opened late, or a clock that was set back, must not take
		// the key of another one.
		s.lastKey = max(s.lastKey+1, id.at)
		p.key = s.lastKey
	}
	if here {
		b.set(p.row, r)
	} else {
		p.turn, p.row = s.turn, b.add(p.key, known, r)
	}
	if closing {
		b.close(p.row)
	} else {
		s.running[id] = p
	}
	return len(b.rows) >= batchRecords, true
}

// Disagreed keeps the answer of a candidate policy that isn't the one that decides. It
// returns at once, with [Sync] too: no request depends on it. Of what may wait for the
// disk, records come first: when disagreements are a quarter as many as there may be
// records, or half of the bytes are used, more are dropped and counted.
func (s *Store) Disagreed(d engine.Disagreement) {
	s.mu.Lock()
	b := s.pending
	first := b.empty()
	kept := !s.closed && len(b.text) < s.options.QueueBytes/2 && len(b.others) < (s.options.QueueRecords+3)/4
	if kept {
		s.lastOther = max(s.lastOther+1, d.At.UnixNano())
		b.addOther(s.lastOther, &d)
	}
	s.mu.Unlock()
	switch {
	case !kept:
		s.metrics.othersDropped.Inc()
	case first:
		signal(s.begun)
	}
}

// await holds a request up until its batch is on disk or there is no hope of it soon.
func (s *Store) await(f *fate) {
	if s.trouble.Load() != nil {
		s.metrics.unsynced.Inc()
		return
	}
	limit := time.NewTimer(syncWait)
	defer limit.Stop()
	select {
	case <-f.known:
		if f.err != nil {
			s.metrics.unsynced.Inc()
		}
	case <-limit.C:
		s.metrics.unsynced.Inc()
	}
}

// Flush waits until everything that was given before is on disk, or until that is
// known to fail or ctx ends. What couldn't be written stays in the queue.
func (s *Store) Flush(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return explain("write to", s.options.Path, errClosed)
	}
	f := s.pending.wait()
	s.mu.Unlock()
	if t := s.trouble.Load(); t != nil {
		return t.err
	}
	signal(s.begun)
	signal(s.hurry)
	select {
	case <-f.known:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hangWait is how long a write that has been given up may take to come back: much more
// than SQLite's own wait for a lock, since a starved machine is no hanging disk.
const hangWait = 3 * time.Second

// Close writes what is left and closes the file. When ctx ends before a disk in
// trouble has taken it, the rest is dropped and counted, and Close says so. Records
// that come later are dropped.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.quit)
	}
	s.mu.Unlock()
	select {
	case <-s.ended:
		return s.w.result()
	case <-ctx.Done():
	}
	s.mu.Lock()
	select {
	case <-s.giveUp:
	default:
		close(s.giveUp)
	}
	s.mu.Unlock()
	select {
	case <-s.ended:
		return s.w.result()
	case <-time.After(hangWait): // a disk that hangs may never return
		return fmt.Errorf("cannot close ledger %q: the disk hangs: %w", s.options.Path, ctx.Err())
	}
}

// fail tells those who wait, for the batch in hand and for the next one, that there is
// trouble. Those who come later ask for the trouble first.
func (s *Store) fail(inHand *batch, err error) {
	s.trouble.Store(&trouble{err})
	inHand.settle(err)
	s.mu.Lock()
	s.pending.settle(err)
	s.mu.Unlock()
}

// trouble is an error behind one pointer.
type trouble struct{ err error }

// take gives the writer the pending batch and lets the next one begin in spare.
func (s *Store) take(spare *batch) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.pending
	s.pending = spare
	s.turn++
	return b
}

// queued returns how many records wait in memory.
func (s *Store) queued() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(len(s.pending.rows))
}

// signal leaves a mark that the writer will see once.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
