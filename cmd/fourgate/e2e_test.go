package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

// reply is what a caller without an SDK gets.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func post(t *testing.T, url, body string, header ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text), err}
}

func chat(model string, stream bool) string {
	return fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":"hello"}]}`, model, stream)
}

func messages(model string, stream bool) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":64,"stream":%v,"messages":[{"role":"user","content":"hello"}]}`, model, stream)
}

// record waits until the ledger has a request's record, whole, and returns it.
func (r *rig) record(id string) *engine.Record {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), waitLimit)
	defer cancel()
	for {
		if reader, err := ledger.OpenReader(r.ledger); err == nil {
			rec, err := reader.Get(ctx, id)
			_ = reader.Close()
			if err == nil && rec.Terminal() != engine.TerminalNone {
				return rec
			}
		}
		if ctx.Err() != nil {
			r.t.Fatalf("request %s never got into the ledger", id)
		}
	}
}

// story is a record in one line.
func storyOf(rec *engine.Record) string {
	var steps []string
	for _, a := range rec.Attempts() {
		step := a.Channel()
		if a.Failed() {
			step += " " + a.Class().String() + "/" + a.Reason().String() + " " + a.Phase().String()
			if d, ok := a.Decision(); ok {
				step += " " + d.Action().String()
			}
		}
		steps = append(steps, step)
	}
	return strings.Join(steps, "; ") + ": " + rec.Terminal().String()
}

const trio = "testdata/trio.hcl"

// TestFailoverOnRealSockets breaks the first of three channels in each way that the
// failure matrix names, and reads what the caller gets and what the ledger says.
func TestFailoverOnRealSockets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		fault  string
		stream bool
		status int
		calls  string
		story  string
	}{
		{"healthy", "ok", false, 200, "a=1 b=0 c=0", "a: success"},
		{"healthy stream", "ok", true, 200, "a=1 b=0 c=0", "a: success"},
		{"503", "status=503", false, 200, "a=1 b=1 c=0", "a provider_transient/overloaded before_output fallback; b: success"},
		{"500 of a stream", "status=500", true, 200, "a=1 b=1 c=0", "a provider_transient/server_error before_output fallback; b: success"},
		{"error inside a 200 stream", "error-in-stream", true, 200, "a=1 b=1 c=0", ""},
		{"cut before output", "cut before-output", true, 200, "a=1 b=1 c=0", "a provider_transient/network before_output fallback; b: success"},
		{"cut before headers", "cut before-headers", false, 200, "a=1 b=1 c=0", "a provider_transient/network before_headers fallback; b: success"},
		{"reset before headers", "reset before-headers", false, 200, "a=1 b=1 c=0", "a provider_transient/network before_headers fallback; b: success"},
		{"truncated body", "truncated", false, 200, "a=1 b=1 c=0", ""},
		{"empty body", "empty", false, 200, "a=1 b=1 c=0", "a schema_invalid/empty_body before_output fallback; b: success"},
		{"HTML with 200", "html", false, 200, "a=1 b=1 c=0", "a schema_invalid/html_body before_output fallback; b: success"},
		{"another model", "model=model-2", false, 200, "a=1 b=1 c=0", "a contract_violation/model_mismatch before_output fallback; b: success"},
		{"another model in a stream", "model=model-2", true, 200, "a=1 b=1 c=0", "a contract_violation/model_mismatch before_output fallback; b: success"},
		{"a dated snapshot", "model=model-1-2026-01-31", true, 200, "a=1 b=0 c=0", "a: success"},
		{"429 with Retry-After", "status=429 retry-after=30", false, 200, "a=1 b=1 c=0", ""},
		{"dead key", "status=401", false, 200, "a=1 b=1 c=0", "a key_fault/invalid_credential before_output fallback; b: success"},
		{"missing model", "status=404", false, 200, "a=1 b=1 c=0", ""},
		{"a caller's mistake", "status=400", false, 400, "a=1 b=0 c=0", "a bad_request/invalid_request before_output abort: policy_stop"},
		{"refusal", "refusal", false, 200, "a=1 b=0 c=0", "a: success"},
		{"tool call", "tool-call", true, 200, "a=1 b=0 c=0", "a: success"},
		{"content filter", "content-filter", true, 200, "a=1 b=0 c=0", "a: success"},
		{"cut after output", "cut after=3", true, 200, "a=1 b=0 c=0", "a partial/truncated after_output abort: partial"},
		{"reset after output", "reset after=3", true, 200, "a=1 b=0 c=0", "a partial/network after_output abort: partial"},
	} {
		for name, protocol := range map[string]string{"chat": "/v1/chat/completions", "messages": "/v1/messages"} {
			t.Run(c.name+" over "+name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, trio, "", "a", "b", "c")
				r.script("a", c.fault)
				body := chat("model-1", c.stream)
				if protocol == "/v1/messages" {
					body = messages("model-1", c.stream)
				}
				got := post(t, r.base+protocol, body, "Authorization", "Bearer callers-own-key")
				if got.status != c.status || got.err != nil {
					t.Errorf("got status %d, error %v, want %d; body %s", got.status, got.err, c.status, got.body)
				}
				if calls := r.calls(); calls != c.calls {
					t.Errorf("the upstreams were called %s, want %s", calls, c.calls)
				}
				rec := r.record(got.header.Get("X-Request-Id"))
				if story := storyOf(rec); c.story != "" && story != c.story {
					t.Errorf("the ledger says %q, want %q", story, c.story)
				}
				if strings.Contains(got.body, secretOfTests) || bytes.Contains(rec.AppendJSON(nil), []byte(secretOfTests)) {
					t.Error("the upstream's key has got out")
				}
				for _, ch := range r.upstream {
					for _, seen := range r.sim.Requests(ch) {
						if string(seen.Body) != body {
							t.Errorf("channel %s got another body: %s", ch, seen.Body)
						}
						for _, f := range seen.Header {
							if strings.Contains(f.Value, "callers-own-key") {
								t.Errorf("channel %s got the caller's own key in %s", ch, f.Name)
							}
						}
					}
				}
			})
		}
	}
}

