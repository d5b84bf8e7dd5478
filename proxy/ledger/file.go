package ledger

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"modernc.org/sqlite"
)

// rowsPerPrune bounds one step of the retention, which takes about a millisecond, so
// that records don't wait behind it.
const rowsPerPrune = 500

// busyTimeout is how long one statement waits for another process's lock. It is short
// because the writer tries again by itself.
const busyTimeout = 100 * time.Millisecond

// step names one operation on the file, for tests that let it fail.
type step string

const (
	stepOpen   step = "open"
	stepBegin  step = "begin"
	stepPut    step = "put"
	stepCommit step = "commit"
	stepPrune  step = "prune"
)

// seams let tests disturb a file. Production leaves both nil.
type seams struct {
	fail  func(step) error // an error to meet instead of the operation
	setup func() []string  // more statements for each new connection
}

func (s seams) meet(at step) error {
	if s.fail == nil {
		return nil
	}
	return s.fail(at)
}

// file is the writer's connection. It is for one goroutine. It speaks to the driver
// without database/sql between them, whose pool, locks and conversions would cost as
// much as a third of the write.
type file struct {
	seams                         seams
	conn                          driver.Conn
	begin, commit, insert, update driver.Stmt
	insertOther                   driver.Stmt // a disagreement
	insertChange                  driver.Stmt
	pruneOld, pruneOthers         driver.Stmt // records, disagreements
	pruneChanges                  driver.Stmt
	args                          [3]driver.NamedValue // of the inserts and update
}

