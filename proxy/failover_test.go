package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy"
)

// Each case is what the first channel does; the second one is healthy.
func TestFallsOver(t *testing.T) {
	t.Parallel()
	wrong := strings.ReplaceAll(wholeAnswer, model, "gpt-3.5-turbo")
	for _, c := range []struct {
		name, request string
		first         script
		record        string
	}{
		{"503", wholeRequest, answer(503, "application/json", `{"error":{"message":"no"}}`), "provider_transient before_output"},
		{"503 to a stream", streamRequest, answer(503, "application/json", `{"error":{"message":"no"}}`), "provider_transient before_output"},
		{"429", wholeRequest, answer(429, "application/json", `{}`, "Retry-After: 60"), "rate_limited before_output"},
		{"connection dropped", wholeRequest, func(net.Conn, int) bool { return false }, "provider_transient before_headers"},
		{"error in a 200 stream", streamRequest, stream(roleFrame, errorFrame), "provider_transient before_output"},
		{"cut before output", streamRequest, cutStream(roleFrame), "provider_transient before_output"},
		{"end before output", streamRequest, stream(roleFrame), "provider_transient before_output"},
		{"JSON error where a stream was asked for", streamRequest, answer(200, "application/json", `{"error":{"message":"overloaded"}}`), "provider_transient before_output"},
		{"JSON answer where a stream was asked for", streamRequest, answer(200, "application/json", wholeAnswer), "schema_invalid before_output"},
		{"error under 200", wholeRequest, answer(200, "application/json", `{"error":{"message":"overloaded"}}`), "provider_transient before_output"},
		{"whole answer cut", wholeRequest, func(c net.Conn, _ int) bool {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"+wholeAnswer[:40])
			return false
		}, "provider_transient before_output"},
		{"a page", wholeRequest, answer(200, "text/html", "<html></html>"), "schema_invalid before_output"},
		{"nothing", wholeRequest, answer(200, "application/json", ""), "schema_invalid before_output"},
		{"another model", wholeRequest, answer(200, "application/json", wrong), "contract_violation before_output"},
		{"another model in a stream", streamRequest, stream(strings.ReplaceAll(textFrame, model, "gpt-3.5-turbo")), "contract_violation before_output"},
		{"a redirect", wholeRequest, answer(302, "text/html", "", "Location: http://elsewhere.example/"), "unknown before_output"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := newProvider(t, c.first)
			second := newProvider(t, func(conn net.Conn, n int) bool {
				if c.request == streamRequest {
					return stream(textFrame, stopFrame, doneFrame)(conn, n)
				}
				return answer(200, "application/json", wholeAnswer)(conn, n)
			})
			always := func(q *engine.Question) engine.Decision {
				return engine.Decision{Action: engine.Fallback, Gates: passAll}
			}
			g := setup{providers: []*provider{first, second}, policy: always}.start(t)
			got := g.post(t, "/v1/chat/completions", c.request)
			want := wholeAnswer
			if c.request == streamRequest {
				want = textFrame + stopFrame + doneFrame
			}
			if got.status != 200 || got.body != want {
				t.Errorf("got %d %q", got.status, got.body)
			}
			if rec, want := g.ledger.next(t), "success 200 | ch1 "+c.record+" | ch2"; rec != want {
				t.Errorf("record %q, want %q", rec, want)
			}
			if v := second.requests()[0].header.Get("X-Fourgate-Attempt"); v != "2" {
				t.Errorf("second attempt went out as number %q", v)
			}
			if n := len(first.requests()); n != 1 {
				t.Errorf("the first channel got %d requests", n)
			}
		})
	}
}

func TestNestedGatewayMultipliesNothing(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(503, "application/json", `{}`))
	g := setup{providers: []*provider{p, p, p}}.start(t)
	g.post(t, "/v1/chat/completions", wholeRequest, "X-Fourgate-Attempt: 1")
	if n := len(p.requests()); n != 1 {
		t.Errorf("an attempt of an outer gateway became %d", n)
	}
}

func TestNothingOfAnotherModelPasses(t *testing.T) {
	t.Parallel()
	wrong := strings.ReplaceAll(wholeAnswer, model, "gpt-3.5-turbo")
	p := newProvider(t, answer(200, "application/json", wrong))
	g := setup{providers: []*provider{p}}.start(t)
	got := g.post(t, "/v1/chat/completions", wholeRequest)
	if got.status < 500 || strings.Contains(got.body, "Hello") || !strings.Contains(got.body, `"error"`) {
		t.Errorf("got %d %q", got.status, got.body)
	}
}

