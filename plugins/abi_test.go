package plugins_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
)

const textAt, bufferAt = 16, 1024 // where a probe's text and buffer lie in its memory

// probe is a module that asks one question and makes the answer visible: the text that
// is given becomes the verdict's reason, a number its wait in milliseconds.
func probe(name, text string, numbers bool, args ...int64) []byte {
	var params []byte
	var code []byte
	for _, a := range args {
		params = append(params, i32)
		code = cat(code, []byte{0x41}, sleb(a))
	}
	result := []byte{i32}
	verdict := cat([]byte{0x41, 1, 0x41, 2, 0x41}, sleb(bufferAt), code, []byte{0x10, 1, 0x42, 0x7f, 0x10, 0})
	if numbers {
		if strings.Contains(name, "duration") || name == "retry_after" || name == "json_int" || strings.Contains(name, "matches") {
			result = []byte{i64}
		}
		extend := []byte{}
		if result[0] == i32 {
			extend = []byte{0xac} // i64.extend_i32_s
		}
		verdict = cat([]byte{0x41, 1, 0x41, 2, 0x41}, sleb(textAt), []byte{0x41, 1}, code, []byte{0x10, 1}, extend, []byte{0x10, 0})
	}
	return wasm{
		imports: []wasmFunc{importVerdict, {module: "fourgate", name: name, params: params, results: result}},
		funcs:   []wasmFunc{{code: verdict}},
		extra:   section(11, vec(cat([]byte{0, 0x41, textAt, 0x0b}, str(text)))),
	}.bytes()
}

func probeEvidence() *engine.Evidence {
	return &engine.Evidence{
		Transport: engine.TransportHTTP, Status: 503, Phase: engine.BeforeOutput, Stream: true, NotStarted: true,
		End: engine.EndIdle, NetKind: engine.NetConnReset, NetOp: engine.OpReadBody,
		Contract: engine.Contract{Model: "gpt_4", Endpoint: engine.AnthropicMessages},
		Headers: engine.Headers{
			{Name: "Date", Value: "Tue, 31 Mar 2026 22:00:00 GMT"},
			{Name: "X-Word", Value: "some_word"},
			{Name: "X-Reset", Value: "Tue, 31 Mar 2026 22:00:07 GMT"},
			{Name: "Retry-After", Value: "1.5"},
		},
		Body: []byte(`{"error":{"code":"a_code","n":429,"model":"gpt_4-2024-08-06","wait":"try again in 3.89s","list":[null,{"d":"2s"}]}}`),
	}
}

