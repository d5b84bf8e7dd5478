package proxy_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestWholeAnswer(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(200, "application/json", wholeAnswer,
		"openai-processing-ms: 12", "x-ratelimit-remaining-requests: 9", "Set-Cookie: __cf=1", "Server: secret", "x-request-id: theirs"))
	g := setup{providers: []*provider{p}, auth: engine.AuthBearer, callers: true}.start(t)
	got := g.post(t, "/v1/chat/completions", wholeRequest, "Authorization: Bearer "+callerKey, "X-Request-Id: my-id.1",
		"OpenAI-Organization: org", "X-Fourgate-Attempt: 7", "Cookie: a=b", "Accept-Encoding: gzip", "X-Stainless-Lang: js")
	if got.status != 200 || got.body != wholeAnswer {
		t.Fatalf("got %d %q", got.status, got.body)
	}
	for name, want := range map[string]string{
		"X-Request-Id": "my-id.1", "Openai-Processing-Ms": "12", "X-Ratelimit-Remaining-Requests": "9",
		"X-Should-Retry": "false", "Set-Cookie": "", "Server": "", "Content-Type": "application/json", "X-Fourgate-Channel": "",
	} {
		if v := got.header.Get(name); v != want {
			t.Errorf("%s is %q, want %q", name, v, want)
		}
	}
	up := p.requests()[0]
	if up.method != "POST" || up.target != "/v1/chat/completions" || up.body != wholeRequest {
		t.Errorf("upstream got %+v", up)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer sk-upstream-secret", "X-Request-Id": "my-id.1", "X-Fourgate-Attempt": "1", "Openai-Organization": "", // the account is the gateway's
		"Cookie": "", "Accept-Encoding": "identity", "X-Stainless-Lang": "", "Content-Type": "application/json",
	} {
		if v := strings.Join(up.header.Values(name), "|"); v != want {
			t.Errorf("upstream's %s is %q, want %q", name, v, want)
		}
	}
	if rec := g.ledger.next(t); rec != "success 200 | ch1" {
		t.Errorf("record %q", rec)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	frames := []string{": ping\n\n", roleFrame, textFrame, moreFrame, stopFrame, doneFrame}
	p := newProvider(t, stream(frames...))
	g := setup{providers: []*provider{p}}.start(t)
	got := g.post(t, "/v1/chat/completions", streamRequest)
	if want := strings.Join(frames, ""); got.status != 200 || got.body != want || got.err != nil {
		t.Fatalf("got %d, %v, %s", got.status, got.err, cmp.Diff(want, got.body))
	}
	if v := got.header.Get("Content-Type"); v != "text/event-stream" {
		t.Errorf("content type %q", v)
	}
	if p.requests()[0].body != streamRequest {
		t.Errorf("upstream got body %q", p.requests()[0].body)
	}
	if rec := g.ledger.next(t); rec != "success 200 | ch1" {
		t.Errorf("record %q", rec)
	}
}

func TestPanicIsA500(t *testing.T) {
	t.Parallel()
	bad := func(*engine.Question) engine.Decision { panic("a defect") }
	p := newProvider(t, answer(503, "application/json", `{}`))
	g := setup{providers: []*provider{p}, policy: bad}.start(t)
	got := g.post(t, "/v1/messages", wholeRequest)
	if got.status != 500 || !strings.Contains(got.body, `"error_code":"fourgate_internal"`) || got.header.Get("Request-Id") == "" {
		t.Errorf("got %d %q", got.status, got.body)
	}
	if logs := g.logs.String(); !strings.Contains(logs, "a defect") || !strings.Contains(logs, got.header.Get("X-Request-Id")) || !strings.Contains(logs, "drive.go") {
		t.Errorf("the log doesn't lead to the defect: %s", logs)
	}
}

func TestPanicInAStreamEndsIt(t *testing.T) {
	t.Parallel()
	bad := func(*engine.Question) engine.Decision { panic("a defect") }
	p := newProvider(t, cutStream(textFrame))
	g := setup{providers: []*provider{p}, policy: bad}.start(t)
	got := g.post(t, "/v1/chat/completions", streamRequest)
	if got.err == nil || got.body != textFrame {
		t.Errorf("got %v %q", got.err, got.body)
	}
	if !strings.Contains(g.logs.String(), "a defect") {
		t.Error("the defect isn't in the log")
	}
	if rec := g.ledger.next(t); !strings.HasSuffix(rec, "| ch1 partial after_output") {
		t.Errorf("record %q", rec)
	}
	// The server goes on.
	if got := g.post(t, "/v1/chat/completions", strings.Replace(wholeRequest, model, "gpt-9", 1)); got.status != 404 {
		t.Errorf("got %d", got.status)
	}
}

func TestLargeWholeAnswerPasses(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10 << 10, 17 << 10, 100 << 10, 3 << 20} {
		body := strings.Replace(wholeAnswer, "Hello", strings.Repeat("x", size), 1)
		p := newProvider(t, answer(200, "application/json", body), answer(200, "application/json", wholeAnswer))
		g := setup{providers: []*provider{p}}.start(t)
		for _, want := range []string{body, wholeAnswer} {
			if got := g.post(t, "/v1/chat/completions", wholeRequest); got.status != 200 || got.body != want {
				t.Errorf("%d bytes: got %d with %d bytes", size, got.status, len(got.body))
			}
		}
	}
}

func TestOldHTTP(t *testing.T) {
	t.Parallel()
	p := newProvider(t, stream(textFrame, stopFrame, doneFrame))
	g := setup{providers: []*provider{p}}.start(t)
	got := g.raw(t, strings.Replace(rawPost("/v1/chat/completions", streamRequest), "HTTP/1.1", "HTTP/1.0", 1))
	if !strings.Contains(got, textFrame) || !strings.Contains(got, doneFrame) {
		t.Errorf("got %q", got)
	}
}

