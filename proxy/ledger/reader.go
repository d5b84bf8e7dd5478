package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"modernc.org/sqlite"

	"github.com/fourgate-dev/fourgate/engine"
)

// ErrNotFound and ErrAmbiguous are what [Reader.Get] says of an id.
var (
	ErrNotFound  = errors.New("no such record")
	ErrAmbiguous = errors.New("more than one record begins like this")
)

// DefaultLimit is how many records a list has when its filter names no limit: a
// screen or two.
const DefaultLimit = 50

// readTimeout is how long a reader waits for a lock. Readers of a write-ahead log
// wait for nobody but a process that cleans up after a crash.
const readTimeout = 5 * time.Second

// Reader reads a ledger, also one that a running proxy writes to: it sees what was
// written when each call began, and never holds the proxy up. Its methods may be called
// from many goroutines.
type Reader struct {
	path    string
	db      *sql.DB
	version int64 // of the tables
}

// OpenReader opens an existing ledger. It doesn't change the file.
func OpenReader(path string) (*Reader, error) {
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("cannot read ledger %q: it is a directory; give the path of the file", path)
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("cannot read ledger %q: there is no such file; "+
			"it is made when `fourgate serve` starts, at the path in the ledger block", path)
	}
	db, version, err := openToRead(path, "mode=ro")
	if err != nil && cannotShare(err) && !exists(path+"-wal") {
		// A copy on a medium that can't be written has no room for the files by
		// which readers and a writer agree. Without a log there is no writer.
		db, version, err = openToRead(path, "mode=ro&immutable=1")
	}
	if err != nil {
		return nil, explain("read", path, err)
	}
	return &Reader{path: path, db: db, version: version}, nil
}

func openToRead(path, mode string) (*sql.DB, int64, error) {
	dsn, err := dataSource(path, fmt.Sprintf("%s&_pragma=query_only(1)&_pragma=busy_timeout(%d)",
		mode, readTimeout.Milliseconds()))
	if err != nil {
		return nil, 0, err
	}
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, 0, err
	}
	db := sql.OpenDB(connector)
	version, err := checkTables(db)
	if err != nil {
		_ = db.Close() // nothing was written
		return nil, 0, err
	}
	return db, version, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkTables returns the version of the tables, if this program knows it.
func checkTables(db *sql.DB) (version int64, err error) {
	var m marks
	err = db.QueryRow("SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_schema)"+
		" FROM pragma_application_id AS a, pragma_user_version AS v").
		Scan(&m.applicationID, &m.version, &m.tables)
	if err != nil {
		return 0, err
	}
	if m.empty() {
		return 0, errEmpty
	}
	return m.version, m.check()
}

// Close releases the file.
func (r *Reader) Close() error { return r.db.Close() }

// Filter chooses records. Every field that is set must match; of the attempts, one must
// match all of Channel and Class.
type Filter struct {
	RequestID string          // exactly; a caller may have used one id for several requests
	Since     time.Time       // arrived then or later
	Until     time.Time       // arrived before
	Terminal  engine.Terminal // how the request ended
	Running   bool            // not ended: in flight, or cut off by the death of its process
	Model     string          // that the caller asked for
	Caller    string
	Channel   string        // of an attempt
	Class     *engine.Class // of a failed attempt; a pointer since unknown is a class, too
	Decided   bool          // a policy was asked about an attempt
	Disagreed bool          // a candidate policy has disagreed about an attempt
	Limit     int           // 0 means DefaultLimit for List, no limit for All
}

// List returns the records that match, the newest first. Records that can't be read are
// left out and named in the error, beside those that can.
func (r *Reader) List(ctx context.Context, f Filter) ([]*engine.Record, error) {
	if f.Limit <= 0 {
		f.Limit = DefaultLimit
	}
	var (
		list []*engine.Record
		bad  []error
	)
	for rec, err := range r.All(ctx, f) {
		if err != nil {
			bad = append(bad, err)
			continue
		}
		list = append(list, rec)
	}
	return list, errors.Join(bad...)
}

// All yields the records that match one by one, the newest first, for exports and
// replays of any size. It yields an error for a record that can't be read and goes on,
// and one as the last thing if the file can't be read on.
func (r *Reader) All(ctx context.Context, f Filter) iter.Seq2[*engine.Record, error] {
	return func(yield func(*engine.Record, error) bool) {
		if f.Disagreed && r.version < withDisagreements {
			return
		}
		query, args := f.query()
		rows, err := r.db.QueryContext(ctx, query, args...)
		if err != nil {
			yield(nil, explain("read", r.path, err))
			return
		}
		defer rows.Close()
		var body sql.RawBytes
		for left := f.Limit; rows.Next(); {
			if err := rows.Scan(&body); err != nil {
				yield(nil, explain("read", r.path, err))
				return
			}
			rec, err := r.parse(body)
			if err == nil && !f.match(rec) {
				continue
			}
			if !yield(rec, err) {
				return
			}
			if left--; err == nil && left == 0 {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, explain("read", r.path, err))
		}
	}
}

func (r *Reader) parse(body []byte) (*engine.Record, error) {
	rec, err := engine.ParseRecord(body)
	if err != nil {
		return nil, fmt.Errorf("cannot read a record of ledger %q: %w; "+
			"it was changed by hand or written by another version", r.path, err)
	}
	return rec, nil
}

// Get returns the record with an id, or with the only id that begins like it. Where
// one id stands for several requests it is the newest; [Filter.RequestID] lists them.
func (r *Reader) Get(ctx context.Context, id string) (*engine.Record, error) {
	if id == "" {
		return nil, errors.New("cannot show record: no id was given; `fourgate ledger list` prints them")
	}
	ids, err := r.complete(ctx, id)
	switch {
	case err != nil:
		return nil, explain("read", r.path, err)
	case len(ids) == 0:
		return nil, fmt.Errorf("cannot show record %q: %w; `fourgate ledger list` prints the ids, "+
			"and a running proxy's newest records take a moment to appear", id, ErrNotFound)
	case len(ids) > 1:
		return nil, fmt.Errorf("cannot show record %q: %w (%s, …); give more characters",
			id, ErrAmbiguous, strings.Join(ids, ", "))
	}
	for rec, err := range r.All(ctx, Filter{RequestID: ids[0]}) {
		return rec, err
	}
	return nil, fmt.Errorf("cannot show record %q: %w; it has just been deleted by the retention", id, ErrNotFound)
}

// complete returns the id itself if it exists, else the first few that begin with it.
func (r *Reader) complete(ctx context.Context, id string) ([]string, error) {
	// Every text that begins with the id lies between the id and the id with the
	// largest code point behind it.
	rows, err := r.db.QueryContext(ctx, "SELECT DISTINCT request_id FROM records"+
		" WHERE request_id >= ?1 AND request_id <= ?1 || char(1114111) ORDER BY request_id LIMIT 3", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		if s == id {
			return []string{s}, nil
		}
		ids = append(ids, s)
	}
	return ids, rows.Err()
}
