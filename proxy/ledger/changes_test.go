package ledger

import (
	"database/sql"
	"fmt"
	"iter"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// allOf opens a ledger's file and reads to the end what it has of one kind.
func allOf[T any](t testing.TB, path string, read func(*Reader) iter.Seq2[T, error]) (list []T) {
	t.Helper()
	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for one, err := range read(r) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, one)
	}
	return list
}

func changesOf(t testing.TB, path string, since time.Time) []Change {
	t.Helper()
	return allOf(t, path, func(r *Reader) iter.Seq2[Change, error] { return r.Changes(t.Context(), since) })
}

func TestChangesComeBack(t *testing.T) {
	t.Parallel()
	until := arrival.Add(time.Hour).UTC()
	disabled := Change{
		At: arrival.UTC(), Action: "disable", By: "admin_token", From: "127.0.0.1:5000",
		Kind: "channel_disabled", Group: "gpt-4o", Channel: "azure-east", Until: &until, Before: []Aside{},
	}
	reset := Change{
		At: arrival.Add(time.Minute).UTC(), Action: "reset", By: "admin_token", Group: "gpt-4o", Before: []Aside{
			AsideOf(engine.Aside{Fact: engine.Fact{Kind: engine.FactBreakerOpen, Group: "gpt-4o", Channel: "openai", Until: until}, Caller: "team-a"}),
			AsideOf(engine.Aside{Fact: engine.Fact{Kind: engine.FactKeyCooled, Provider: "openai", Key: "main", KeyPrint: "not for people"}, Abroad: true}),
		},
	}
	b := openStore(t, Options{}, seams{})
	b.Changed(disabled)
	b.Changed(reset)
	b.Changed(Change{At: reset.At, Action: "reload", By: "SIGHUP", Generation: 2}) // in the same nanosecond
	b.close()
	got := changesOf(t, b.path, time.Time{})
	want := []Change{{At: reset.At, Action: "reload", By: "SIGHUP", Generation: 2, Before: []Aside{}}, reset, disabled}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := changesOf(t, b.path, reset.At); len(got) != 2 {
		t.Errorf("since the second: %d changes, want 2", len(got))
	}
}

// TestAFileOfTheSecondVersion reads one, then writes to it.
func TestAFileOfTheSecondVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "old.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		createTables, createDisagreements, fmt.Sprintf("PRAGMA application_id = %d", applicationID), "PRAGMA user_version = 2", "PRAGMA journal_mode = WAL",
	} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if list := changesOf(t, path, time.Time{}); len(list) != 0 {
		t.Errorf("changes %v", list)
	}
	b := openStore(t, Options{Path: path}, seams{})
	b.Changed(Change{At: arrival, Action: "reload", By: "SIGHUP"})
	b.Disagreed(disagreement(0, "abort"))
	b.close()
	if changes, others := changesOf(t, path, time.Time{}), b.disagreements(DisagreementFilter{}); len(changes) != 1 || len(others) != 1 {
		t.Errorf("%d changes, %d disagreements, want one each", len(changes), len(others))
	}
}

func TestRetentionOfChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fourgate.db")
	b := openStore(t, Options{Path: path}, seams{})
	now := time.Now()
	b.Changed(Change{At: now.Add(-2 * time.Hour), Action: "reload", By: "SIGHUP"})
	b.Changed(Change{At: now.Add(-time.Minute), Action: "reload", By: "SIGHUP"})
	b.close()
	openStore(t, Options{Path: path, Retention: time.Hour}, seams{})
	eventually(t, "only the new one is left", func() bool { return len(changesOf(t, path, time.Time{})) == 1 })
}
