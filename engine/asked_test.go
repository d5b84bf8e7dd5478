package engine_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

// sameFailure compares failures, whose fields are private.
var sameFailure = cmp.Comparer(func(a, b engine.Failure) bool { return a == b })

// remembered is the question that a record of q's request gives back.
func remembered(q engine.Question) engine.Question {
	if q.Idempotency.Key != "" {
		q.Idempotency.Key = "given"
	}
	for _, d := range []*time.Duration{&q.Elapsed, &q.Remaining, &q.MinUseful, &q.Backoff} {
		*d = d.Truncate(time.Microsecond)
	}
	if wait, given := q.Failure.RetryAfter().Get(); given {
		f := q.Failure
		q.Failure = engine.MakeFailure(f.Class(), f.Scope(), f.Reason(), engine.WaitOf(wait.Truncate(time.Microsecond)), f.Status(), f.Phase(), f.Completion())
	}
	return q
}

// misremembered says which question of a trace its record doesn't give back, if any.
func misremembered(asked []enginetest.Asked, r *engine.Record) string {
	decided := 0
	for i, a := range r.Attempts() {
		d, was := a.Decision()
		q, ok := r.Question(i)
		if ok != was {
			return "a decision without its question"
		}
		if !was {
			continue
		}
		want := remembered(asked[decided].Question)
		q.Failure, want.Failure = unfaulted(q.Failure), unfaulted(want.Failure)
		if len(want.Fallback) == 0 {
			want.Fallback = nil
		}
		// The record is read with UTC, as it was written.
		if !q.Now.Equal(want.Now) {
			return fmt.Sprintf("attempt %d was asked about at %s, not %s", i+1, want.Now, q.Now)
		}
		q.Now, want.Now = time.Time{}, time.Time{}
		if diff := cmp.Diff(want, q, sameFailure); diff != "" {
			return fmt.Sprintf("the question after attempt %d comes back otherwise:\n%s", i+1, diff)
		}
		if fault := asked[decided].Decision.Fault; d.Fault() != fault || (fault != "") != (d.Reason().String() == "policy_error") {
			return fmt.Sprintf("the decision with fault %q is recorded with %q and reason %s", fault, d.Fault(), d.Reason())
		}
		if engine.CellOf(&q) != engine.CellOf(&want) {
			return "a question changes its cell"
		}
		decided++
	}
	if decided != len(asked) {
		return fmt.Sprintf("%d decisions are recorded of %d", decided, len(asked))
	}
	return ""
}

// unfaulted is a failure without the classifier's fault, which no policy sees.
func unfaulted(f engine.Failure) engine.Failure {
	return engine.MakeFailure(f.Class(), f.Scope(), f.Reason(), f.RetryAfter(), f.Status(), f.Phase(), f.Completion())
}

// TestRecordKeepsNoIdempotencyKey writes what callers may put into the header anywhere.
func TestRecordKeepsNoIdempotencyKey(t *testing.T) {
	t.Parallel()
	p := play{
		outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{fallback},
		verdict: engine.Verdict{Class: engine.ClassProviderTransient, Scope: engine.ScopeChannel},
		request: engine.Request{Idempotency: engine.Idempotency{Key: "patient 4711", ReplaySafe: true, Effects: engine.EffectsNone}},
	}
	tr := p.run(t, catalog(t, spec(2)))
	text := tr.Record.AppendJSON(nil)
	if bytes.Contains(text, []byte("4711")) || !bytes.Contains(text, []byte(`"idempotency_key":true`)) {
		t.Errorf("the record tells the key, or not that there was one: %s", text)
	}
	if q, ok := tr.Record.Question(0); !ok || q.Idempotency.Key != "given" {
		t.Errorf("got %+v, %v", q.Idempotency, ok)
	}
}

