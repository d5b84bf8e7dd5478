package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/sim"
)

const everything = "testdata/all.hcl"

// wireCase is one endpoint as a caller speaks it.
type wireCase struct {
	name, path, body string // with a verb in the body for the model
	contentType      string
	family           string // of its error events; empty: the answer is no stream
	end              string // what stands for a good end of the stream
	once             bool   // not to be sent again unless the upstream certainly did nothing
	usage            [2]int64
}

const unknownTokens = -1

func form(fields ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(&b, "--B\r\nContent-Disposition: form-data; name=%q\r\n\r\n%s\r\n", fields[i], fields[i+1])
	}
	return b.String() + "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\nContent-Type: application/octet-stream\r\n\r\n\x00\xff\r\n\x01\r\n--B--\r\n"
}

const formType = "multipart/form-data; boundary=B"

// wireCases are all endpoints, whole and streamed.
func wireCases(model string) []wireCase {
	in, out := int64(sim.InputTokens), int64(sim.DefaultChunks)
	all := []wireCase{
		{name: "chat", path: "/v1/chat/completions", body: `{"model":%q,"messages":[]}`, usage: [2]int64{in, out}},
		{name: "chat stream", path: "/v1/chat/completions", body: `{"model":%q,"stream":true,"messages":[]}`, family: "openai", end: "[DONE]", usage: [2]int64{unknownTokens, unknownTokens}},
		{name: "chat stream with usage", path: "/v1/chat/completions", body: `{"model":%q,"stream":true,"stream_options":{"include_usage":true},"messages":[]}`, family: "openai", end: "[DONE]", usage: [2]int64{in, out}},
		{name: "responses", path: "/v1/responses", body: `{"model":%q,"store":false,"input":"hi"}`, usage: [2]int64{in, out}},
		{name: "responses stream", path: "/v1/responses", body: `{"model":%q,"store":false,"stream":true,"input":"hi"}`, family: "responses", end: "response.completed", usage: [2]int64{in, out}},
		{name: "completions", path: "/v1/completions", body: `{"model":%q,"prompt":"hi"}`, usage: [2]int64{in, out}},
		{name: "completions stream", path: "/v1/completions", body: `{"model":%q,"stream":true,"stream_options":{"include_usage":true},"prompt":"hi"}`, family: "openai", end: "[DONE]", usage: [2]int64{in, out}},
		{name: "embeddings", path: "/v1/embeddings", body: `{"model":%q,"input":["a","b"]}`, usage: [2]int64{in, unknownTokens}},
		{name: "images", path: "/v1/images/generations", body: `{"model":%q,"prompt":"a dot"}`, once: true, usage: [2]int64{in, 1}},
		{name: "image edit", path: "/v1/images/edits", body: form("model", "%s", "prompt", "a dot"), contentType: formType, once: true, usage: [2]int64{in, 1}},
		{name: "image variation", path: "/v1/images/variations", body: form("model", "%s"), contentType: formType, once: true, usage: [2]int64{in, 1}},
		{name: "transcription", path: "/v1/audio/transcriptions", body: form("model", "%s"), contentType: formType, once: true, usage: [2]int64{in, out}},
		{name: "translation", path: "/v1/audio/translations", body: form("model", "%s"), contentType: formType, once: true, usage: [2]int64{in, out}},
		{name: "speech", path: "/v1/audio/speech", body: `{"model":%q,"input":"hi","voice":"alloy"}`, once: true, usage: [2]int64{unknownTokens, unknownTokens}},
		{name: "messages", path: "/v1/messages", body: `{"model":%q,"max_tokens":9,"messages":[]}`, usage: [2]int64{in, out}},
		{name: "messages stream", path: "/v1/messages", body: `{"model":%q,"max_tokens":9,"stream":true,"messages":[]}`, family: "anthropic", end: "message_stop", usage: [2]int64{in, out}},
		{name: "gemini", path: "/v1beta/models/MODEL:generateContent", body: `{"contents":[]}`, usage: [2]int64{in, out}},
		{name: "gemini stream", path: "/v1beta/models/MODEL:streamGenerateContent?alt=sse", body: `{"contents":[]}`, family: "gemini", end: "finishReason", usage: [2]int64{in, out}},
		{name: "gemini array", path: "/v1beta/models/MODEL:streamGenerateContent", body: `{"contents":[]}`, family: "array", end: "finishReason", usage: [2]int64{in, out}},
	}
	for i := range all {
		c := &all[i]
		c.path = strings.Replace(c.path, "MODEL", model, 1)
		if strings.Contains(c.body, "%") {
			c.body = fmt.Sprintf(c.body, model)
		}
		if c.contentType == "" {
			c.contentType = "application/json"
		}
	}
	return all
}

