package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

var update = flag.Bool("update", false, "write the golden files anew")

// ends runs a command to its end and returns what it printed.
func ends(t *testing.T, code int, args ...string) string {
	t.Helper()
	return endsWith(t, nil, code, args...)
}

func endsWith(t *testing.T, vars map[string]string, code int, args ...string) string {
	t.Helper()
	c := startAt(t, new(movable), vars, args...)
	got := <-c.done
	c.done <- got
	if got != code {
		t.Fatalf("%s ended with %d, want %d:\n%s%s", strings.Join(args, " "), got, code, c.stdout, c.stderr)
	}
	return c.stdout.String() + c.stderr.String()
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// outage serves six requests whose fates the upstreams' scripts fix: one goes well, two
// are saved by another channel, one is the caller's own mistake, one finds no channel that
// works, one is cut after its output.
func outage(t *testing.T, config string) *rig {
	t.Helper()
	r := newRig(t, config, "", "a", "b", "c")
	r.script("a", "ok, status=503, status=503, status=400, status=503, cut after=3")
	r.script("b", "ok, status=503, status=503")
	r.script("c", "ok, status=503")
	for _, c := range []struct {
		id     string
		stream bool
		status int
	}{{"well", false, 200}, {"second", false, 200}, {"third", false, 200}, {"mistake", false, 400}, {"nobody", false, 503}, {"cut", true, 200}} {
		got := post(t, r.base+"/v1/chat/completions", chat("model-1", c.stream), "X-Request-Id", c.id)
		if got.status != c.status {
			t.Fatalf("request %s got %d: %s", c.id, got.status, got.body)
		}
		r.record(c.id)
	}
	if calls := r.calls(); calls != "a=6 b=3 c=2" {
		t.Fatalf("the upstreams were called %s", calls)
	}
	return r
}

// replayed is what policy replay -json says, as far as the tests look at it.
type replayed struct {
	Requests, Decisions, Changed, Hypothetical, Redirected int

	AttemptsSaved   int `json:"attempts_saved"`
	AttemptsAdded   int `json:"attempts_added"`
	SuccessesLost   int `json:"successes_lost"`
	SuccessesAtRisk int `json:"successes_at_risk"`
	CostsUnknown    int `json:"costs_unknown"`

	Skipped      map[string]int
	PolicyErrors map[string]int `json:"policy_errors"`

	Changes []struct {
		RequestID   string `json:"request_id"`
		Seq         int
		From, To    string
		LostSuccess bool `json:"lost_success"`
		Cell        struct{ Class, Budget string }
	}
}

// TestReplayAnOutage asks other policies about requests that a proxy has served, and that
// it still has open.
func TestReplayAnOutage(t *testing.T) {
	t.Parallel()
	r := outage(t, trio)
	f := func(source string, want replayed, flags ...string) replayed {
		t.Helper()
		text := endsWith(t, r.vars, exitOK, append([]string{"policy", "replay", "-ledger", r.ledger, "-json", source}, flags...)...)
		var got replayed
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if len(got.Changes) != got.Changed {
			t.Errorf("%s: %d changes are listed, %d counted", source, len(got.Changes), got.Changed)
		}
		all := got
		got.Changes, got.Skipped, got.PolicyErrors = nil, nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %v: %s", source, flags, diff)
		}
		return all
	}
	stop := writeFile(t, "stop.rego", "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": \"never_again\"}\n")
	retry := writeFile(t, "retry.rego", "package fourgate\n\ndecision := {\"action\": \"retry\", \"reason\": \"once_more\"}\n")
	broken := writeFile(t, "broken.rego", "package fourgate\n\ndecision := {\"action\": 1}\n")

	// second, third twice, mistake, nobody three times, cut.
	f("embedded", replayed{Requests: 5, Decisions: 8})
	f("embedded", replayed{Requests: 5, Decisions: 8}, "-c", r.config)
	f("embedded", replayed{Requests: 5, Decisions: 8}, "-c", r.config, "-group", "m")
	f("embedded", replayed{}, "-until", "2001-01-01T00:00:00Z")
	f("embedded", replayed{Requests: 5, Decisions: 8}, "-since", "1h")
	f("embedded", replayed{}, "-group", "another")
	strict := f(stop, replayed{Requests: 5, Decisions: 8, Changed: 5, Hypothetical: 2, AttemptsSaved: 5, SuccessesLost: 2, CostsUnknown: 5})
	f(broken, replayed{Requests: 5, Decisions: 8, Changed: 5, Hypothetical: 2, AttemptsSaved: 5, SuccessesLost: 2, CostsUnknown: 5})
	// A retry instead of each fallback, and one after the mistake; after output, and
	// with the budget spent, the interlocks hold it.
	f(retry, replayed{Requests: 5, Decisions: 8, Changed: 6, Hypothetical: 2, AttemptsAdded: 1, Redirected: 3, SuccessesAtRisk: 2})

	loop, soon := writeFile(t, "endless.rego", endless), writeFile(t, "soon.hcl", soonLate)
	early := ends(t, exitFailure, "policy", "replay", "-c", soon, "-ledger", r.ledger, loop)
	if !strings.HasPrefix(early, "fourgate: stopped after 3 questions without an answer in time") {
		t.Errorf("an endless policy: %s", early)
	}
	early, _, _ = strings.Cut(ends(t, exitFailure, "policy", "replay", "-c", soon, "-ledger", r.ledger, "-json", loop), "\n")
	if !json.Valid([]byte(early)) || !strings.Contains(early, `"stopped":"stopped after 3 questions`) {
		t.Errorf("an endless policy: %s", early)
	}

	lost := map[string]string{}
	for _, c := range strict.Changes {
		if c.From != "fallback" || c.To != "abort" || c.Cell.Class != "provider_transient" {
			t.Errorf("change %+v", c)
		}
		if c.LostSuccess {
			lost[c.RequestID] = c.Cell.Budget
		}
	}
	if want := map[string]string{"second": "left", "third": "left"}; !maps.Equal(lost, want) {
		t.Errorf("lost successes %v, want %v", lost, want)
	}

	text := ends(t, exitOK, "policy", "replay", "-ledger", r.ledger, stop)
	const golden = "testdata/replay.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Error(diff)
	}
}

