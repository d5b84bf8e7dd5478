package proxy_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

var complete = engine.Hold{Complete: true, Max: 1 << 20}

// What breaks a stream that is held to its end falls back, wherever it breaks.
func TestHeldStreamFallsBackFromItsMiddle(t *testing.T) {
	t.Parallel()
	healthy := []string{roleFrame, textFrame, moreFrame, stopFrame, doneFrame}
	for name, c := range map[string]struct {
		first  script
		record string
	}{
		"cut":             {cutStream(roleFrame, textFrame, moreFrame), "provider_transient before_output"},
		"no end mark":     {stream(roleFrame, textFrame), "provider_transient before_output"},
		"error":           {stream(textFrame, errorFrame, doneFrame), "provider_transient before_output"},
		"cut in a frame":  {cutStream(textFrame, moreFrame[:20]), "provider_transient before_output"},
		"malformed chunk": {raw(streamHead + chunk(textFrame) + "no size\r\n"), "provider_transient before_output"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := setup{providers: []*provider{newProvider(t, c.first), newProvider(t, stream(healthy...))}, hold: complete}.start(t)
			got := g.post(t, chatPath, streamRequest)
			if got.status != 200 || got.body != strings.Join(healthy, "") || got.err != nil {
				t.Errorf("got %d %v %q", got.status, got.err, got.body)
			}
			if rec, want := g.ledger.next(t), "success 200 | ch1 "+c.record+" | ch2"; rec != want {
				t.Errorf("record %q, want %q", rec, want)
			}
		})
	}
}

func TestHeldStreamFailsWithAStatus(t *testing.T) {
	t.Parallel()
	p := newProvider(t, cutStream(textFrame))
	g := setup{providers: []*provider{p, p}, hold: complete}.start(t)
	if got := g.post(t, chatPath, streamRequest); got.status != 503 || !strings.Contains(got.body, "fourgate_exhausted") || strings.Contains(got.body, "Hel") {
		t.Errorf("got %d %q", got.status, got.body)
	}
}

func TestHeldStreamCommitsAtItsBound(t *testing.T) {
	t.Parallel()
	p := newProvider(t, cutStream(textFrame, moreFrame, moreFrame))
	g := setup{providers: []*provider{p, p}, hold: engine.Hold{Complete: true, Max: int64(len(textFrame) + 1)}}.start(t)
	got := g.post(t, chatPath, streamRequest)
	if !strings.HasPrefix(got.body, textFrame+moreFrame) || !strings.Contains(got.body, "upstream_stream_broken") {
		t.Errorf("got %q", got.body)
	}
	if rec := g.ledger.next(t); rec != "partial 200 | ch1 partial after_output" {
		t.Errorf("record %q", rec)
	}
}

// The gate's limit commits nothing of a stream that is held, and moves on if it is to.
func TestHeldStreamOutlastsTheGate(t *testing.T) {
	t.Parallel()
	limits := engine.Limits{Connect: time.Second, Headers: time.Second, Gate: 20 * time.Millisecond, Idle: 5 * time.Second}
	release := make(chan struct{})
	slow := func(c net.Conn, n int) bool {
		_, _ = io.WriteString(c, streamHead+chunk(roleFrame))
		<-release
		_, err := io.WriteString(c, chunk(textFrame)+chunk(stopFrame+doneFrame)+"0\r\n\r\n")
		return err == nil
	}
	second := newProvider(t, stream(moreFrame, stopFrame, doneFrame))
	moves := setup{providers: []*provider{newProvider(t, slow), second}, hold: complete, onGate: engine.GateFallsOver, limits: limits}.start(t)
	if got := moves.post(t, chatPath, streamRequest); got.body != moreFrame+stopFrame+doneFrame {
		t.Errorf("on_gate = fallback: got %q", got.body)
	}
	stays := setup{providers: []*provider{newProvider(t, slow), second}, hold: complete, limits: limits}.start(t)
	time.AfterFunc(60*time.Millisecond, func() { close(release) })
	if got := stays.post(t, chatPath, streamRequest); got.body != roleFrame+textFrame+stopFrame+doneFrame {
		t.Errorf("on_gate unset: got %q", got.body)
	}
}

// A group's on_gate counts before its providers'.
func TestOnGateOfTheGroup(t *testing.T) {
	t.Parallel()
	limits := engine.Limits{Connect: time.Second, Headers: time.Second, Gate: 20 * time.Millisecond, Idle: 5 * time.Second}
	for _, c := range []struct {
		provider bool
		group    engine.GateChoice
		moves    bool
	}{{false, engine.GateFallsOver, true}, {true, engine.GateCommits, false}, {true, engine.GateUnsaid, true}} {
		stopped := make(chan struct{})
		slow := newProvider(t, func(c net.Conn, n int) bool {
			_, _ = io.WriteString(c, streamHead+chunk(roleFrame))
			<-stopped
			return false
		})
		g := setup{providers: []*provider{slow, newProvider(t, stream(textFrame, stopFrame, doneFrame))}, fallback: c.provider, onGate: c.group, limits: limits}.start(t)
		time.AfterFunc(200*time.Millisecond, func() { close(stopped) })
		if got := g.post(t, chatPath, streamRequest); strings.HasPrefix(got.body, textFrame) != c.moves {
			t.Errorf("provider %v, group %v: got %q", c.provider, c.group, got.body)
		}
	}
}

