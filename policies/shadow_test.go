package policies

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
)

// deciding is a policy that is a function.
type deciding func(q *engine.Question) engine.Decision

func (f deciding) Decide(q *engine.Question) engine.Decision { return f(q) }

func always(d engine.Decision) engine.Policy {
	return deciding(func(*engine.Question) engine.Decision { return d })
}

// heard is a sink that a test can read.
type heard struct {
	mu   sync.Mutex
	list []engine.Disagreement
}

func (h *heard) Disagreed(d engine.Disagreement) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, d)
}

func (h *heard) all() []engine.Disagreement {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]engine.Disagreement(nil), h.list...)
}

// shadowRig is a Shadows with what it tells and counts.
type shadowRig struct {
	*Shadows
	heard    heard
	registry *prometheus.Registry
}

func openShadows(t *testing.T, queue int) *shadowRig {
	t.Helper()
	r := &shadowRig{registry: prometheus.NewRegistry()}
	r.Shadows = newShadows(&r.heard, queue)
	r.registry.MustRegister(r.Shadows)
	t.Cleanup(r.Close)
	return r
}

// counted is a counter's value, of the series whose label values are given in order of
// the labels' names.
func (r *shadowRig) counted(t *testing.T, name string, values ...string) float64 {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var got []string
			for _, l := range m.GetLabel() {
				got = append(got, l.GetValue())
			}
			if f.GetName() == "fourgate_policy_shadow_"+name && strings.Join(got, " ") == strings.Join(values, " ") {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func (r *shadowRig) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(patient); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%s: it never came", what)
		}
	}
}

func (r *shadowRig) awaitAsked(t *testing.T, n float64) {
	t.Helper()
	r.await(t, "the candidate", func() bool { return r.counted(t, "asked_total") >= n })
}

func TestShadowTellsOfDisagreements(t *testing.T) {
	t.Parallel()
	r := openShadows(t, 8)
	next := engine.Decision{Action: engine.Fallback, Reason: reasonOf(t, "overloaded"), Rule: "live.rego:3"}
	stop := engine.Decision{Reason: reasonOf(t, "careful"), Rule: "candidate.rego:5"}
	q := failed(t)
	q.Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, candidate := range []engine.Policy{always(next), always(stop), always(next)} {
		if d := r.Beside(always(next), candidate).Decide(&q); d.Action != engine.Fallback || d.Rule != "live.rego:3" {
			t.Errorf("the decision is %+v, not the live one", d)
		}
	}
	q.RequestID, q.Fallback[0] = "changed", "changed" // the request goes on
	r.awaitAsked(t, 3)
	want := []engine.Disagreement{{
		RequestID: "r1", Seq: 1, At: q.Now, Group: q.Group, Cell: engine.CellOf(&q),
		From: engine.AnswerOf(next), To: engine.AnswerOf(stop),
	}}
	if diff := cmp.Diff(want, r.heard.all(), cmp.AllowUnexported(engine.Wait{}, engine.Reason{})); diff != "" {
		t.Error(diff)
	}
	// budget, class, completion, from, phase, replay_safe, to
	if n := r.counted(t, "disagreements_total", "left", "provider_transient", q.Failure.Completion().String(), "fallback", q.Failure.Phase().String(), "true", "abort"); n != 1 {
		t.Errorf("%v disagreements of this cell are counted", n)
	}
}

// What a policy calls a channel that isn't there may be anything, a caller's key for one,
// and is neither kept nor a difference.
func TestShadowKeepsNoNamesOfPolicies(t *testing.T) {
	t.Parallel()
	r := openShadows(t, 8)
	to := func(channel string) engine.Policy {
		return always(engine.Decision{Action: engine.Fallback, Reason: reasonOf(t, "odd"), Channel: channel})
	}
	q := failed(t)
	for _, candidate := range []string{"a caller's key", q.Fallback[0]} {
		r.Beside(to("another of its keys"), to(candidate)).Decide(&q)
	}
	r.awaitAsked(t, 2)
	all := r.heard.all()
	if len(all) != 1 || all[0].From.Channel != noChannel || all[0].To.Channel != q.Fallback[0] {
		t.Errorf("heard %+v", all)
	}
}