func (c wireCase) post(t *testing.T, r *rig) reply {
	t.Helper()
	return post(t, r.base+c.path, c.body, "Content-Type", c.contentType)
}

// errorEvents counts the error events in a stream, and says whether it can be read to its end.
func (c wireCase) errorEvents(body string) (n int, readable bool) {
	switch c.family {
	case "anthropic", "responses":
		return strings.Count(body, "event: error\n"), strings.HasSuffix(body, "\n\n")
	case "array":
		var elements []map[string]json.RawMessage
		readable = json.Unmarshal([]byte(body), &elements) == nil
		for _, e := range elements {
			if e["error"] != nil {
				n++
			}
		}
		return n, readable
	}
	return strings.Count(body, `data: {"error":`), strings.HasSuffix(body, "\n\n")
}

// TestEveryEndpointFallsOver breaks the first channel before anything is committed, in each
// way, over each endpoint.
func TestEveryEndpointFallsOver(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		fault, class string
		started      bool // the upstream may have begun to work
		stream       bool // only of streams
		unread       bool // bytes of any type are committed unread, so sound doesn't show it
	}{
		{fault: "status=503", class: "provider_transient"},
		{fault: "status=401", class: "key_fault"},
		{fault: "status=429", class: "rate_limited"},
		{fault: "json-error status=503", class: "provider_transient"},
		{fault: "cut before-headers", class: "provider_transient", started: true},
		{fault: "reset before-headers", class: "provider_transient", started: true},
		{fault: "malformed before-headers", class: "provider_transient", started: true},
		{fault: "cut before-output", class: "provider_transient", started: true},
		{fault: "empty", class: "schema_invalid", started: true},
		{fault: "html", class: "schema_invalid", started: true},
		{fault: `body="{\"id\":\"x\",\"da"`, class: "schema_invalid", started: true},
		{fault: `body="Service overloaded, sorry"`, class: "schema_invalid", started: true},
		{fault: "truncated", class: "provider_transient", started: true, unread: true},
		{fault: "error-in-stream status=503", class: "provider_transient", stream: true},
		{fault: "end before-output", class: "provider_transient", started: true, stream: true},
	} {
		t.Run(f.fault, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, everything, "", "a", "b", "c")
			for _, c := range wireCases("model-1") {
				if f.stream && c.family == "" || f.fault == "truncated" && c.family != "" || f.unread && c.name == "speech" {
					continue
				}
				r.fresh()
				r.script("a", f.fault)
				got := c.post(t, r)
				rec := r.record(got.header.Get("X-Request-Id"))
				class := f.class
				switch {
				case f.fault == "empty" && c.family != "" && c.family != "array":
					class = "provider_transient" // a stream that was cut before its first event
				case f.fault == "end before-output" && c.family == "array":
					class = "schema_invalid" // half of a JSON text
				}
				first := rec.Attempts()[0]
				if first.Class().String() != class || first.Phase() == engine.AfterOutput {
					t.Errorf("%s: the ledger says %s", c.name, storyOf(rec))
				}
				if c.once && f.started {
					// A picture may have been made and paid: a person decides.
					if got.status < 400 || r.newCalls() != "a=1 b=0 c=0" {
						t.Errorf("%s: got %d after %s; the ledger says %s", c.name, got.status, r.newCalls(), storyOf(rec))
					}
					continue
				}
				if got.status != 200 || got.err != nil || r.newCalls() != "a=1 b=1 c=0" {
					t.Errorf("%s: got %d, %v, after %s: %s", c.name, got.status, got.err, r.newCalls(), got.body)
				}
				for _, ch := range []string{"a", "b"} {
					if seen := r.sim.Requests(ch); len(seen) == 0 || string(seen[len(seen)-1].Body) != c.body {
						t.Errorf("%s: channel %s got another body", c.name, ch)
					}
				}
			}
		})
	}
}