func TestUpstreamsOwnErrorPassesUnchanged(t *testing.T) {
	t.Parallel()
	body := `{"error":{"message":"bad temperature","type":"invalid_request_error","param":"temperature","code":null}}`
	p := newProvider(t, answer(400, "application/json; charset=utf-8", body, "Retry-After: 7", "openai-version: 2020-10-01"))
	g := setup{providers: []*provider{p, p}}.start(t)
	got := g.post(t, "/v1/chat/completions", wholeRequest)
	if got.status != 400 || got.body != body || len(p.requests()) != 1 {
		t.Fatalf("got %d %q after %d requests", got.status, got.body, len(p.requests()))
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json; charset=utf-8", "X-Should-Retry": "false", "Retry-After": "", "Openai-Version": "2020-10-01",
	} {
		if v := got.header.Get(name); v != want {
			t.Errorf("%s is %q, want %q", name, v, want)
		}
	}
}

func TestErrorFrameOfTheUpstreamPassesWhenNothingFollows(t *testing.T) {
	t.Parallel()
	frame := `data: {"error":{"message":"your image is broken","type":"invalid_request_error"}}` + "\n\n"
	p := newProvider(t, stream(roleFrame, frame))
	badRequest := func(q *engine.Question) engine.Decision { return engine.Decision{Action: engine.Abort} }
	g := setup{providers: []*provider{p}, policy: badRequest}.start(t)
	got := g.post(t, "/v1/chat/completions", streamRequest)
	if got.status != 200 || got.body != roleFrame+frame || got.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %d %q", got.status, got.body)
	}
}

func TestExhausted(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(503, "application/json", `{"error":{"message":"sk-upstream-secret"}}`))
	g := setup{providers: []*provider{p, p}, auth: engine.AuthBearer}.start(t)
	for path, want := range map[string]string{
		"/v1/chat/completions": `"code":"fourgate_exhausted"`,
		"/v1/messages":         `{"type":"error","error":{"type":"api_error"`,
	} {
		got := g.post(t, path, wholeRequest, "X-Request-Id: req-9")
		if got.status != 503 || !strings.Contains(got.body, want) {
			t.Errorf("%s: got %d %q", path, got.status, got.body)
		}
		if !strings.Contains(got.body, "req-9; see: fourgate ledger show req-9)\"") {
			t.Errorf("%s: the message doesn't lead to the ledger: %q", path, got.body)
		}
		if got.header.Get("X-Should-Retry") != "false" || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: headers %v", path, got.header)
		}
		if rec := g.ledger.next(t); !strings.HasPrefix(rec, "exhausted 503 | ch1") {
			t.Errorf("record %q", rec)
		}
	}
}

