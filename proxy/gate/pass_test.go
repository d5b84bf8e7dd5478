package gate

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fourgate-dev/fourgate/engine"
)

const (
	arrayText  = `{"candidates":[{"content":{"parts":[{"text":"a ] } , \" ["}]}}],"modelVersion":"m"}`
	arrayEnd   = `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}`
	arrayError = "{\n  \"error\": {\n    \"code\": 503\n  }\n}"
)

// relayed sends a stream in pieces through a gate as a driver does: to the end, or to the
// first error.
func relayed(s *Stream, in string, next func(left int) int) (out string) {
	rest := []byte(in)
	for len(rest) > 0 && !s.Errored() {
		n := next(len(rest))
		piece := slices.Clone(rest[:n])
		if s.passed {
			out += string(s.Pass(piece))
		} else if s.Feed(piece) == Commit {
			out += string(s.Release())
		}
		clear(piece) // it is the driver's, which reads into it again
		rest = rest[n:]
	}
	if s.passed && (!s.Errored() || s.Withheld()) {
		out += string(s.Leftover())
	}
	return out
}

// An error after commit stays behind, and nothing else does, wherever the stream is cut.
func TestErrorsStayBehind(t *testing.T) {
	t.Parallel()
	failed := "event: response.failed\ndata: " + `{"type":"response.failed","response":{"error":{"code":"x"}}}` + "\n\n"
	for _, c := range []struct {
		name               string
		endpoint           engine.Endpoint
		array              bool
		before, err, after string
	}{
		{"chat", engine.OpenAIChat, false, roleFrame + contentFrame + contentFrame, errorFrame, doneFrame},
		{"chat with CRLF", engine.OpenAIChat, false, strings.ReplaceAll(contentFrame, "\n", "\r\n"), strings.ReplaceAll(errorFrame, "\n", "\r\n"), doneFrame},
		{"error event", engine.OpenAIChat, false, contentFrame, "event: error\ndata: busy\n\n", ""},
		{"messages", engine.AnthropicMessages, false, startEvent + textEvent, overloaded, stopEvent},
		{"responses", engine.OpenAIResponses, false, responseText, "event: error\ndata: {\"type\":\"error\",\"code\":\"x\"}\n\n", ""},
		{"failed response", engine.OpenAIResponses, false, responseText, failed, doneFrame},
		{"completions", engine.OpenAICompletions, false, `data: {"choices":[{"text":"a"}]}` + "\n\n", errorFrame, ""},
		{"content", engine.GeminiGenerate, false, geminiText, errorFrame, ""},
		{"content in an array", engine.GeminiGenerate, true, "[" + arrayText + ",\r\n" + arrayText, ",\n" + arrayError, "\n]"},
		{"speech", engine.OpenAIAudio, false, `data: {"type":"speech.audio.delta","audio":"AA"}` + "\n\n", `data: {"type":"error","error":{"code":"x"}}` + "\n\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for size := 1; size <= len(c.before+c.err+c.after); size++ {
				s := NewStream(c.endpoint, nil)
				if c.array {
					s = NewArray(c.endpoint, nil)
				}
				out := relayed(s, c.before+c.err+c.after, func(left int) int { return min(size, left) })
				if out != c.before || !s.Errored() || !s.Withheld() || s.Open() || !strings.Contains(string(s.Frames()[0]), strings.Trim(c.err, ", \r\n")) {
					t.Fatalf("pieces of %d: gave out %q, errored %v, withheld %v, open %v, error %q", size, out, s.Errored(), s.Withheld(), s.Open(), s.Frames())
				}
			}
		})
	}
}

// What is no error passes at every cut, even where it looked like one.
func TestEverythingElsePasses(t *testing.T) {
	t.Parallel()
	frames := map[engine.Endpoint][]string{
		engine.OpenAIChat: {contentFrame, finishFrame, usageFrame, doneFrame, ": error\n\n", "\n", "event: message\n" + contentFrame,
			`data: {"error":null,"choices":[{"delta":{"content":"b"}}]}` + "\n\n", "event: err\n\n", "data: {\"error\r\r", "junk\n\n"},
		engine.AnthropicMessages: {textEvent, deltaEvent, stopEvent, "event: ping\ndata: {}\n\n", ": c\r\n\r\n"},
		engine.OpenAIResponses:   {responseText, "event: keepalive\ndata: {}\n\n", doneFrame},
		engine.GeminiGenerate:    {geminiText, "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\n\r\n"},
	}
	first := map[engine.Endpoint]string{
		engine.OpenAIChat: contentFrame, engine.AnthropicMessages: textEvent, engine.OpenAIResponses: responseText, engine.GeminiGenerate: geminiText,
	}
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom([]engine.Endpoint{engine.OpenAIChat, engine.AnthropicMessages, engine.OpenAIResponses, engine.GeminiGenerate}).Draw(t, "endpoint")
		in := first[e] + strings.Join(rapid.SliceOfN(rapid.SampledFrom(frames[e]), 0, 8).Draw(t, "frames"), "")
		in = in[:rapid.IntRange(len(first[e]), len(in)).Draw(t, "cut")]
		s := NewStream(e, nil)
		out := relayed(s, in, func(left int) int { return rapid.IntRange(1, left).Draw(t, "piece") })
		// A cut error is left out: the driver sends one of its own.
		if rest, ok := strings.CutPrefix(in, out); !s.Errored() && (!ok || rest != "" && suspect([]byte(rest)) != suspicious) {
			t.Fatalf("gave out %q of %q", out, in)
		}
	})
}

