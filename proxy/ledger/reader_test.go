package ledger

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// sample is a ledger with one of each.
func sample(t *testing.T) *Reader {
	t.Helper()
	b := openStore(t, Options{}, seams{})
	b.Closed(recordOf(t, "01AA1", arrival, "success", goodAttempt(1, "openai")))
	b.Closed(recordOf(t, "01AA2", arrival.Add(time.Second), "success",
		failedAttempt(1, "openai", "provider_transient"), goodAttempt(2, "azure-east")))
	b.Closed(recordOf(t, "01AB3", arrival.Add(2*time.Second), "exhausted",
		failedAttempt(1, "azure-east", "unknown"), failedAttempt(2, "openai", "rate_limited")))
	b.Opened(recordOf(t, "01B4", arrival.Add(3*time.Second), "", openAttempt(1, "eu/west \"1\"")))
	b.Closed(recordOf(t, "twice", arrival.Add(4*time.Second), "policy_stop"))
	b.Closed(recordOf(t, "twice", arrival.Add(5*time.Second), "cancelled"))
	b.close()
	r, err := OpenReader(b.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // it only reads
	return r
}

func TestList(t *testing.T) {
	t.Parallel()
	r := sample(t)
	unknown, limited := engine.ClassUnknown, engine.ClassRateLimited
	for _, c := range []struct {
		name string
		f    Filter
		want string
	}{
		{"all", Filter{}, "twice twice 01B4 01AB3 01AA2 01AA1"},
		{"limit", Filter{Limit: 2}, "twice twice"},
		{"since", Filter{Since: arrival.Add(3 * time.Second)}, "twice twice 01B4"},
		{"terminal", Filter{Terminal: engine.TerminalSuccess}, "01AA2 01AA1"},
		{"terminal and limit", Filter{Terminal: engine.TerminalSuccess, Limit: 1}, "01AA2"},
		{"running", Filter{Running: true}, "01B4"},
		{"model", Filter{Model: "gpt-4o-2024-08-06", Terminal: engine.TerminalCancelled}, "twice"},
		{"a part of the model", Filter{Model: "gpt-4o"}, ""},
		{"caller", Filter{Caller: "team-b"}, ""},
		{"channel", Filter{Channel: "azure-east"}, "01AB3 01AA2"},
		{"channel with odd characters", Filter{Channel: `eu/west "1"`}, "01B4"},
		{"class", Filter{Class: &limited}, "01AB3"},
		{"class unknown", Filter{Class: &unknown}, "01AB3"},
		{"class on another channel", Filter{Class: &unknown, Channel: "openai"}, ""},
		{"id", Filter{RequestID: "twice"}, "twice twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			list, err := r.List(t.Context(), c.f)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, rec := range list {
				ids = append(ids, rec.RequestID())
			}
			if diff := cmp.Diff(c.want, strings.Join(ids, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	r := sample(t)
	for _, c := range []struct {
		id, want string
		err      error
		says     string
	}{
		{id: "01AA1", want: "01AA1"},
		{id: "01AB", want: "01AB3"},
		{id: "01B", want: "01B4"},
		{id: "tw", want: "twice"},
		{id: "01AA", err: ErrAmbiguous, says: "01AA1, 01AA2, …); give more characters"},
		{id: "01C", err: ErrNotFound, says: "fourgate ledger list"},
		{id: "%", err: ErrNotFound},
		{id: "", says: "no id was given"},
	} {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			rec, err := r.Get(t.Context(), c.id)
			switch {
			case c.want != "":
				if err != nil || rec.RequestID() != c.want {
					t.Errorf("got %v, %v", rec, err)
				}
			case err == nil:
				t.Errorf("got %s", rec.AppendJSON(nil))
			case c.err != nil && !errors.Is(err, c.err), !strings.Contains(err.Error(), c.says):
				t.Errorf("the error is %q, want %q", err, c.says)
			}
		})
	}
	if rec, err := r.Get(t.Context(), "twice"); err != nil || rec.Terminal() != engine.TerminalCancelled {
		t.Errorf("of two requests with one id the older was shown: %v", err)
	}
}

// FuzzGet asks for any id: the answer is a record whose id begins so, or a plain no.
func FuzzGet(f *testing.F) {
	f.Add("01AA1")
	f.Add("01")
	f.Add("%' OR 1=1 --")
	f.Add("\xff\x00")
	b := openStore(f, Options{}, seams{})
	for i := range 20 {
		b.Closed(success(f, i))
	}
	b.close()
	r, err := OpenReader(b.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = r.Close() }) // it only reads
	f.Fuzz(func(t *testing.T, id string) {
		rec, err := r.Get(t.Context(), id)
		switch {
		case err == nil && !strings.HasPrefix(rec.RequestID(), id):
			t.Errorf("%q gave the record %s", id, rec.RequestID())
		case err != nil && id != "" && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrAmbiguous):
			t.Errorf("%q gave %v", id, err)
		}
	})
}

