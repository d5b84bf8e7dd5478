package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	sqlFile := func(t *testing.T, dir string, statements ...string) string {
		t.Helper()
		path := filepath.Join(dir, "other.db")
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	for _, c := range []struct {
		name string
		path func(t *testing.T, dir string) string
		want string // of the error, after the path
	}{
		{"no path", func(*testing.T, string) string { return "" }, "it has no path"},
		{"no directory", func(_ *testing.T, dir string) string { return filepath.Join(dir, "none", "x.db") }, "doesn't exist: create it"},
		{"a directory", func(_ *testing.T, dir string) string { return dir }, "it is a directory"},
		{"below a file", func(t *testing.T, dir string) string {
			return filepath.Join(sqlFile(t, dir, "CREATE TABLE a (b)"), "x.db")
		}, "is no directory"},
		{"no database", func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "notes.txt")
			if err := os.WriteFile(path, []byte(strings.Repeat("not a database\n", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, "the file is no SQLite database"},
		{"another application's", func(t *testing.T, dir string) string {
			return sqlFile(t, dir, "CREATE TABLE songs (title)")
		}, "database of another application"},
		{"a newer version's", func(t *testing.T, dir string) string {
			return sqlFile(t, dir, "CREATE TABLE records (x)",
				fmt.Sprintf("PRAGMA application_id = %d", applicationID), "PRAGMA user_version = 99")
		}, "a newer Fourgate has written it (schema 99, this one knows 3); upgrade Fourgate"},
		{"damaged", func(t *testing.T, _ string) string {
			b := openStore(t, Options{}, seams{})
			b.Closed(success(t, 1))
			b.close()
			content, err := os.ReadFile(b.path)
			if err != nil {
				t.Fatal(err)
			}
			for i := 100; i < pageSize; i++ { // all of the first page but SQLite's header
				content[i] = 0xff
			}
			if err := os.WriteFile(b.path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			return b.path
		}, "the file is damaged: move it away"},
		{"read-only directory", func(t *testing.T, dir string) string {
			if os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			if err := os.Chmod(dir, 0o500); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "x.db")
		}, "let this user write the file and its directory"},
		{"read-only file", func(t *testing.T, dir string) string {
			if os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			path := sqlFile(t, dir, "VACUUM")
			if err := os.Chmod(path, 0o400); err != nil {
				t.Fatal(err)
			}
			return path
		}, "let this user write the file and its directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := c.path(t, t.TempDir())
			s, err := Open(Options{Path: path})
			if err == nil {
				_ = s.Close(context.Background())
				t.Fatal("it opened")
			}
			if text := err.Error(); !strings.Contains(text, c.want) || !strings.Contains(text, path) || strings.Contains(text, "\n") {
				t.Errorf("the error is %q; want one line with the path and %q", text, c.want)
			}
		})
	}
}

func TestOpenLeavesOtherFilesAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "songs.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE songs (title)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Path: path}); err == nil {
		t.Fatal("it opened")
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("the other application's file was changed")
	}
}

// outage runs one disturbance from its beginning to its end: nothing blocks, what fits
// in the queue is written afterwards, the log has two lines.
func outage(t *testing.T, b *bench, reason string, begin, end func()) {
	t.Helper()
	b.Closed(success(t, 0))
	b.flush()
	begin()
	for i := range 20 {
		b.Opened(record(t, 1+i, "", openAttempt(1, "openai")))
		b.Closed(success(t, 1+i))
	}
	if err := b.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("flushing in the outage gave %v, want %q", err, reason)
	}
	for i := range 20 {
		b.Closed(success(t, 21+i))
	}
	end()
	eventually(t, "all is written", func() bool { return b.count("fourgate_ledger_records_total") == 41 })
	b.close()
	if got := len(b.ids()); got != 41 {
		t.Errorf("the ledger has %d records, want 41", got)
	}
	lines := b.log.lines()
	if len(lines) != 2 || !strings.Contains(lines[0], "level=ERROR") || !strings.Contains(lines[0], reason) ||
		!strings.Contains(lines[1], "ledger works again") {
		t.Errorf("the log is\n%s\nwant one line that names %q and one of the recovery", strings.Join(lines, "\n"), reason)
	}
}

func TestALockedFile(t *testing.T) {
	t.Parallel()
	for _, d := range []Durability{Batch, Sync} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			b := openStore(t, Options{Durability: d}, seams{})
			db, err := sql.Open("sqlite", b.path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			exec := func(statement string) func() {
				return func() {
					if _, err := db.Exec(statement); err != nil {
						t.Fatal(err)
					}
				}
			}
			outage(t, b, "another process holds its lock", exec("BEGIN EXCLUSIVE"), exec("COMMIT"))
		})
	}
}