// TestEveryEndpointsAnswerPasses compares what callers get with what the upstream sends by
// itself, and reads the usage from the ledger.
func TestEveryEndpointsAnswerPasses(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"model-1", "model-held"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, everything, "", "a", "b", "c")
			for _, c := range wireCases(model) {
				r.script("a", "ok split=7, ok split=7")
				got := c.post(t, r)
				direct := post(t, r.sim.URL("a")+c.path, c.body, "Content-Type", c.contentType)
				if got.status != 200 || got.err != nil || got.body != direct.body || got.header.Get("Content-Type") != direct.header.Get("Content-Type") {
					t.Errorf("%s: got %d %v %q, want %q", c.name, got.status, got.err, got.body, direct.body)
				}
				rec := r.record(got.header.Get("X-Request-Id"))
				u := rec.Attempts()[0].Usage()
				usage := [2]int64{unknownTokens, unknownTokens}
				if n, known := u.Input.Get(); known {
					usage[0] = n
				}
				if n, known := u.Output.Get(); known {
					usage[1] = n
				}
				if usage != c.usage {
					t.Errorf("%s: the ledger says %d tokens, want %d", c.name, usage, c.usage)
				}
			}
		})
	}
}

// TestEveryStreamEndsOnce breaks streams after output: one error event, in the caller's
// protocol, with the request's id, and nothing that looks like a good end.
func TestEveryStreamEndsOnce(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"cut after=2", "reset after=2", "end after=2", "stall after=2", "malformed after=2", "error-in-stream after=2", "error-in-stream after=2 split=7", "cut before-end"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, everything, "", "a", "b", "c")
			for _, c := range wireCases("model-1") {
				if c.family == "" {
					continue
				}
				r.fresh()
				r.script("a", fault)
				got := c.post(t, r)
				id := got.header.Get("X-Request-Id")
				n, readable := c.errorEvents(got.body)
				if got.status != 200 || got.err != nil || n != 1 || !readable || !strings.Contains(got.body, id) || strings.Contains(got.body, c.end) {
					t.Errorf("%s: got %d, %v, %d error events:\n%s", c.name, got.status, got.err, n, got.body)
				}
				rec := r.record(id)
				if rec.Terminal() != engine.TerminalPartial || r.newCalls() != "a=1 b=0 c=0" {
					t.Errorf("%s: the ledger says %s after %s", c.name, storyOf(rec), r.newCalls())
				}

				// Held to its end, the same stream is mended by another channel.
				held := wireCase{path: strings.Replace(c.path, "model-1", "model-held", 1), body: strings.Replace(c.body, "model-1", "model-held", 1), contentType: c.contentType}
				r.fresh()
				r.script("a", fault)
				got = held.post(t, r)
				if n, _ := c.errorEvents(got.body); got.status != 200 || n != 0 || !strings.Contains(got.body, c.end) || r.newCalls() != "a=1 b=1 c=0" {
					t.Errorf("%s, held: got %d after %s:\n%s", c.name, got.status, r.newCalls(), got.body)
				}
			}
		})
	}
}

// TestBrokenMediaIsNoWholeFile cuts sound in its middle: the transfer must not end in order.
func TestBrokenMediaIsNoWholeFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, everything, "", "a", "b", "c")
	r.script("a", "cut after=2")
	got := post(t, r.base+"/v1/audio/speech", `{"model":"model-1","input":"hi","voice":"alloy"}`)
	if got.err == nil || got.header.Get("Content-Type") != "audio/mpeg" {
		t.Errorf("half of the sound ends in order: %d %q", got.status, got.body)
	}
	if rec := r.record(got.header.Get("X-Request-Id")); rec.Terminal() != engine.TerminalPartial {
		t.Errorf("the ledger says %s", storyOf(rec))
	}
}