// TestShadowThatHangs asks a thousand questions beside a candidate that never answers.
func TestShadowThatHangs(t *testing.T) {
	t.Parallel()
	const queue, questions = 4, 1000
	r := openShadows(t, queue)
	asked, release := make(chan struct{}), make(chan struct{})
	p := r.Beside(always(engine.Decision{Action: engine.Retry}), deciding(func(*engine.Question) engine.Decision {
		asked <- struct{}{}
		<-release
		return engine.Decision{}
	}))
	q := failed(t)
	p.Decide(&q)
	<-asked
	for range questions {
		if d := p.Decide(&q); d.Action != engine.Retry {
			t.Fatalf("decision %+v", d)
		}
	}
	if n := r.counted(t, "dropped_total"); n != questions-queue {
		t.Errorf("%v of %d questions were dropped, want all but the %d of the queue", n, questions, queue)
	}
	closed := make(chan struct{})
	go func() { r.Close(); close(closed) }()
	<-r.quit
	select {
	case <-closed:
		t.Error("closing didn't wait for the candidate")
	default:
	}
	close(release)
	<-closed
	if n := len(r.heard.all()); n != 1 {
		t.Errorf("%d disagreements were told, want the one that was under way", n)
	}
	if d := p.Decide(&q); d.Action != engine.Retry {
		t.Errorf("after closing the decision is %+v", d)
	}
}

// TestShadowThatFails counts what candidates do wrong, and goes on.
func TestShadowThatFails(t *testing.T) {
	t.Parallel()
	r := openShadows(t, 8)
	q := failed(t)
	for _, candidate := range []engine.Policy{
		deciding(func(*engine.Question) engine.Decision { panic("candidate") }),
		always(engine.Decision{Fault: faultTimeout}),
		load(t, Options{}, "package fourgate\n\ndecision := {\"action\": 7}\n"),
		always(engine.Decision{}),
	} {
		if d := r.Beside(always(engine.Decision{}), candidate).Decide(&q); d.Fault != "" {
			t.Errorf("the decision is %+v", d)
		}
	}
	r.awaitAsked(t, 4)
	for kind, want := range map[string]float64{"panic": 1, "timeout": 1, "mistyped": 1} {
		if n := r.counted(t, "errors_total", kind); n != want {
			t.Errorf("%v errors of kind %s, want %v", n, kind, want)
		}
	}
	var faults []string
	for _, d := range r.heard.all() {
		faults = append(faults, d.To.Fault+" "+d.From.Differs(d.To).String())
	}
	if diff := cmp.Diff([]string{"error fault", "timeout fault", "mistyped fault"}, faults); diff != "" {
		t.Error(diff)
	}
}

// routing is a policy that also answers before the first attempt.
type routing struct{ engine.Policy }

func (routing) Route(*engine.RouteQuestion) engine.RouteAnswer {
	return engine.RouteAnswer{Rule: "live.rego:1"}
}

func TestShadowLeavesRoutesAlone(t *testing.T) {
	t.Parallel()
	r := openShadows(t, 1)
	plain, with := always(engine.Decision{}), routing{always(engine.Decision{})}
	if p := r.Beside(with, plain); !p.HasRoute() || p.Route(&engine.RouteQuestion{}).Rule != "live.rego:1" {
		t.Error("the live policy's route is lost")
	}
	if p := r.Beside(plain, with); p.HasRoute() || p.Route(&engine.RouteQuestion{}).Rule != "" {
		t.Error("the candidate was asked about routes")
	}
}

// BenchmarkShadowed is what a request pays for a candidate: a copy of its question.
func BenchmarkShadowed(b *testing.B) {
	s := NewShadows(nil)
	defer s.Close()
	p := s.Beside(always(engine.Decision{}), always(engine.Decision{}))
	q := failed(b)
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(&q)
	}
}