func TestArrays(t *testing.T) {
	t.Parallel()
	type end struct {
		verdict                Verdict
		complete, ended, open  bool
		reason                 string
		given                  int
		input, output, unknown int64
	}
	f := func(in string, want end) {
		t.Helper()
		for _, size := range []int{1, 3, len(in)} {
			s := NewArray(engine.GeminiGenerate, acceptM)
			out := relayed(s, in, func(left int) int { return min(size, left) })
			v := s.End()
			u := usage(s.Usage())
			got := end{v, s.Complete(), s.Ended(), s.Open(), s.Finding().Reason.String(), s.Given(), u[0], u[1], u[2]}
			if v != Commit {
				got.open = false
			}
			if got != want {
				t.Errorf("%q in pieces of %d: %+v, want %+v", in, size, got, want)
			}
			if v == Commit && out != strings.TrimRight(in, ",") {
				t.Errorf("%q in pieces of %d: gave out %q", in, size, out)
			}
		}
	}
	f("["+arrayText+",\r\n"+arrayEnd+"\n]", end{Commit, true, true, false, "", 2, 3, 4, -1})
	f("["+arrayText+",\r\n"+arrayEnd+"\n]\n \n", end{Commit, true, true, false, "", 2, 3, 4, -1})
	f("["+arrayText+",\r\n"+arrayEnd, end{Commit, false, false, false, "", 2, 3, 4, -1})
	f("["+arrayText+",", end{Commit, false, false, false, "", 1, -1, -1, -1})
	f("["+arrayText+`,{"cand`, end{Commit, false, false, true, "", 1, -1, -1, -1})
	f("[]", end{Discard, true, true, false, "empty_answer", 0, -1, -1, -1})
	f("[", end{Discard, false, false, false, "truncated", 0, -1, -1, -1})
	f("["+arrayError+"]", end{Discard, false, false, false, "", 1, -1, -1, -1})
	f(strings.Replace("["+arrayText, `"m"`, `"other"`, 1), end{Discard, false, false, false, "model_mismatch", 1, -1, -1, -1})
	f(`[1,"a"`, end{Discard, false, false, false, "missing_fields", 2, -1, -1, -1})
	f(geminiText, end{Discard, false, false, false, "wrong_content_type", 0, -1, -1, -1})
	f(arrayText, end{Discard, false, false, false, "wrong_content_type", 0, -1, -1, -1})
}

// Text where events were asked for must not pass for a slow stream.
func TestTextIsForeign(t *testing.T) {
	t.Parallel()
	f := func(in string, foreign bool) {
		t.Helper()
		s := NewStream(engine.OpenAIChat, nil)
		for i := range len(in) {
			s.Feed([]byte(in[i : i+1]))
		}
		if s.Foreign() != foreign {
			t.Errorf("%q: foreign is %v", in, !foreign)
		}
		for range MaxHeld/1000 + 1 {
			s.Feed([]byte(strings.Repeat("x", 1000)))
		}
		if full := s.Full(); full == foreign {
			t.Errorf("%q: full is %v", in, full)
		}
		if s.Feed([]byte(strings.Repeat("x", 1000))); foreign && s.End() != Discard {
			t.Errorf("%q: not discarded at the bound", in)
		}
	}
	for _, text := range []string{"Internal Server Error", "upstream connect error: no\n", "\x00\x01\x02", "error: busy\n", "data {", "event\x00", "\xEF\xBB\xBFOops, ", "retry later"} {
		f(text, true)
	}
	for _, text := range []string{"d", "data", "retr", "foo"} {
		s := NewStream(engine.OpenAIChat, nil)
		if s.Feed([]byte(text)); s.Foreign() {
			t.Errorf("%q: foreign already", text)
		}
	}
	for _, text := range []string{"data: {", "\n\nevent: x", ": waiting", "retry: 5\n", "id\n", "\xEF\xBB\xBFdata:", "version: 2\ndata: {}\n\n"} {
		f(text, false)
	}
}

func FuzzPass(f *testing.F) {
	for _, s := range []string{contentFrame + errorFrame, textEvent + overloaded, "[" + arrayText + "," + arrayError, contentFrame + "data: {\"error\": null}\n\n"} {
		f.Add([]byte(s), uint8(1), uint8(5), strings.HasPrefix(s, "["))
	}
	f.Fuzz(func(t *testing.T, in []byte, e, size uint8, array bool) {
		s := NewStream(engine.Endpoint(e%9), nil)
		if array {
			s = NewArray(engine.GeminiGenerate, nil)
		}
		out := relayed(s, string(in), func(left int) int { return min(int(size)+1, left) })
		if !strings.HasPrefix(string(in), out) {
			t.Fatalf("gave out %q of %q", out, in)
		}
	})
}