func TestReplayIsUsedRightly(t *testing.T) {
	t.Parallel()
	f := func(code int, says string, args ...string) {
		t.Helper()
		if text := ends(t, code, append([]string{"policy", "replay"}, args...)...); !strings.Contains(text, says) {
			t.Errorf("%v says %q, want %q", args, text, says)
		}
	}
	f(exitUsage, "name the ledger: -c FILE", "embedded")
	f(exitUsage, "wrong number of arguments: 0\nUsage: fourgate policy replay", "-ledger", "x.db")
	f(exitUsage, "how long ago", "-ledger", "x.db", "-since", "yesterday", "embedded")
	f(exitUsage, "not in the past", "-ledger", "x.db", "-until", "0s", "embedded")
	f(exitUsage, "nothing lies between -since 1h0m0s and -until 2h0m0s", "-ledger", "x.db", "-since", "1h", "-until", "2h", "embedded")
	f(exitFailure, "there is no such file", "-ledger", "none.db", "embedded")
	f(exitFailure, "cannot find policy", "-ledger", "none.db", "nowhere.rego")
	broken := writeFile(t, "broken.rego", "package fourgate\n\ndecision := \n")
	f(exitFailure, "broken.rego", "-ledger", "none.db", broken)
}

// withCandidate is the configuration of three channels with a candidate policy that never
// goes on.
func withCandidate(t *testing.T) string {
	t.Helper()
	base, err := os.ReadFile(trio)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"careful.rego": "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": \"careful\"}\n",
		"fg.hcl":       string(base) + "\npolicy {\n  shadow {\n    paths = [\"careful.rego\"]\n  }\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "fg.hcl")
}