// openFile opens the file, creates it and its tables where they are missing, and
// prepares the statements.
func openFile(path string, durability Durability, seams seams) (*file, error) {
	if err := seams.meet(stepOpen); err != nil {
		return nil, err
	}
	dsn, err := dataSource(path, "")
	if err != nil {
		return nil, err
	}
	makeFile(path)
	conn, err := (&sqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	f := &file{seams: seams, conn: conn}
	if err := f.setUp(durability); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// makeFile makes a new file that not everybody may read, for SQLite would. It leaves
// every error to SQLite, which meets it again. An existing file is not touched: to close
// it here would take SQLite's locks from it.
func makeFile(path string) {
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640); err == nil {
		_ = f.Close() // nothing was written
	}
}

func (f *file) setUp(durability Durability) error {
	synchronous := "NORMAL"
	if durability == Sync {
		synchronous = "FULL"
	}
	pragmas := []string{
		fmt.Sprintf("PRAGMA busy_timeout = %d", busyTimeout.Milliseconds()),
		fmt.Sprintf("PRAGMA page_size = %d", pageSize), // counts only for a new file
		"PRAGMA synchronous = " + synchronous,
		// A reader that stays for long lets the write-ahead log grow; afterwards
		// it is cut back to this.
		fmt.Sprintf("PRAGMA journal_size_limit = %d", 64<<20),
	}
	if f.seams.setup != nil {
		pragmas = append(pragmas, f.seams.setup()...)
	}
	for _, p := range pragmas {
		if err := f.run(p); err != nil {
			return err
		}
	}
	if err := f.migrate(); err != nil {
		return err
	}
	// After the check, so that another application's file isn't changed.
	if err := f.run("PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	for _, p := range []struct {
		to  *driver.Stmt
		sql string
	}{
		// IMMEDIATE takes the write lock at once: a lock that is met half-way
		// would fail without waiting.
		{&f.begin, "BEGIN IMMEDIATE"},
		{&f.commit, "COMMIT"},
		{&f.insert, insertRow},
		{&f.update, updateRow},
		{&f.insertOther, insertDisagreement},
		{&f.insertChange, insertChange},
		{&f.pruneOld, prune},
		{&f.pruneOthers, pruneDisagreements},
		{&f.pruneChanges, pruneChanges},
	} {
		stmt, err := f.conn.Prepare(p.sql)
		if err != nil {
			return err
		}
		*p.to = stmt
	}
	for i := range f.args {
		f.args[i].Ordinal = i + 1
	}
	return nil
}

// migrate brings the tables to this version, or says why it can't.
func (f *file) migrate() error {
	id, err := f.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	version, err := f.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	tables, err := f.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	switch state := (marks{id, version, tables}); {
	case state.empty():
		return f.change(createTables, createDisagreements, createChanges, fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	default:
		switch err := state.check(); {
		case err != nil || state.version >= withChanges:
			return err
		case state.version >= withDisagreements:
			return f.change(createChanges)
		}
		return f.change(createDisagreements, createChanges)
	}
}

// change brings the tables to this version in one transaction.
func (f *file) change(steps ...string) error {
	if err := f.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, sql := range append(steps, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion), "COMMIT") {
		if err := f.run(sql); err != nil {
			return err // closing the connection rolls back
		}
	}
	return nil
}

// put writes all rows of a batch or none. After an error the file must be closed.
func (f *file) put(b *batch) error {
	if _, err := f.exec(stepBegin, f.begin, nil); err != nil {
		return err
	}
	for i := range b.rows {
		key, id, json := b.fields(i)
		f.args[0].Value, f.args[1].Value, f.args[2].Value = key, id, json
		if b.rows[i].again {
			switch res, err := f.exec(stepPut, f.update, f.args[:]); {
			case err != nil:
				return err
			case touched(res):
				continue
			}
			// What was left at the opening was dropped, or has been deleted.
		}
		if _, err := f.exec(stepPut, f.insert, f.args[:]); err != nil {
			return err
		}
	}
	for i := range b.others {
		f.args[0].Value, f.args[1].Value, f.args[2].Value = b.other(i)
		if _, err := f.exec(stepPut, f.insertOther, f.args[:]); err != nil {
			return err
		}
	}
	for _, c := range b.changes {
		f.args[0].Value, f.args[1].Value = c.key, c.json
		if _, err := f.exec(stepPut, f.insertChange, f.args[:2]); err != nil {
			return err
		}
	}
	_, err := f.exec(stepCommit, f.commit, nil)
	return err
}

func touched(res driver.Result) bool {
	n, err := res.RowsAffected()
	return err == nil && n > 0
}

// prune deletes some of the rows from before a time and says whether there may be more.
func (f *file) prune(before time.Time) (more bool, err error) {
	args := []driver.NamedValue{
		{Ordinal: 1, Value: before.UnixNano()},
		{Ordinal: 2, Value: int64(rowsPerPrune)},
	}
	for _, stmt := range []driver.Stmt{f.pruneOld, f.pruneOthers, f.pruneChanges} {
		res, err := f.exec(stepPrune, stmt, args)
		if err != nil {
			return false, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return false, err
		}
		more = more || n == rowsPerPrune
	}
	return more, nil
}

func (f *file) exec(at step, stmt driver.Stmt, args []driver.NamedValue) (driver.Result, error) {
	if err := f.seams.meet(at); err != nil {
		return nil, err
	}
	return stmt.(driver.StmtExecContext).ExecContext(context.Background(), args)
}

// run executes SQL text without arguments.
func (f *file) run(sql string) error {
	_, err := f.conn.(driver.ExecerContext).ExecContext(context.Background(), sql, nil)
	return err
}

// number reads one integer.
func (f *file) number(sql string) (int64, error) {
	rows, err := f.conn.(driver.QueryerContext).QueryContext(context.Background(), sql, nil)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	value := make([]driver.Value, 1)
	if err := rows.Next(value); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	n, _ := value[0].(int64)
	return n, nil
}

// close rolls back what is open and releases the file. The last connection to a file
// also moves the write-ahead log into it.
func (f *file) close() {
	for _, stmt := range []driver.Stmt{f.begin, f.commit, f.insert, f.update, f.insertOther, f.insertChange, f.pruneOld, f.pruneOthers, f.pruneChanges} {
		if stmt != nil {
			_ = stmt.Close() // its error repeats the statement's last one
		}
	}
	_ = f.conn.Close() // whatever is lost now was reported when it was written
}

// dataSource makes the driver's name of a file: a URI, so that no character of the
// path is taken for a parameter.
func dataSource(path, query string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	abs = filepath.ToSlash(abs)
	if runtime.GOOS == "windows" {
		abs = "/" + abs
	}
	u := url.URL{Scheme: "file", Path: abs, RawQuery: query}
	return u.String(), nil
}
