package ledger

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(victimPath); path != "" {
		victim(path)
		return
	}
	goleak.VerifyTestMain(m)
}

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{}, seams{})
	want := []*engine.Record{
		record(t, 3, "exhausted", failedAttempt(1, "openai", "rate_limited"), failedAttempt(2, "azure-east", "unknown")),
		record(t, 2, "success", failedAttempt(1, "openai", "provider_transient"), goodAttempt(2, "azure-east")),
		record(t, 1, "policy_stop"),
	}
	for i := len(want) - 1; i >= 0; i-- {
		b.Closed(want[i])
	}
	b.close()

	r, err := OpenReader(b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := r.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(texts(want), texts(got)); diff != "" {
		t.Error(diff)
	}
}

func texts(records []*engine.Record) []string {
	var all []string
	for _, r := range records {
		all = append(all, string(r.AppendJSON(nil)))
	}
	return all
}

func TestClosingTakesThePlaceOfTheOpening(t *testing.T) {
	t.Parallel()
	for _, between := range []bool{false, true} {
		t.Run(fmt.Sprintf("written between %v", between), func(t *testing.T) {
			t.Parallel()
			b := openStore(t, Options{}, seams{})
			b.Opened(record(t, 1, "", openAttempt(1, "openai")))
			if between {
				b.flush()
				if diff := cmp.Diff([]string{requestID(1) + "*"}, b.ids()); diff != "" {
					t.Error(diff)
				}
			}
			b.Opened(record(t, 1, "", failedAttempt(1, "openai", "unknown"), openAttempt(2, "azure-east")))
			b.Closed(record(t, 1, "success", failedAttempt(1, "openai", "unknown"), goodAttempt(2, "azure-east")))
			b.close()
			if diff := cmp.Diff([]string{requestID(1)}, b.ids()); diff != "" {
				t.Error(diff)
			}
			if len(b.running) != 0 {
				t.Errorf("the store remembers %d requests that are over", len(b.running))
			}
		})
	}
}

func TestOneIDForSeveralRequestsKeepsAll(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{}, seams{})
	for i := range 3 {
		// The second and the third arrive at the same time by the clock.
		r := recordOf(t, "mine", arrival.Add(min(time.Duration(i), 1)), "success", goodAttempt(1, "openai"))
		b.Opened(r)
		b.Closed(r)
	}
	b.close()
	if got := b.ids(); len(got) != 3 {
		t.Errorf("the ledger has %d of 3 records", len(got))
	}
}

func TestALateOpeningKeepsItsTimeOfArrival(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{}, seams{})
	b.Closed(success(t, 5))
	b.Closed(success(t, 2)) // arrived before, waited longer
	b.close()
	r, err := OpenReader(b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := r.List(t.Context(), Filter{Since: arrival.Add(3 * time.Millisecond)})
	if err != nil || len(got) != 1 || got[0].RequestID() != requestID(5) {
		t.Errorf("got %v, %v; want the one record that arrived since", texts(got), err)
	}
}

func TestManyCallersAtOnce(t *testing.T) {
	t.Parallel()
	for _, d := range []Durability{Batch, Sync} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			const callers, each = 8, 100
			b := openStore(t, Options{Durability: d}, seams{})
			records := make([]*engine.Record, callers*each)
			for i := range records {
				records[i] = success(t, i)
			}
			var wg sync.WaitGroup
			for c := range callers {
				wg.Go(func() {
					for _, r := range records[c*each : (c+1)*each] {
						b.Opened(r)
						b.Closed(r)
					}
				})
			}
			wg.Wait()
			b.flush()
			if got := b.count("fourgate_ledger_records_total"); got != callers*each {
				t.Errorf("%v records were counted, want %d", got, callers*each)
			}
			b.close()
			if got := len(b.ids()); got != callers*each {
				t.Errorf("the ledger has %d records, want %d", got, callers*each)
			}
		})
	}
}

func TestABatchIsWrittenByItself(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{}, seams{})
	b.Closed(success(t, 1))
	eventually(t, "the record is on disk", func() bool { return len(b.ids()) == 1 })
}