func TestSwapLeavesRunningRequestsAlone(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}, 1), make(chan struct{})
	slow := newProvider(t, func(c net.Conn, n int) bool {
		reached <- struct{}{}
		<-release
		return answer(503, "application/json", `{}`)(c, n)
	})
	old := newProvider(t, answer(200, "application/json", wholeAnswer))
	renewed := newProvider(t, answer(200, "application/json", strings.Replace(wholeAnswer, "Hello", "New", 1)))
	g := setup{providers: []*provider{slow, old}}.start(t)
	first := make(chan response, 1)
	go func() { first <- g.post(t, "/v1/chat/completions", wholeRequest) }()
	await(t, "the upstream call", reached)
	if err := g.server.Swap(setup{providers: []*provider{renewed}}.parts(t)); err != nil {
		t.Fatal(err)
	}
	if got := g.post(t, "/v1/chat/completions", wholeRequest); !strings.Contains(got.body, "New") {
		t.Errorf("after the swap: %d %q", got.status, got.body)
	}
	close(release)
	if got := <-first; got.body != wholeAnswer || len(old.requests()) != 1 {
		t.Errorf("the running request got %d %q", got.status, got.body)
	}
}

type observer struct {
	mu    sync.Mutex
	lines []string
}

func (o *observer) Observe(r *engine.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := r.Attempts()[len(r.Attempts())-1]
	o.lines = append(o.lines, fmt.Sprintf("%s failed=%v %s", last.Channel(), last.Failed(), r.Terminal()))
}

func TestObserverSeesEachStep(t *testing.T) {
	t.Parallel()
	bad, good := newProvider(t, answer(503, "application/json", `{}`)), newProvider(t, answer(200, "application/json", wholeAnswer))
	o := &observer{}
	g := setup{providers: []*provider{bad, good}, observer: o}.start(t)
	g.post(t, "/v1/chat/completions", wholeRequest)
	o.mu.Lock()
	defer o.mu.Unlock()
	want := []string{"ch1 failed=false ", "ch1 failed=true ", "ch2 failed=false ", "ch2 failed=false ", "ch2 failed=false success"}
	if diff := cmp.Diff(want, o.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStandingIsShown scrapes a proxy that is well.
func TestStandingIsShown(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(200, "application/json", wholeAnswer))
	g := setup{providers: []*provider{p}, auth: engine.AuthBearer}.start(t)
	shown := func() map[string]float64 {
		families, err := g.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if m.GetGauge() != nil {
					got[f.GetName()] = m.GetGauge().GetValue()
				}
			}
		}
		return got
	}
	want := map[string]float64{"fourgate_breaker_state": 0, "fourgate_key_cooling": 0, "fourgate_policy_info": 1, "fourgate_retry_budget_tokens": 1e6}
	if diff := cmp.Diff(want, shown()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhatIsOutForOneCallerIsShown, since the channel's own gauges don't show it.
func TestWhatIsOutForOneCallerIsShown(t *testing.T) {
	t.Parallel()
	bad, good := newProvider(t, answer(503, "application/json", `{}`)), newProvider(t, answer(200, "application/json", wholeAnswer))
	quarantines := func(*engine.Question) engine.Decision {
		return engine.Decision{Action: engine.Fallback, Effects: []engine.Effect{{Kind: engine.EffectQuarantineChannel, For: time.Hour, After: 2}}}
	}
	g := setup{providers: []*provider{bad, good}, callers: true, stranger: true, policy: quarantines}.start(t)
	for range 3 {
		g.post(t, "/v1/chat/completions", wholeRequest, "Authorization: Bearer "+callerKey)
	}
	if n := len(bad.requests()); n != 2 {
		t.Errorf("%d calls of the failing channel, want 2", n)
	}
	families, err := g.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		switch f.GetName() {
		case "fourgate_channel_out":
			t.Errorf("the channel is out for all: %v", f)
		case "fourgate_channel_out_callers":
			if m := f.GetMetric(); len(m) != 1 || m[0].GetGauge().GetValue() != 1 {
				t.Errorf("%v", f)
			}
			return
		}
	}
	t.Error("nothing shows that the channel is out for a caller")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	bad, good := newProvider(t, answer(503, "application/json", `{}`)), newProvider(t, answer(200, "application/json", wholeAnswer))
	g := setup{providers: []*provider{bad, good}}.start(t)
	g.post(t, "/v1/chat/completions", wholeRequest)
	g.post(t, "/v1/messages", `{"model":"gpt-9"}`)
	families, err := g.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			if m.GetGauge() != nil {
				continue // how things stand is another test's
			}
			got[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{
		"fourgate_requests_total{caller=anonymous,endpoint=openai.chat,group=g,terminal=success}":                1,
		"fourgate_request_duration_seconds{endpoint=openai.chat,group=g}":                                        1,
		"fourgate_attempts_total{action=first,channel=ch1,class=provider_transient,group=g,phase=before_output}": 1,
		"fourgate_attempts_total{action=fallback,channel=ch2,class=ok,group=g,phase=after_output}":               1,
		"fourgate_decisions_total{action=fallback,gate=none}":                                                    1,
		"fourgate_refusals_total{code=model_not_found,endpoint=anthropic.messages}":                              1,
		"fourgate_admission_refusals_total{caller=anonymous,code=model_not_found}":                               1,
		"fourgate_policy_eval_seconds{}":                                                                         1,
		"fourgate_panics_total{}":                                                                                0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