// TestRecordIsBounded asks for more names and effects than a record keeps.
func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	many := spec(26)
	for i := range 20 {
		ch := many.Groups[0].Channels[0]
		ch.Name = fmt.Sprintf("more-%d", i)
		many.Groups[0].Channels = append(many.Groups[0].Channels, ch)
	}
	d := fallback
	for range 20 {
		d.Effects = append(d.Effects, engine.Effect{Kind: engine.EffectCoolKey, For: 1 << 62})
	}
	p := play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{d}}
	tr := p.run(t, catalog(t, many))
	q, _ := tr.Record.Question(0)
	got, _ := tr.Record.Attempts()[0].Decision()
	if len(q.Fallback) != 32 || len(got.Effects()) != 8 {
		t.Errorf("the record keeps %d names and %d effects", len(q.Fallback), len(got.Effects()))
	}
	if got.Effects()[0].For != 30*24*time.Hour {
		t.Errorf("a key is said to cool for %s", got.Effects()[0].For)
	}
}

// TestOldRecordsAreRead reads what earlier versions wrote.
func TestOldRecordsAreRead(t *testing.T) {
	t.Parallel()
	const old = `{"request_id":"r","at":"2026-03-01T12:00:00Z","attempts":[{"seq":1,"class":"unknown","scope":"none",` +
		`"decision":{"action":"abort","channel":null,"reason":null,"rule":null,"gates":{},"delay_ms":0,"interlock":null,"policy_fault":"conflict"}}]}`
	r, err := engine.ParseRecord([]byte(old))
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := r.Attempts()[0].Decision(); !ok || d.Fault() != "conflict" {
		t.Errorf("got %+v, %v", d, ok)
	}
	for _, i := range []int{-1, 0, 1} {
		if q, ok := r.Question(i); ok {
			t.Errorf("attempt %d has the question %+v", i, q)
		}
	}
}

// TestFaultAbortsWhateverElseIsSaid gives decisions that nobody can have made.
func TestFaultAbortsWhateverElseIsSaid(t *testing.T) {
	t.Parallel()
	d := fallback
	d.Fault = "mistyped"
	d.Effects = []engine.Effect{{Kind: engine.EffectQuarantineChannel, For: time.Hour}}
	p := play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{d}}
	c := catalog(t, spec(2))
	tr := p.run(t, c)
	got, _ := tr.Record.Attempts()[0].Decision()
	if len(tr.Sent) != 1 || got.Action() != engine.Abort || got.Reason().String() != "policy_error" || got.Fault() != "mistyped" {
		t.Errorf("%d attempts after %s: %s, %s", len(tr.Sent), got.Action(), got.Reason(), got.Fault())
	}
	if tr.Finish.Reply.Kind != engine.ReplyUpstream {
		t.Errorf("the caller gets reply kind %d, not the upstream's own error", tr.Finish.Reply.Kind)
	}
	if bar := p.standing.Report(tr.Ended, c.Groups()[0].Channels()[0]).Bar; bar != engine.BarNone {
		t.Errorf("the channel is %s", bar)
	}
}

// FuzzParseRecord reads anything, and wants what it has read to stay as it is.
func FuzzParseRecord(f *testing.F) {
	manual, err := os.ReadFile("../docs/ledger.md")
	if err != nil {
		f.Fatal(err)
	}
	_, example, _ := strings.Cut(string(manual), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	f.Add(example)
	f.Add(`{"at":"2026-03-01T12:00:00Z","attempts":[{"decision":{"action":"retry","policy_fault":"x","delay_ms":1e300,"asked":{"now":"2026-03-01T12:00:00.5+02:00","retry_after_ms":-1,"elapsed_ms":0.0005,"fallback":["a","b"]},"effects":[{"kind":"cool_key","for_ms":-1.5},{"kind":"?"}]}}]}`)
	f.Add(`{"at":"0000-01-01T00:00:00+01:00","attempts":[{"decision":{"asked":{"now":"0000-01-01T00:00:00+01:00"}}}]}`) // the year -1 in UTC
	f.Fuzz(func(t *testing.T, text string) {
		r, err := engine.ParseRecord([]byte(text))
		if err != nil {
			return
		}
		once := r.AppendJSON(nil)
		again, err := engine.ParseRecord(once)
		if err != nil {
			t.Fatalf("cannot read %s again: %v", once, err)
		}
		if twice := again.AppendJSON(nil); !bytes.Equal(once, twice) {
			t.Fatalf("the record changes with each reading:\n%s\n%s", once, twice)
		}
		for i := range r.Attempts() {
			r.Question(i)
		}
	})
}