// TestShadowReachesTheLedger serves an outage with a candidate policy beside the one that
// decides, and reads from the ledger where it disagrees.
func TestShadowReachesTheLedger(t *testing.T) {
	t.Parallel()
	r := outage(t, withCandidate(t))
	if code := r.proxy.end(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, r.proxy.stderr)
	}

	var got struct {
		Total         int
		Disagreements []struct {
			RequestID string `json:"request_id"`
			Seq       int
			Differs   string
			From, To  struct{ Action, Reason string }
		}
		Cells []struct {
			Cell     struct{ Class string }
			From, To string
			Count    int
		}
	}
	text := ends(t, exitOK, "ledger", "disagreements", "-ledger", r.ledger, "-json", "-since", "1h")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	actions, sum := map[string]int{}, 0
	for _, d := range got.Disagreements {
		if d.Differs == "action" {
			actions[d.RequestID]++
			if d.From.Action != "fallback" || d.To.Action != "abort" || d.To.Reason != "careful" {
				t.Errorf("disagreement %+v", d)
			}
		}
	}
	if want := map[string]int{"second": 1, "third": 2, "nobody": 2}; !maps.Equal(actions, want) {
		t.Errorf("disagreements about %v, want %v", actions, want)
	}
	for _, c := range got.Cells {
		sum += c.Count
	}
	if sum != got.Total || got.Total != len(got.Disagreements) {
		t.Errorf("%d disagreements in cells, %d listed, %d in all", sum, len(got.Disagreements), got.Total)
	}

	list := ends(t, exitOK, "ledger", "list", "-ledger", r.ledger, "-disagreed")
	for id, in := range map[string]bool{"well": false, "second": true, "third": true, "nobody": true} {
		if strings.Contains(list, id) != in {
			t.Errorf("request %s is listed: %v, want %v\n%s", id, !in, in, list)
		}
	}
	shown := ends(t, exitOK, "ledger", "show", "-ledger", r.ledger, "second")
	if !strings.Contains(shown, "decision: fallback to b") || !strings.Contains(shown, "candidate: abort: careful [") {
		t.Errorf("the timeline lacks the candidate's answer:\n%s", shown)
	}
	drawn := ends(t, exitOK, "ledger", "disagreements", "-ledger", r.ledger)
	if !strings.Contains(drawn, "fallback") || !strings.Contains(drawn, "careful") {
		t.Errorf("the table is\n%s", drawn)
	}
}

func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := func(text, want string) {
		t.Helper()
		var m moment
		got := "refused"
		if err := m.Set(text); err == nil {
			got = m.at(now).Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	f("24h", "2026-02-28T12:00:00Z")
	f("1m30s", "2026-03-01T11:58:30Z")
	f("2026-01-31T06:00:00+01:00", "2026-01-31T06:00:00+01:00")
	f("0s", "refused")
	f("-1h", "refused")
	f("2026-01-31", "refused")
	f("", "refused")
}

// BenchmarkReplay asks the default policy again about ten thousand decisions.
func BenchmarkReplay(b *testing.B) {
	const requests = 5000
	path := filepath.Join(b.TempDir(), "fourgate.db")
	store, err := ledger.Open(ledger.Options{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		b.Fatal(err)
	}
	for i := range requests {
		rec, err := engine.ParseRecord([]byte(strings.Replace(string(text), "third", fmt.Sprintf("request-%d", i), 1)))
		if err != nil {
			b.Fatal(err)
		}
		store.Closed(rec)
	}
	if err := store.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		e := &env{now: time.Now, args: []string{"policy", "replay", "-ledger", path, "embedded"}, stdin: strings.NewReader(""),
			stdout: io.Discard, stderr: os.Stderr, lookup: os.LookupEnv}
		if code := run(b.Context(), e); code != exitOK {
			b.Fatalf("exit code %d", code)
		}
	}
	b.ReportMetric(2*requests*float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