// TestQuotedKeyIsMasked has an upstream that quotes our key in an error that passes on.
func TestQuotedKeyIsMasked(t *testing.T) {
	t.Parallel()
	r := newRig(t, trio, "", "a", "b", "c")
	r.script("a", `status=400 message="bad request for `+secretOfTests+`"`)
	got := post(t, r.base+"/v1/chat/completions", chat("model-1", false))
	if got.status != 400 || strings.Contains(got.body, secretOfTests) || !strings.Contains(got.body, "bad request for ***") {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

// TestUnsafeEmptyStreamIsAnError has a stream that ends before its output, of a request
// that may not be replayed: SDKs would take what came for a whole empty answer.
func TestUnsafeEmptyStreamIsAnError(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"end before-output", "empty", "broken-json before-output", "empty-answer"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, trio, "", "a", "b", "c")
			r.script("a", fault)
			body := strings.Replace(chat("model-1", true), `"stream"`, `"store":true,"stream"`, 1)
			got := post(t, r.base+"/v1/chat/completions", body)
			if got.status != 502 || !strings.Contains(got.body, `"error"`) || r.calls() != "a=1 b=0 c=0" {
				t.Errorf("got %d %q after %s", got.status, got.body, r.calls())
			}
		})
	}
}

// TestOutageIsRecordedToo takes every channel away for a while: the requests that are
// turned away without an attempt are in the ledger.
func TestOutageIsRecordedToo(t *testing.T) {
	t.Parallel()
	r := newRig(t, trio, "", "a", "b", "c")
	for _, ch := range r.upstream {
		r.script(ch, "status=401")
	}
	post(t, r.base+"/v1/chat/completions", chat("model-1", false))
	got := post(t, r.base+"/v1/chat/completions", chat("model-1", false))
	rec := r.record(got.header.Get("X-Request-Id"))
	if got.status != 503 || got.header.Get("Retry-After") == "" || len(rec.Attempts()) != 0 || rec.Terminal() != engine.TerminalExhausted {
		t.Errorf("got %d, Retry-After %q, record %s", got.status, got.header.Get("Retry-After"), rec.AppendJSON(nil))
	}
	_, admin, _ := strings.Cut(r.proxy.stdout.await(t, "metrics and health on "), "metrics and health on ")
	resp, err := http.Get(strings.TrimSpace(admin) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`fourgate_key_cooling{key="main",provider="a"} 1`, `fourgate_channel_out{channel="b",group="m",why="no usable key"} 1`, `fourgate_breaker_state{channel="c",group="m"} 0`,
	} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("%s is not in the metrics", want)
		}
	}
}

