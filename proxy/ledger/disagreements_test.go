package ledger

import (
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// disagreement is about the i-th request, 5 ms after its arrival; to is what the
// candidate would do instead of falling back.
func disagreement(i int, to string) engine.Disagreement {
	action, err := engine.ParseAction(to)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return engine.Disagreement{
		RequestID: requestID(i), Seq: 1, At: arrival.Add(time.Duration(i+5) * time.Millisecond), Group: "gpt-4o",
		Cell: engine.Cell{Class: engine.ClassProviderTransient, ReplaySafe: true, Budget: engine.BudgetLeft},
		From: engine.Answer{Action: engine.Fallback}, To: engine.Answer{Action: action, Rule: "candidate.rego:7"},
	}
}

func disagreementsOf(t testing.TB, path string, f DisagreementFilter) []engine.Disagreement {
	t.Helper()
	return allOf(t, path, func(r *Reader) iter.Seq2[engine.Disagreement, error] { return r.Disagreements(t.Context(), f) })
}

func (b *bench) disagreements(f DisagreementFilter) []engine.Disagreement {
	b.t.Helper()
	return disagreementsOf(b.t, b.path, f)
}

// idsIn tells disagreements by their requests and answers.
func idsIn(list []engine.Disagreement) string {
	var ids []string
	for _, d := range list {
		ids = append(ids, strings.TrimLeft(d.RequestID[7:], "0")+d.To.Word())
	}
	return strings.Join(ids, " ")
}

func TestDisagreementsComeBack(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{}, seams{})
	b.Disagreed(disagreement(1, "abort"))
	b.flush()
	second := disagreement(1, "retry") // of the same nanosecond
	b.Disagreed(second)
	other := disagreement(9, "abort")
	other.Group = "small"
	b.Disagreed(other)
	b.close()
	f := func(filter DisagreementFilter, want string) {
		t.Helper()
		if got := idsIn(b.disagreements(filter)); got != want {
			t.Errorf("%+v: got %s, want %s", filter, got, want)
		}
	}
	f(DisagreementFilter{}, "9abort 1retry 1abort")
	f(DisagreementFilter{Group: "gpt-4o"}, "1retry 1abort")
	f(DisagreementFilter{Since: second.At.Add(time.Millisecond)}, "9abort")
	f(DisagreementFilter{Of: record(t, 1, "success")}, "1retry 1abort")
	// Another request with the id, an hour later.
	f(DisagreementFilter{Of: recordOf(t, requestID(1), arrival.Add(time.Hour), "success")}, "")
	f(DisagreementFilter{Of: recordOf(t, requestID(1), arrival.Add(-time.Hour), "success")}, "")
	f(DisagreementFilter{Of: recordOf(t, requestID(1), arrival.Add(-time.Hour), "")}, "1retry 1abort") // it runs yet
	got := b.disagreements(DisagreementFilter{Group: "gpt-4o"})
	if diff := cmp.Diff(second, got[0], cmp.AllowUnexported(engine.Wait{}, engine.Reason{})); diff != "" {
		t.Error(diff)
	}
}

func TestListOfThoseWithDisagreements(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{}, seams{})
	for i := range 4 {
		b.Closed(record(t, i, "success", failedAttempt(1, "openai", "provider_transient"), goodAttempt(2, "azure-east")))
	}
	b.Closed(success(t, 4))
	b.Disagreed(disagreement(1, "abort"))
	b.Disagreed(disagreement(3, "retry"))
	b.Closed(recordOf(t, requestID(1), arrival.Add(time.Hour), "success"))
	b.close()
	r, err := OpenReader(b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := func(filter Filter, want ...string) {
		t.Helper()
		list, err := r.List(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, rec := range list {
			ids = append(ids, rec.RequestID())
		}
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("%+v: %s", filter, diff)
		}
	}
	f(Filter{Disagreed: true}, requestID(3), requestID(1))
	f(Filter{Disagreed: true, Limit: 1}, requestID(3))
	f(Filter{Disagreed: true, Channel: "azure-east", Until: arrival.Add(3 * time.Millisecond)}, requestID(1))
	f(Filter{Decided: true, Until: arrival.Add(2 * time.Millisecond)}, requestID(1), requestID(0))
	f(Filter{Decided: true, Since: arrival.Add(4 * time.Millisecond)})
}

// TestAFileOfTheFirstVersion reads one, then writes to it.
func TestAFileOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "old.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		createTables, fmt.Sprintf("PRAGMA application_id = %d", applicationID), "PRAGMA user_version = 1", "PRAGMA journal_mode = WAL",
	} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(insertRow, arrival.UnixNano(), requestID(0), string(success(t, 0).AppendJSON(nil))); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, f := range []Filter{{}, {Disagreed: true}} {
		list, err := r.List(t.Context(), f)
		if err != nil || len(list) == 1 == f.Disagreed {
			t.Errorf("%+v: %d records, error %v", f, len(list), err)
		}
	}
	if list := disagreementsOf(t, path, DisagreementFilter{}); len(list) != 0 {
		t.Errorf("disagreements %v", list)
	}

	b := openStore(t, Options{Path: path}, seams{})
	b.Closed(success(t, 1))
	b.Disagreed(disagreement(1, "abort"))
	b.close()
	if diff := cmp.Diff([]string{requestID(1), requestID(0)}, b.ids()); diff != "" {
		t.Error(diff)
	}
	if got := idsIn(b.disagreements(DisagreementFilter{})); got != "1abort" {
		t.Errorf("disagreements %s", got)
	}
}

func TestRetentionOfDisagreements(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fourgate.db")
	b := openStore(t, Options{Path: path}, seams{})
	now := time.Now()
	const old = rowsPerPrune + 10
	for i := range old {
		d := disagreement(i, "abort")
		d.At = now.Add(-2 * time.Hour)
		b.Disagreed(d)
	}
	fresh := disagreement(old, "abort")
	fresh.At = now.Add(-time.Minute)
	b.Disagreed(fresh)
	b.close()
	openStore(t, Options{Path: path, Retention: time.Hour}, seams{})
	eventually(t, "only the new one is left", func() bool { return len(disagreementsOf(t, path, DisagreementFilter{})) == 1 })
}

// TestDisagreementsTakeNoRoomFromRecords fills the queue in an outage.
func TestDisagreementsTakeNoRoomFromRecords(t *testing.T) {
	t.Parallel()
	const lost = "fourgate_ledger_disagreements_dropped_total"
	var broken atomic.Bool
	b := openStore(t, Options{QueueRecords: 8}, seams{fail: func(step) error {
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
	for i := range 10 {
		b.Disagreed(disagreement(i, "abort"))
		b.Closed(success(t, 1+i))
	}
	if got := b.count(lost); got != 8 {
		t.Errorf("%v disagreements were dropped, want all but 2", got)
	}
	if got := b.count("fourgate_ledger_dropped_total"); got != 2 {
		t.Errorf("%v records were dropped, want all but 8", got)
	}
	broken.Store(false)
	b.close()
	if got := idsIn(b.disagreements(DisagreementFilter{})); got != "1abort abort" {
		t.Errorf("the ledger has %s", got)
	}
	b.Disagreed(disagreement(1, "abort")) // a closed store takes it and does nothing
	if got := len(b.ids()); got != 9 {
		t.Errorf("the ledger has %d records, want 9", got)
	}
}