func TestCutAfterOutputIsOneErrorEvent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, sent string
		first            script
		want             string // the event that ends the stream, up to its message
	}{
		{"openai", "/v1/chat/completions", textFrame, cutStream(textFrame), `data: {"error":{"message":"`},
		{"openai, clean end without end mark", "/v1/chat/completions", textFrame, stream(textFrame), `data: {"error":{"message":"`},
		{"openai, cut after a finish reason", "/v1/chat/completions", textFrame + stopFrame, cutStream(textFrame, stopFrame), `data: {"error":{"message":"`},
		{"openai, within a frame", "/v1/chat/completions", textFrame, cutStream(textFrame, `data: {"id`), `data: {"error":{"message":"`},
		{"anthropic", "/v1/messages", claudeStart() + claudeText(), cutStream(claudeStart(), claudeText()), "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, c.first)
			g := setup{providers: []*provider{p, p}}.start(t)
			got := g.post(t, c.path, streamRequest, "X-Request-Id: req-1")
			rest, ok := strings.CutPrefix(got.body, c.sent)
			if !ok || got.err != nil || got.status != 200 {
				t.Fatalf("got %d, %v, %q", got.status, got.err, got.body)
			}
			if !strings.HasPrefix(rest, c.want) || strings.Count(rest, "data: ") != 1 || !strings.HasSuffix(rest, "\n\n") {
				t.Errorf("the stream ends with %q", rest)
			}
			for _, want := range []string{"req-1", "upstream_stream_broken"} {
				if !strings.Contains(rest, want) {
					t.Errorf("the event doesn't name %s: %q", want, rest)
				}
			}
			if strings.Contains(rest, "[DONE]") || strings.Contains(rest, "message_stop") {
				t.Errorf("a false end mark: %q", rest)
			}
			if rec := g.ledger.next(t); rec != "partial 200 | ch1 partial after_output" {
				t.Errorf("record %q", rec)
			}
			if n := len(p.requests()); n != 1 {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

func TestStreamIsWholeWithoutMore(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]script{
		"a finish reason and an orderly end":         stream(textFrame, stopFrame),
		"a cut behind the end mark":                  cutStream(textFrame, stopFrame, doneFrame),
		"a connection that stays open after the end": hang(streamHead + chunk(textFrame) + chunk(stopFrame) + chunk(doneFrame)),
	} {
		p := newProvider(t, first)
		g := setup{providers: []*provider{p}}.start(t)
		got := g.post(t, "/v1/chat/completions", streamRequest)
		if got.err != nil || strings.Contains(got.body, "error") || !strings.HasPrefix(got.body, textFrame+stopFrame) {
			t.Errorf("%s: %v, %q", name, got.err, got.body)
		}
		if rec := g.ledger.next(t); rec != "success 200 | ch1" {
			t.Errorf("%s: record %q", name, rec)
		}
	}
}

func TestUpstreamsErrorAfterOutputIsReplaced(t *testing.T) {
	t.Parallel()
	p := newProvider(t, stream(textFrame, errorFrame[:9], errorFrame[9:]+doneFrame))
	g := setup{providers: []*provider{p, p}, auth: engine.AuthBearer}.start(t)
	got := g.post(t, "/v1/chat/completions", streamRequest, "X-Request-Id: req-7")
	event, ok := strings.CutPrefix(got.body, textFrame)
	if !ok || got.err != nil || strings.Count(event, "\n\n") != 1 || strings.Contains(event, "[DONE]") {
		t.Errorf("got %v %q", got.err, got.body)
	}
	for _, want := range []string{`data: {"error":{"message":"`, "the upstream said: overloaded (request req-7;", `"code":"upstream_stream_broken"`} {
		if !strings.Contains(event, want) {
			t.Errorf("%q lacks %s", event, want)
		}
	}
	if rec := g.ledger.next(t); rec != "partial 200 | ch1 partial after_output" {
		t.Errorf("record %q", rec)
	}
}

func TestGateTime(t *testing.T) {
	t.Parallel()
	limits := engine.Limits{Connect: time.Second, Headers: time.Second, Gate: 30 * time.Millisecond, Idle: 5 * time.Second}
	// The first channel sends a role frame, and its text only once told to.
	slow := func(release <-chan struct{}) script {
		return func(c net.Conn, n int) bool {
			if _, err := io.WriteString(c, streamHead+chunk(roleFrame)); err != nil {
				return false
			}
			<-release
			_, err := io.WriteString(c, chunk(textFrame)+chunk(doneFrame)+"0\r\n\r\n")
			return err == nil
		}
	}
	t.Run("commit", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		first, second := newProvider(t, slow(release)), newProvider(t, stream(doneFrame))
		g := setup{providers: []*provider{first, second}, limits: limits}.start(t)
		c := g.dial(t)
		if _, err := io.WriteString(c, rawPost("/v1/chat/completions", streamRequest, "Connection: close")); err != nil {
			t.Fatal(err)
		}
		readUntil(t, c, roleFrame) // it is here although nothing decisive has come
		close(release)
		readUntil(t, c, doneFrame)
		if rec := g.ledger.next(t); rec != "success 200 | ch1" {
			t.Errorf("record %q", rec)
		}
	})
	t.Run("fallback", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		defer close(release)
		first, second := newProvider(t, slow(release)), newProvider(t, stream(textFrame, doneFrame))
		g := setup{providers: []*provider{first, second}, limits: limits, fallback: true}.start(t)
		got := g.post(t, "/v1/chat/completions", streamRequest)
		if got.body != textFrame+doneFrame {
			t.Errorf("got %q", got.body)
		}
		if rec := g.ledger.next(t); rec != "success 200 | ch1 provider_transient before_output | ch2" {
			t.Errorf("record %q", rec)
		}
	})
}

func TestSendAs(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(200, "application/json", strings.ReplaceAll(wholeAnswer, model, `prod-\"4o\"`)))
	g := setup{providers: []*provider{p}, sendAs: `prod-"4o"`}.start(t)
	if got := g.post(t, "/v1/chat/completions", wholeRequest); got.status != 200 {
		t.Fatalf("got %d %q", got.status, got.body)
	}
	want := strings.Replace(wholeRequest, `"`+model+`"`, `"prod-\"4o\""`, 1)
	if got := p.requests()[0].body; got != want {
		t.Errorf("upstream got %q, want %q", got, want)
	}
}