// alive is a group that sends comments while it holds.
func alive(every time.Duration) engine.Hold {
	return engine.Hold{Complete: true, Max: 1 << 20, KeepAlive: every}
}

func TestKeepAliveCommitsTheStatusAlone(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	first := newProvider(t, func(c net.Conn, n int) bool {
		_, _ = io.WriteString(c, streamHead+chunk(textFrame))
		<-release
		return false
	})
	g := setup{providers: []*provider{first, newProvider(t, stream(moreFrame, stopFrame, doneFrame))}, hold: alive(5 * time.Millisecond)}.start(t)
	conn := g.dial(t)
	if _, err := io.WriteString(conn, rawPost(chatPath, streamRequest, "Connection: close")); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	for comments := 0; comments < 3 && lines.Scan(); {
		if lines.Text() == ": keep-alive" {
			comments++
		}
	}
	close(release)
	var rest strings.Builder
	for lines.Scan() {
		rest.WriteString(lines.Text() + "\n")
	}
	if got := rest.String(); !strings.Contains(got, moreFrame) || strings.Contains(got, "Hel") || !strings.Contains(got, "[DONE]") {
		t.Errorf("after the comments came %q", got)
	}
	if rec := g.ledger.next(t); rec != "success 200 | ch1 provider_transient before_output | ch2" {
		t.Errorf("record %q", rec)
	}
}

// After the first comment a final failure is an event, in each protocol; before, a status.
func TestFailureAfterKeepAlive(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct{ request, event string }{
		chatPath:      {streamRequest, `data: {"error":{"message":"`},
		messagesPath:  {streamRequest, "event: error\ndata: {\"type\":\"error\""},
		responsesPath: {`{"model":"` + model + `","stream":true,"store":false,"input":"x"}`, "event: error\ndata: {\"type\":\"error\",\"code\":\""},
		geminiPath:    {`{"contents":[]}`, `data: {"error":{"code":`},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			for name, last := range map[string]struct {
				answer       script
				status, code string
			}{
				"exhausted":    {answer(503, "application/json", `{"error":{"message":"no"}}`), "exhausted 503", "no route is left"},
				"caller's own": {answer(400, "application/json", `{"error":{"message":"bad temperature"}}`), "policy_stop 400", "bad temperature"},
			} {
				headed := make(chan struct{})
				p := newProvider(t, once(headed, last.answer))
				g := setup{providers: []*provider{p}, hold: alive(10 * time.Millisecond)}.start(t)
				g.headed = headed
				got := g.post(t, path, c.request, "X-Request-Id: req-8")
				events := strings.ReplaceAll(got.body, ": keep-alive\n\n", "")
				if got.status != 200 || got.err != nil || !strings.HasPrefix(events, c.event) || strings.Count(events, "\n\n") != 1 ||
					!strings.Contains(events, last.code) || !strings.Contains(events, "req-8") {
					t.Errorf("%s: got %d %v %q", name, got.status, got.err, got.body)
				}
				if rec := g.ledger.next(t); !strings.HasPrefix(rec, last.status) {
					t.Errorf("%s: record %q", name, rec)
				}
				fast := setup{providers: []*provider{newProvider(t, last.answer)}, hold: alive(time.Minute)}.start(t)
				if got := fast.post(t, path, c.request); got.status < 400 {
					t.Errorf("%s before the first comment: status %d", name, got.status)
				}
			}
		})
	}
}

// once answers when something has happened, or fails a test that waits for it in vain.
func once(happened <-chan struct{}, answer script) script {
	return func(c net.Conn, n int) bool {
		select {
		case <-happened:
			return answer(c, n)
		case <-time.After(20 * time.Second):
			return false
		}
	}
}

func TestCallerLeavesWhileKeptAlive(t *testing.T) {
	t.Parallel()
	p := newProvider(t, hang(streamHead+chunk(textFrame)))
	g := setup{providers: []*provider{p, p}, hold: alive(5 * time.Millisecond)}.start(t)
	conn := g.dial(t)
	if _, err := io.WriteString(conn, rawPost(chatPath, streamRequest)); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(conn); lines.Scan() && lines.Text() != ": keep-alive"; {
	}
	conn.Close()
	await(t, "the upstream's connection closing", p.left)
	if rec := g.ledger.next(t); !strings.HasPrefix(rec, "cancelled") || !strings.HasSuffix(rec, "| ch1 cancelled before_output") {
		t.Errorf("record %q", rec)
	}
	if n := len(p.requests()); n != 1 {
		t.Errorf("%d attempts were made", n)
	}
}

func TestDefectWhileKeptAlive(t *testing.T) {
	t.Parallel()
	headed := make(chan struct{})
	slow := newProvider(t, once(headed, answer(503, "application/json", `{}`)))
	broken := func(*engine.Question) engine.Decision { panic("a defect of the policy's host") }
	g := setup{providers: []*provider{slow}, hold: alive(10 * time.Millisecond), policy: broken}.start(t)
	g.headed = headed
	got := g.post(t, chatPath, streamRequest)
	if got.err == nil {
		t.Errorf("a defect ends in order: %q", got.body)
	}
	if rec := g.ledger.next(t); !strings.HasPrefix(rec, "cancelled") {
		t.Errorf("record %q", rec)
	}
}