// TestExhaustionIsOneClearError takes all three channels away.
func TestExhaustionIsOneClearError(t *testing.T) {
	t.Parallel()
	r := newRig(t, trio, "", "a", "b", "c")
	for _, ch := range r.upstream {
		r.script(ch, "status=503")
	}
	got := post(t, r.base+"/v1/chat/completions", chat("model-1", false))
	var body struct {
		Error struct{ Message, Type, Code string }
	}
	if err := json.Unmarshal([]byte(got.body), &body); err != nil {
		t.Fatalf("%v in %s", err, got.body)
	}
	if got.status != 503 || body.Error.Code != engine.CodeExhausted || got.header.Get("X-Should-Retry") != "false" {
		t.Errorf("got %d %+v, X-Should-Retry %q", got.status, body.Error, got.header.Get("X-Should-Retry"))
	}
	for _, ch := range r.upstream {
		if !strings.Contains(body.Error.Message, ch+": overloaded (503)") {
			t.Errorf("the error doesn't tell of channel %s: %s", ch, body.Error.Message)
		}
	}
	if rec := r.record(got.header.Get("X-Request-Id")); rec.Terminal() != engine.TerminalExhausted {
		t.Errorf("the ledger says %s", storyOf(rec))
	}
	if calls := r.calls(); calls != "a=1 b=1 c=1" {
		t.Errorf("the upstreams were called %s", calls)
	}
}

// TestCutStreamEndsWithOneErrorEvent reads a broken stream to its end.
func TestCutStreamEndsWithOneErrorEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, trio, "", "a", "b", "c")
	r.script("a", "cut after=3")
	got := post(t, r.base+"/v1/chat/completions", chat("model-1", true))
	id := got.header.Get("X-Request-Id")
	if got.err != nil {
		t.Errorf("the body didn't end in order: %v", got.err)
	}
	if n := strings.Count(got.body, `"error"`); n != 1 || !strings.Contains(got.body, id) || strings.Contains(got.body, "[DONE]") {
		t.Errorf("got %d error events; the stream:\n%s", n, got.body)
	}
	got = post(t, r.base+"/v1/messages", messages("model-1", true))
	if n := strings.Count(got.body, "event: error\n"); n != 1 || strings.Contains(got.body, "message_stop") {
		t.Errorf("got %d error events; the stream:\n%s", n, got.body)
	}
}

// TestCallerLeaves closes the caller's connection in each place and waits for the
// upstream to see its own connection closed.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, fault, story string }{
		{"before headers", "stall before-headers", "a cancelled/caller_cancelled before_headers: cancelled"},
		{"in the gate", "stall before-output", "a cancelled/caller_cancelled before_output: cancelled"},
		{"mid-stream", "stall after=2", "a cancelled/caller_cancelled after_output: cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, trio, "", "a", "b", "c")
			r.script("a", c.fault)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base+"/v1/chat/completions", strings.NewReader(chat("model-1", true)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Request-Id", "leaves")
			left := make(chan struct{})
			go func() {
				defer close(left)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return
				}
				defer resp.Body.Close()
				// The second piece of content is the sign to go.
				for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
					if strings.Contains(lines.Text(), `"content"`) {
						leave()
					}
				}
			}()
			wait, cancel := context.WithTimeout(t.Context(), waitLimit)
			defer cancel()
			if err := r.sim.WaitArrived(wait, "a", 1); err != nil {
				t.Fatal(err)
			}
			if c.name != "mid-stream" {
				leave()
			}
			if err := r.sim.WaitGone(wait, "a", 1); err != nil {
				t.Fatalf("the upstream's connection was not closed: %v", err)
			}
			<-left
			if story := storyOf(r.record("leaves")); story != c.story {
				t.Errorf("the ledger says %q, want %q", story, c.story)
			}
			if calls := r.calls(); calls != "a=1 b=0 c=0" {
				t.Errorf("the upstreams were called %s", calls)
			}
		})
	}
}