func TestACopyOnAReadOnlyMedium(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	b := openStore(t, Options{}, seams{})
	b.Closed(success(t, 1))
	b.close()
	dir := filepath.Dir(b.path)
	if err := errors.Join(os.Chmod(b.path, 0o400), os.Chmod(dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) // so that the test's directory can go
	if got := b.ids(); len(got) != 1 {
		t.Errorf("the copy shows %v", got)
	}
}

func TestReadersWhileTheProxyWrites(t *testing.T) {
	t.Parallel()
	const n = 600
	b := openStore(t, Options{}, seams{})
	records := make([]*engine.Record, n)
	for i := range records {
		records[i] = success(t, i)
	}
	b.Closed(records[0])
	b.flush()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		r, err := OpenReader(b.path)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer r.Close()
			for seen := 0; ; {
				select {
				case <-stop:
					return
				default:
				}
				list, err := r.List(t.Context(), Filter{Limit: n})
				if err != nil || len(list) < seen {
					t.Errorf("a reader saw %d records after %d: %v", len(list), seen, err)
					return
				}
				seen = len(list)
			}
		})
	}
	for i, r := range records[1:] {
		b.Closed(r)
		if i%100 == 0 {
			b.flush()
		}
	}
	b.flush()
	close(stop)
	wg.Wait()
	b.close()
	if got := len(b.ids()); got != n {
		t.Errorf("the ledger has %d records, want %d", got, n)
	}
	if got := b.log.lines(); got[0] != "" {
		t.Errorf("the readers disturbed the writer: %v", got)
	}
}

func TestOneBadRecordHidesNoOther(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{}, seams{})
	for i := range 3 {
		b.Closed(success(t, i))
	}
	b.close()
	change(t, b.path, "UPDATE records SET record = '{' WHERE request_id = '"+requestID(1)+"'")
	r, err := OpenReader(b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	list, err := r.List(t.Context(), Filter{})
	if len(list) != 2 || err == nil || !strings.Contains(err.Error(), "changed by hand") {
		t.Errorf("got %d records and %v, want two and what is wrong with the third", len(list), err)
	}
}

func TestOpenReaderSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte(strings.Repeat("not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	songs := filepath.Join(dir, "songs.db")
	change(t, songs, "CREATE TABLE songs (title)")
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.db"): "there is no such file",
		empty:                         "it is empty; `fourgate serve` makes its tables",
		notes:                         "no SQLite database",
		songs:                         "another application",
		dir:                           "it is a directory",
	} {
		_, err := OpenReader(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the error is %v, want %q", path, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); !errors.Is(err, os.ErrNotExist) {
		t.Error("reading made a file")
	}
}

// TestViews holds the columns that docs/ledger.md promises to users of plain SQL.
func TestViews(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{}, seams{})
	b.Closed(record(t, 1, "success", failedAttempt(1, "openai", "provider_transient"), goodAttempt(2, "azure-east")))
	b.close()
	db, err := sql.Open("sqlite", b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	check := func(query, want string) {
		t.Helper()
		var got string
		if err := db.QueryRow(query).Scan(&got); err != nil {
			t.Errorf("%s: %v", query, err)
		}
		if got != want {
			t.Errorf("%s\ngave %s\nwant %s", query, got, want)
		}
	}
	check("SELECT concat_ws('|', request_id, at, caller, model, endpoint, terminal, status, elapsed_ms, attempts) FROM requests",
		requestID(1)+"|2026-03-01T12:00:00.001Z|team-a|gpt-4o-2024-08-06|openai.chat|success|200|31|2")
	check(`SELECT concat_ws('|', seq, "group", channel, provider, key_name, model, status, class, reason, scope, phase, completion, action, rule) FROM attempts WHERE seq = 1`,
		"1|gpt-4o|openai|openai|main|gpt-4o-2024-08-06|503|provider_transient|overloaded|channel|before_headers|none|fallback|policies/decision.rego:31")
	check("SELECT concat_ws('|', class, cost_usd) FROM attempts WHERE seq = 2", "ok|0.00299")
}

// change runs a statement on a file that no store has open.
func change(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}