func classifyWith(t *testing.T, host *plugins.Host, binary []byte, ev *engine.Evidence) engine.Verdict {
	t.Helper()
	m := file(t, binary)
	m.Timeout = plugins.MaxTimeout
	c, err := host.Load(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return c.Classify(ev)
}

// TestTextQuestions asks each function that gives a text.
func TestTextQuestions(t *testing.T) {
	t.Parallel()
	host := openHost(t)
	frames := probeEvidence()
	frames.Transport, frames.Body = engine.TransportSSE, nil
	frames.Frames = [][]byte{[]byte("data: {\"a\":\"first\"}\n\n"), []byte(": comment\n\n")}
	f := func(ev *engine.Evidence, name, text, want string, args ...int64) {
		t.Helper()
		v := classifyWith(t, host, probe(name, text, false, args...), ev)
		if got := v.Reason.String() + v.Fault; got != want {
			t.Errorf("%s(%q): %q; want %q", name, text, got, want)
		}
	}
	ev := probeEvidence()
	f(ev, "header", "x-word", "some_word", textAt, 6, bufferAt, 64)
	f(ev, "header", "x-none", "nonsense", textAt, 6, bufferAt, 64) // −1 is no length of a reason
	f(ev, "model", "", "gpt_4", bufferAt, 64)
	f(ev, "json", "error.none|error.code", "a_code", -1, textAt, 21, bufferAt, 64)
	f(ev, "json", "error.n", "429", -1, textAt, 7, bufferAt, 64)
	f(ev, "json", "error.list.0", "nonsense", -1, textAt, 12, bufferAt, 64)
	f(ev, "body", "", "nonsense", 0, bufferAt, 1000) // it has more than a reason may
	f(&engine.Evidence{Transport: engine.TransportHTTP, Body: []byte("a_whole_body")}, "body", "", "whole_body", 2, bufferAt, 64)
	f(&engine.Evidence{Transport: engine.TransportSSE, Frames: [][]byte{[]byte("x"), []byte("a_frame")}}, "frame", "", "frame", 1, 2, bufferAt, 64)
	f(frames, "frame", "", "nonsense", 2, 0, bufferAt, 64)
	f(frames, "json", "a", "first", -1, textAt, 1, bufferAt, 64)
	f(frames, "json", "a", "first", 0, textAt, 1, bufferAt, 64)
	f(frames, "json", "a", "nonsense", 1, textAt, 1, bufferAt, 64)
	f(ev, "header", "x-word", "trap", textAt, 6, 65535, 64)
}

// TestNumberQuestions asks each function that gives a number. The answer comes back as a
// wait, so −1 is a verdict without one.
func TestNumberQuestions(t *testing.T) {
	t.Parallel()
	host := openHost(t)
	ev := probeEvidence()
	f := func(name, text string, want int64, args ...int64) {
		t.Helper()
		v := classifyWith(t, host, probe(name, "k"+text, true, args...), ev)
		got := int64(-1)
		if d, ok := v.RetryAfter.Get(); ok {
			got = int64(d / time.Millisecond)
		}
		if v.Fault != "" || got != want {
			t.Errorf("%s(%q): %d %s; want %d", name, text, got, v.Fault, want)
		}
	}
	const at = textAt + 1 // behind the letter that is the reason
	f("status", "", 503)
	f("endpoint", "", 7)
	f("phase", "", 1)
	f("transport", "", 1)
	f("body_end", "", 2)
	f("net_kind", "", 13)
	f("net_op", "", 5)
	f("flags", "", 1|4)
	f("frame_count", "", 0)
	f("retry_after", "", 1500)
	f("json_state", "", 1, -1)
	f("json_state", "", 0, 3)
	f("header_contains", "x-wordother|word", 1, at, 6, at+6, 10)
	f("header_contains", "x-nonea", -1, at, 6, at+6, 1)
	f("header_duration", "x-reset", 7000, at, 7, 0)
	f("header_duration", "x-word", -1, at, 6, 0)
	f("names_model", "error.model", 1, -1, at, 11)
	f("names_model", "error.code", 0, -1, at, 10)
	f("names_model", "error.none", -1, -1, at, 10)
	f("contains", "nothing|a_code", 1, -1, at, 14)
	f("json_kind", "error.list.0", 0, -1, at, 12)
	f("json_kind", "error.list", 5, -1, at, 10)
	f("json_kind", "error.x", -1, -1, at, 7)
	f("json_int", "error.n", 429, -1, at, 7)
	f("json_is", "error.codecode|a_code", 1, -1, at, 10, at+10, 11)
	f("json_is", "error.codecode", -1, -1, at, 10, at+10, 4)
	f("json_contains", "error.codecode", 0, -1, at, 10, at+10, 4)
	f("json_matches", "error.code|error.waitnone\na_\ntry*in", 6, -1, at, 21, at+21, 14)
	f("json_matches", "error.nonea", 0, -1, at, 10, at+10, 1)
	f("header_matches", "x-wordother\nword", 2, at, 6, at+6, 10)
	f("header_matches", "x-noneo", 0, at, 6, at+6, 1)
	f("json_duration", "error.list.*.d", 2000, -1, at, 14, 0)
	f("json_duration", "error.wait", 3890, -1, at, 10, 1)
	f("json_duration", "error.wait", -1, -1, at, 10, 0)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	host := openHost(t)
	good := file(t, answering(0, 0, 0, 0, -1).bytes())
	f := func(change func(m *plugins.Module), want string) {
		t.Helper()
		m := good
		change(&m)
		if _, err := host.Load(t.Context(), m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want one with %q", err, want)
		}
	}
	f(func(m *plugins.Module) { m.SHA256 = "" }, "is not pinned; set sha256")
	f(func(m *plugins.Module) { m.SHA256 = strings.Repeat("0", 64) }, "if the change is meant, pin the new digest")
	f(func(m *plugins.Module) { m.Source += ".none" }, "cannot read module")
	f(func(m *plugins.Module) { m.Source = "builtin:opanai" }, `no built-in classifier "opanai"; use one of anthropic, gemini, generic, openai`)
	f(func(m *plugins.Module) { m.Timeout = time.Minute }, "its timeout is 1m0s")
	f(func(m *plugins.Module) { m.MemoryBytes = 1 }, "its memory is 1 bytes")

	upper := good
	upper.SHA256 = strings.ToUpper(good.SHA256)
	first, err := host.Load(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := host.Load(t.Context(), upper); err != nil || again != first {
		t.Errorf("the same module was loaded again as another classifier (%v)", err)
	}
}

// TestClosedHost shows that a classifier that outlives its host is absent, not a crash.
func TestClosedHost(t *testing.T) {
	t.Parallel()
	host := openHost(t)
	c, err := host.Load(t.Context(), plugins.Module{Name: "x", Source: "builtin:generic"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := host.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ev := jsonError(500, "")
	if v := c.Classify(&ev); v != (engine.Verdict{Fault: "absent"}) {
		t.Errorf("verdict %+v", v)
	}
	if _, err := host.Load(t.Context(), plugins.Module{Name: "x", Source: "builtin:generic"}); err == nil {
		t.Error("a closed host loaded a module")
	}
}