func TestSyncIsOnDiskWhenTheCallReturns(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{Durability: Sync}, seams{})
	b.Opened(record(t, 1, "", openAttempt(1, "openai")))
	if diff := cmp.Diff([]string{requestID(1) + "*"}, b.ids()); diff != "" {
		t.Error(diff)
	}
	b.Closed(success(t, 1))
	if diff := cmp.Diff([]string{requestID(1)}, b.ids()); diff != "" {
		t.Error(diff)
	}
	if got := b.count("fourgate_ledger_unsynced_total"); got != 0 {
		t.Errorf("%v calls gave up on a healthy disk", got)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fourgate.db")
	b := openStore(t, Options{Path: path}, seams{})
	now := time.Now()
	const old = 2*rowsPerPrune + 10
	for i := range old {
		b.Closed(recordOf(t, requestID(i), now.Add(-2*time.Hour), "success"))
	}
	b.Closed(recordOf(t, requestID(old), now.Add(-time.Minute), "success"))
	b.close()

	openStore(t, Options{Path: path, Retention: time.Hour}, seams{})
	eventually(t, "only the new record is left", func() bool { return len(idsOf(t, path)) == 1 })
	if diff := cmp.Diff([]string{requestID(old)}, idsOf(t, path)); diff != "" {
		t.Error(diff)
	}
}

func TestAStoreGoesOnWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "odd name?mode=memory&x=#1%20.db")
	for i := range 3 {
		b := openStore(t, Options{Path: path}, seams{})
		b.Closed(success(t, i))
		b.close()
	}
	if got := len(idsOf(t, path)); got != 3 {
		t.Errorf("the ledger has %d records, want 3", got)
	}
}

func TestNotEverybodyMayReadANewFile(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{}, seams{})
	info, err := os.Stat(b.path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o007 != 0 {
		t.Errorf("the file's mode is %v", mode)
	}
}

func TestAClosedStoreDropsAndCounts(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{Durability: Sync}, seams{})
	b.close()
	b.Closed(success(t, 1))
	if err := b.Flush(t.Context()); err == nil {
		t.Error("a closed ledger says that it has written")
	}
	b.close()
}

func TestReopeningNeedsNoOtherRegistry(t *testing.T) {
	t.Parallel()
	b := openStore(t, Options{}, seams{})
	second := Options{Path: filepath.Join(t.TempDir(), "b.db"), Registry: b.registry}
	if _, err := Open(second); err == nil || !strings.Contains(err.Error(), "close the other ledger first") {
		t.Errorf("two stores share a registry: %v", err)
	}
	b.close()
	s, err := Open(second)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestNothingSecretReachesTheFile holds the bytes of the file and its log against what
// a request carries. The engine's record has no field for it; this test would notice if
// the ledger found another way.
func TestNothingSecretReachesTheFile(t *testing.T) {
	t.Parallel()
	secrets := []string{"sk-live-4242424242", "tell me a secret", "the answer is 42"}
	b := openStore(t, Options{}, seams{})
	r, err := engine.ParseRecord(fmt.Appendf(nil,
		`{"request_id":"r1","at":"2026-03-01T12:00:00Z","caller":"team-a","authorization":%q,"prompt":%q,`+
			`"attempts":[{"seq":1,"channel":"openai","key":"main","secret":%q,"answer":%q,"class":"ok"}],"terminal":"success"}`,
		secrets[0], secrets[1], secrets[0], secrets[2]))
	if err != nil {
		t.Fatal(err)
	}
	b.Closed(r)
	b.flush()
	for _, suffix := range []string{"-wal", ""} {
		if suffix == "" {
			b.close() // moves the log into the file; reading it before would drop SQLite's locks
		}
		bytesOf, err := os.ReadFile(b.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(bytesOf, []byte("team-a")) {
			t.Errorf("the record isn't in fourgate.db%s: the test looks at the wrong bytes", suffix)
		}
		for _, s := range secrets {
			if bytes.Contains(bytesOf, []byte(s)) {
				t.Errorf("fourgate.db%s holds %q", suffix, s)
			}
		}
	}
}