// TestOtherNameOfTheModel sends the provider's own name where it belongs, and nothing else
// changes.
func TestOtherNameOfTheModel(t *testing.T) {
	t.Parallel()
	r := newRig(t, everything, "", "a", "b", "c")
	for i, c := range wireCases("model-renamed") {
		if got := c.post(t, r); got.status != 200 || got.err != nil {
			t.Fatalf("%s: got %d %v %s", c.name, got.status, got.err, got.body)
		}
		seen := r.sim.Requests("a")[i]
		body, path := c.body, c.path
		if strings.HasPrefix(path, "/v1beta") {
			path = strings.Replace(path, "model-renamed", "deployment%201", 1)
		} else {
			body = strings.Replace(body, "model-renamed", "deployment 1", 1)
		}
		if string(seen.Body) != body || !strings.HasSuffix(seen.Target, path) {
			t.Errorf("%s: the upstream got %s %s, want %s %s", c.name, seen.Target, seen.Body, path, body)
		}
	}
}

// TestGeminiCallers show their keys in three ways, and get lists and errors in their shape.
func TestGeminiCallers(t *testing.T) {
	t.Parallel()
	r := newRig(t, everything, "", "a", "b", "c")
	const path = "/v1beta/models/model-1%3AgenerateContent?key=callers-own&alt=json"
	if got := post(t, r.base+path, `{"model":"models/model-1","contents":[]}`, "x-goog-api-key", "callers-own"); got.status != 200 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	seen := r.sim.Requests("a")[0]
	if strings.Contains(seen.Target, "callers-own") || !strings.HasSuffix(seen.Target, "/v1beta/models/model-1:generateContent?alt=json") {
		t.Errorf("the upstream got %s", seen.Target)
	}
	for _, f := range seen.Header {
		if strings.Contains(f.Value, "callers-own") {
			t.Errorf("the upstream got the caller's key in %s", f.Name)
		}
	}
	r.script("a", "status=503")
	r.script("b", "status=503")
	post(t, r.base+path, `{"contents":[]}`)
	if key := r.sim.Requests("c")[0].Get("x-goog-api-key"); key != secretOfTests {
		t.Errorf("channel c got the key %q", key)
	}
	for _, path := range []string{"/v1beta/models/model-9:generateContent", "/v1beta/models/model-1:countTokens"} {
		var e struct {
			Error struct {
				Code   int
				Status string
			}
		}
		got := post(t, r.base+path, `{"contents":[]}`)
		if err := json.Unmarshal([]byte(got.body), &e); err != nil || got.status != 404 || e.Error.Code != 404 || e.Error.Status != "NOT_FOUND" {
			t.Errorf("%s: got %d %s", path, got.status, got.body)
		}
	}
	if got := post(t, r.base+"/v1beta/models/model-1:generateContent", `{"model":"models/model-9","contents":[]}`); got.status != 400 {
		t.Errorf("a body that names another model: %d %s", got.status, got.body)
	}
	got := get(t, r.base+"/v1beta/models")
	if !strings.Contains(got.body, `{"name":"models/model-1","displayName":"model-1","supportedGenerationMethods":["generateContent","streamGenerateContent"]}`) {
		t.Errorf("the list is %s", got.body)
	}
}

// fresh lets everything that was set aside come back, and counts calls anew.
func (r *rig) fresh() {
	r.clock.forward(time.Hour)
	r.before = make([]int, len(r.upstream))
	for i, ch := range r.upstream {
		r.before[i] = r.sim.Count(ch)
	}
}

// newCalls is [rig.calls] since fresh.
func (r *rig) newCalls() string {
	var parts []string
	for i, ch := range r.upstream {
		parts = append(parts, fmt.Sprintf("%s=%d", ch, r.sim.Count(ch)-r.before[i]))
	}
	return strings.Join(parts, " ")
}

func get(t *testing.T, url string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text), err}
}