func TestAuthStyles(t *testing.T) {
	t.Parallel()
	for auth, want := range map[engine.Auth]map[string]string{
		engine.AuthNone:    {"Authorization": "", "X-Api-Key": "", "Api-Key": ""},
		engine.AuthBearer:  {"Authorization": "Bearer sk-upstream-secret", "X-Api-Key": "", "Api-Key": ""},
		engine.AuthXAPIKey: {"Authorization": "", "X-Api-Key": "sk-upstream-secret", "Api-Key": ""},
		engine.AuthAPIKey:  {"Authorization": "", "X-Api-Key": "", "Api-Key": "sk-upstream-secret"},
	} {
		for _, shown := range []string{"Authorization: Bearer " + callerKey, "x-api-key: " + callerKey, "api-key: " + callerKey, "x-goog-api-key: " + callerKey} {
			p := newProvider(t, answer(200, "application/json", wholeAnswer))
			g := setup{providers: []*provider{p}, auth: auth, callers: true}.start(t)
			if got := g.post(t, "/v1/chat/completions", wholeRequest, shown); got.status != 200 {
				t.Fatalf("%s: got %d %q", shown, got.status, got.body)
			}
			header := p.requests()[0].header
			for name, value := range want {
				if header.Get(name) != value {
					t.Errorf("auth style %d: %s is %q", auth, name, header.Get(name))
				}
			}
			if strings.Contains(fmt.Sprint(header), callerKey) {
				t.Errorf("the caller's own key went upstream: %v", header)
			}
		}
	}
}

func TestBaseURLAndQuery(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":           "/v1/messages?beta=true",
		"/v1":        "/v1/messages?beta=true",
		"/team/x/v1": "/team/x/v1/messages?beta=true",
		"/anthropic": "/anthropic/v1/messages?beta=true",
	} {
		p := newProvider(t, answer(200, "application/json", claudeAnswer))
		g := setup{providers: []*provider{p}, basePath: base}.start(t)
		if got := g.post(t, "/anthropic/v1/messages?beta=true&key=secret", wholeRequest, "anthropic-version: 2023-06-01"); got.status != 200 || got.body != claudeAnswer {
			t.Fatalf("got %d %q", got.status, got.body)
		} else if got.header.Get("Request-Id") == "" || got.header.Get("Request-Id") != got.header.Get("X-Request-Id") {
			t.Errorf("ids %v", got.header)
		}
		if up := p.requests()[0]; up.target != want || up.header.Get("Anthropic-Version") != "2023-06-01" {
			t.Errorf("base %q: upstream got %s %v", base, up.target, up.header)
		}
	}
}

func TestDebugHeaders(t *testing.T) {
	t.Parallel()
	bad := newProvider(t, answer(503, "application/json", `{}`))
	good := newProvider(t, answer(200, "application/json", wholeAnswer))
	g := setup{providers: []*provider{bad, good}, settings: proxy.Settings{DebugHeaders: true}}.start(t)
	got := g.post(t, "/v1/chat/completions", wholeRequest)
	for name, want := range map[string]string{"X-Fourgate-Channel": "ch2", "X-Fourgate-Strategy": "failover", "X-Fourgate-Attempts": "2"} {
		if v := got.header.Get(name); v != want {
			t.Errorf("%s is %q, want %q", name, v, want)
		}
	}
}

func TestEncodedAnswerPassesUnread(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(200, "application/json", "\x1f\x8b\x08 whatever", "Content-Encoding: gzip"))
	g := setup{providers: []*provider{p}}.start(t)
	got := g.post(t, "/v1/chat/completions", wholeRequest)
	if got.status != 200 || got.body != "\x1f\x8b\x08 whatever" || got.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("got %d %q %v", got.status, got.body, got.header)
	}
	if rec := g.ledger.next(t); rec != "success 200 | ch1" {
		t.Errorf("record %q", rec)
	}
}

// readUntil reads from c until text has come.
func readUntil(t *testing.T, c net.Conn, text string) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	var got []byte
	buf := make([]byte, 4096)
	for !strings.Contains(string(got), text) {
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			t.Fatalf("%v before %q; got %q", err, text, got)
		}
	}
	return string(got)
}