func TestAFullDisk(t *testing.T) {
	t.Parallel()
	// The page limit belongs to a connection. A failed try opens a new one, so the
	// test also makes the first of the outage.
	var full, broken atomic.Bool
	b := openStore(t, Options{}, seams{
		setup: func() []string {
			if full.Load() {
				return []string{"PRAGMA max_page_count = 1"} // that is: no more than now
			}
			return nil
		},
		fail: func(step) error {
			if broken.CompareAndSwap(true, false) {
				return errors.New("disk full: no page is left, free some disk space")
			}
			return nil
		},
	})
	outage(t, b, "free some disk space",
		func() { full.Store(true); broken.Store(true) },
		func() { full.Store(false) })
}

// However the records fall into batches, some of which fit, closing counts each that the
// disk didn't take.
func TestSQLiteSaysThatTheDiskIsFull(t *testing.T) {
	t.Parallel()
	const records = 200
	b := openStore(t, Options{}, seams{setup: func() []string { return []string{"PRAGMA max_page_count = 6"} }})
	for i := range records {
		b.Closed(success(t, i))
	}
	if err := b.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "free some disk space") {
		t.Errorf("a full disk gave %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := b.Store.Close(ctx)
	lost := 0
	if err != nil {
		_, text, _ := strings.Cut(err.Error(), "ledger block; ")
		_, _ = fmt.Sscanf(text, "%d records are lost", &lost)
	}
	r, openErr := OpenReader(b.path)
	if openErr != nil {
		t.Fatal(openErr)
	}
	defer r.Close()
	written := 0
	for _, err := range r.All(t.Context(), Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		written++
	}
	if lost == 0 || lost+written != records {
		t.Errorf("of %d records %d were written and closing said %v", records, written, err)
	}
}

func TestAReadOnlyFile(t *testing.T) {
	t.Parallel()
	var readOnly, broken atomic.Bool
	b := openStore(t, Options{}, seams{
		setup: func() []string {
			if readOnly.Load() {
				return []string{"PRAGMA query_only = 1"}
			}
			return nil
		},
		fail: func(s step) error {
			if s == stepBegin && broken.CompareAndSwap(true, false) {
				return errors.New("gone away") // so that the file is opened again
			}
			return nil
		},
	})
	outage(t, b, "gone away",
		func() { readOnly.Store(true); broken.Store(true) },
		func() { readOnly.Store(false) })
}

func TestAFileThatIsReplaced(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	b := openStore(t, Options{}, seams{fail: func(s step) error {
		if s == stepPut && broken.Load() {
			return errors.New("disk I/O error")
		}
		return nil
	}})
	b.Closed(success(t, 1))
	b.flush()
	broken.Store(true)
	b.Closed(success(t, 2))
	if err := b.Flush(t.Context()); err == nil {
		t.Fatal("a broken disk took a record")
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(b.path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	broken.Store(false)
	eventually(t, "the new file has the record", func() bool { return b.count("fourgate_ledger_records_total") == 2 })
	b.close()
	if diff := cmp.Diff([]string{requestID(2)}, b.ids()); diff != "" {
		t.Error(diff)
	}
}

// TestEveryOperationMayFailOnce lets the n-th operation on the file fail, for every n:
// no record is lost, none is there twice, nobody waits for ever.
func TestEveryOperationMayFailOnce(t *testing.T) {
	t.Parallel()
	const records = 5
	script := func(n int) (operations int) {
		var count, armed atomic.Int64
		b := openStore(t, Options{Retention: time.Duration(1<<63 - 1)}, seams{fail: func(step) error {
			if armed.Load() == 0 {
				return nil
			}
			if count.Add(1) == int64(n) {
				return errors.New("disk I/O error")
			}
			return nil
		}})
		armed.Store(1)
		b.Opened(record(t, 0, "", openAttempt(1, "openai")))
		_ = b.Flush(t.Context()) // the error of the first try, if it was this one's turn
		for i := range records {
			b.Closed(success(t, i))
			b.Disagreed(disagreement(i, "abort"))
		}
		_ = b.Flush(t.Context())
		b.close()
		if got := len(b.ids()); got != records {
			t.Errorf("operation %d failed: the ledger has %d records, want %d", n, got, records)
		}
		if got := len(b.disagreements(DisagreementFilter{})); got != records {
			t.Errorf("operation %d failed: the ledger has %d disagreements, want %d", n, got, records)
		}
		return int(count.Load())
	}
	total := script(0)
	if total < 7 {
		t.Fatalf("the script has only %d operations", total)
	}
	for n := 1; n <= total; n++ {
		script(n)
	}
}
