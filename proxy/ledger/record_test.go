package ledger

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/fourgate-dev/fourgate/engine"
)

// arrival is when the test's requests arrive; each of them adds some milliseconds.
var arrival = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// failedAttempt and openAttempt are attempts as the public JSON writes them.
func failedAttempt(seq int, channel, class string) string {
	return fmt.Sprintf(`{"seq":%d,"group":"gpt-4o","channel":%q,"provider":"openai","key":"main",`+
		`"model":"gpt-4o-2024-08-06","endpoint":"openai.chat","action":"first","status":503,"class":%q,`+
		`"reason":"overloaded","scope":"channel","phase":"before_headers","completion":"none",`+
		`"output_started":false,"cancelled":false,"timing_ms":{"started":0.2,"connected":0.4,"sent":0.5,"headers":9,"ended":9.5},`+
		`"usage":null,"cost_usd":null,"decision":{"action":"fallback","channel":"azure-east","reason":"provider_overloaded",`+
		`"rule":"policies/decision.rego:31","gates":{"failure_class":"pass","response_phase":"pass","idempotency":"pass",`+
		`"attempt_budget":"pass"},"delay_ms":0,"interlock":null}}`, seq, channel, class)
}

func openAttempt(seq int, channel string) string {
	return fmt.Sprintf(`{"seq":%d,"group":"gpt-4o","channel":%q,"provider":"openai","key":"main",`+
		`"model":"gpt-4o-2024-08-06","endpoint":"openai.chat","action":"first","status":null,"class":null,`+
		`"reason":null,"scope":null,"phase":"before_headers","completion":null,"output_started":false,`+
		`"cancelled":false,"timing_ms":{"started":0.2},"usage":null,"cost_usd":null,"decision":null}`, seq, channel)
}

func goodAttempt(seq int, channel string) string {
	return fmt.Sprintf(`{"seq":%d,"group":"gpt-4o","channel":%q,"provider":"openai","key":"main",`+
		`"model":"gpt-4o-2024-08-06","endpoint":"openai.chat","action":"first","status":200,"class":"ok",`+
		`"reason":null,"scope":null,"phase":"after_output","completion":null,"output_started":true,`+
		`"cancelled":false,"timing_ms":{"started":0.2,"connected":0.4,"sent":0.5,"headers":9,"first_byte":9.1,"committed":9.2,"ended":30.25},`+
		`"usage":{"input_tokens":812,"output_tokens":96,"cached_input_tokens":null},"cost_usd":0.00299,"decision":null}`, seq, channel)
}

// requestID is the i-th id in the form of those that the proxy makes.
func requestID(i int) string { return fmt.Sprintf("01J8Z3V%019d", i) }

// record makes the record of the i-th request. An empty terminal leaves it running.
func record(t testing.TB, i int, terminal string, attempts ...string) *engine.Record {
	t.Helper()
	return recordOf(t, requestID(i), arrival.Add(time.Duration(i)*time.Millisecond), terminal, attempts...)
}

func recordOf(t testing.TB, id string, at time.Time, terminal string, attempts ...string) *engine.Record {
	t.Helper()
	status, end := 0, "null"
	if terminal != "" {
		status, end = 200, `"`+terminal+`"`
	}
	r, err := engine.ParseRecord(fmt.Appendf(nil, `{"request_id":%q,"at":%q,"caller":"team-a",`+
		`"contract":{"model":"gpt-4o-2024-08-06","endpoint":"openai.chat"},"sdk_retry":0,"attempts":[%s],`+
		`"terminal":%s,"status":%d,"elapsed_ms":31}`,
		id, at.Format(time.RFC3339Nano), strings.Join(attempts, ","), end, status))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// success makes the i-th request with one good attempt.
func success(t testing.TB, i int) *engine.Record {
	t.Helper()
	return record(t, i, "success", goodAttempt(1, "openai"))
}

// bench is a store in a new directory with everything that a test looks at.
type bench struct {
	*Store
	t        testing.TB
	path     string
	log      *lockedBuffer
	registry *prometheus.Registry
}

// openStore opens a store that the test's end closes.
func openStore(t testing.TB, options Options, seams seams) *bench {
	t.Helper()
	b := &bench{t: t, path: options.Path, log: &lockedBuffer{}, registry: prometheus.NewRegistry()}
	if b.path == "" {
		b.path = filepath.Join(t.TempDir(), "fourgate.db")
	}
	options.Path, options.Registry = b.path, b.registry
	options.Logger = slog.New(slog.NewTextHandler(b.log, nil))
	s, err := open(options, seams)
	if err != nil {
		t.Fatal(err)
	}
	b.Store = s
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = s.Close(ctx) // tests that care have closed it already
	})
	return b
}

func (b *bench) flush() {
	b.t.Helper()
	if err := b.Flush(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) close() {
	b.t.Helper()
	if err := b.Store.Close(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// count reads one metric.
func (b *bench) count(name string) float64 {
	b.t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			if f.GetType() == dto.MetricType_GAUGE {
				return m.GetGauge().GetValue()
			}
			return m.GetCounter().GetValue()
		}
	}
	b.t.Fatalf("there is no metric %s", name)
	return 0
}

// ids returns the ids in the file, the newest first, those of running requests with a
// star.
func (b *bench) ids() []string {
	b.t.Helper()
	return idsOf(b.t, b.path)
}

func idsOf(t testing.TB, path string) []string {
	t.Helper()
	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var ids []string
	for rec, err := range r.All(t.Context(), Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		id := rec.RequestID()
		if rec.Terminal() == engine.TerminalNone {
			id += "*"
		}
		ids = append(ids, id)
	}
	return ids
}

// eventually waits until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// lockedBuffer is a log that a test reads while the store writes.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// lines returns the log's lines.
func (b *lockedBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSuffix(b.buf.String(), "\n"), "\n")
}
