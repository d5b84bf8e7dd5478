package gate

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fourgate-dev/fourgate/engine"
)

const (
	roleFrame    = `data: {"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	contentFrame = `data: {"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":null}` + "\n\n"
	finishFrame  = `data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageFrame   = `data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}` + "\n\n"
	doneFrame    = "data: [DONE]\n\n"
	errorFrame   = `data: {"error":{"message":"m","type":"server_error"}}` + "\n\n"

	startEvent   = "event: message_start\ndata: " + `{"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":25,"cache_read_input_tokens":100,"cache_creation_input_tokens":5,"output_tokens":1}}}` + "\n\n"
	textEvent    = "event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}` + "\n\n"
	deltaEvent   = "event: message_delta\ndata: " + `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}` + "\n\n"
	stopEvent    = "event: message_stop\ndata: " + `{"type":"message_stop"}` + "\n\n"
	overloaded   = "event: error\ndata: " + `{"type":"error","error":{"type":"overloaded_error"}}` + "\n\n"
	responseText = "event: response.output_text.delta\ndata: " + `{"type":"response.output_text.delta","delta":"a"}` + "\n\n"
	geminiText   = `data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":1},"modelVersion":"m"}` + "\n\n"
	jsonAnswer   = `{"model":"m","choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`
	jsonError    = `{"error":{"message":"m"}}`
	errorPage    = "<html><body>Bad gateway</body></html>\n"
	onlyModelM   = "m"
	otherContent = `data: {"model":"other","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
)

func acceptM(model string) bool { return model == onlyModelM }

// usage is an [engine.Usage] with -1 for unknown.
func usage(u engine.Usage) [3]int64 {
	var out [3]int64
	for i, t := range [...]engine.Tokens{u.Input, u.Output, u.CachedInput} {
		n, known := t.Get()
		if out[i] = n; !known {
			out[i] = -1
		}
	}
	return out
}

func TestWatchAfterCommit(t *testing.T) {
	t.Parallel()
	type end struct {
		Complete, Errored, Open bool
		Usage                   [3]int64
	}
	f := func(name string, e engine.Endpoint, in string, want end) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 7, 64, len(in)} {
				for _, hold := range []bool{false, true} {
					s := NewStream(e, acceptM)
					for c := range slices.Chunk([]byte(in), size) {
						if hold || s.verdict == Wait {
							s.Feed(c)
						} else {
							s.Pass(c)
						}
					}
					got := end{s.Complete(), s.Errored(), s.Open(), usage(s.Usage())}
					if !hold {
						got.Open = want.Open // an open event that is held back isn't open to the caller
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("chunks of %d, hold %v (-want +got):\n%s", size, hold, d)
					}
					if s.Errored() && !strings.Contains(string(bytes.Join(s.Frames(), nil)), "error") {
						t.Errorf("chunks of %d: the error is not in %q", size, s.Frames())
					}
				}
			}
		})
	}
	unknown := [3]int64{-1, -1, -1}

	f("whole chat", engine.OpenAIChat, roleFrame+contentFrame+finishFrame+usageFrame+doneFrame,
		end{true, false, false, [3]int64{12, 3, 8}})
	f("chat without end mark", engine.OpenAIChat, contentFrame+finishFrame, end{true, false, false, unknown})
	f("chat without finish reason", engine.OpenAIChat, contentFrame+doneFrame, end{true, false, false, unknown})
	f("cut chat", engine.OpenAIChat, contentFrame+contentFrame, end{false, false, false, unknown})
	f("chat cut in a frame", engine.OpenAIChat, contentFrame+contentFrame[:20], end{false, false, true, unknown})
	f("error in chat", engine.OpenAIChat, contentFrame+errorFrame, end{false, true, false, unknown})
	f("error event in chat", engine.OpenAIChat, contentFrame+"event: error\ndata: busy\n\n"+`: "error"`+"\n\n", end{false, true, false, unknown})
	f("chat that speaks of an end", engine.OpenAIChat,
		contentFrame+`data: {"choices":[{"delta":{"content":"\"error\":1 [DONE] \"usage\":2"},"finish_reason":null}]}`+"\n\n"+
			`data: {"choices":[{"delta":{"content":"error"}}]}`+"\n\n"+`data: {"choices":[{"delta":{"content":"[DONE]"}}]}`+"\n\n",
		end{false, false, false, unknown})
	f("usage in every frame", engine.OpenAIChat,
		contentFrame+strings.Replace(contentFrame, `"usage":null`, `"usage" : {"prompt_tokens":1,"completion_tokens":1}`, 1)+
			strings.Replace(contentFrame, `"usage":null`, `"usage": {"prompt_tokens":1,"completion_tokens":2}`, 1),
		end{false, false, false, [3]int64{1, 2, -1}})
	f("usage beside the finish reason", engine.OpenAIChat,
		strings.Replace(contentFrame, `"usage":null`, `"usage":{"prompt_tokens":1,"completion_tokens":1}`, 1)+contentFrame+
			`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":9}}`+"\n\n",
		end{true, false, false, [3]int64{1, 9, -1}})
	f("usage that is no count", engine.OpenAIChat,
		contentFrame+`data: {"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":"3","prompt_tokens_details":null}}`+"\n\n",
		end{false, false, false, unknown})

	f("whole message", engine.AnthropicMessages, startEvent+textEvent+deltaEvent+stopEvent,
		end{true, false, false, [3]int64{130, 7, 100}})
	f("message without its stop", engine.AnthropicMessages, startEvent+textEvent+deltaEvent,
		end{false, false, false, [3]int64{130, 7, 100}})
	f("cut message", engine.AnthropicMessages, startEvent+textEvent, end{false, false, false, [3]int64{130, -1, 100}})
	f("error in a message", engine.AnthropicMessages, startEvent+textEvent+overloaded,
		end{false, true, false, [3]int64{130, -1, 100}})
	completed := "event: response.completed\ndata: " + `{"type":"response.completed","response":{"model":"m","output":[],"usage":{"input_tokens":9,"output_tokens":4,"input_tokens_details":{"cached_tokens":1}}}}` + "\n\n"
	f("whole response", engine.OpenAIResponses, responseText+responseText+completed, end{true, false, false, [3]int64{9, 4, 1}})
	f("cut response", engine.OpenAIResponses, responseText+responseText, end{false, false, false, unknown})
	f("failed response", engine.OpenAIResponses, responseText+`data: {"type":"response.failed","response":{"error":{"code":"x"}}}`+"\n\n",
		end{false, true, false, unknown})
	f("whole content", engine.GeminiGenerate,
		geminiText+geminiText+`data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"thoughtsTokenCount":5}}`+"\n\n",
		end{true, false, false, [3]int64{3, 9, -1}})
	f("cut content", engine.GeminiGenerate, geminiText+geminiText, end{false, false, false, [3]int64{1, -1, -1}})
	f("error in content", engine.GeminiGenerate, geminiText+errorFrame, end{false, true, false, [3]int64{1, -1, -1}})
	f("spoken stream", engine.OpenAIAudio, `data: {"type":"speech.audio.delta","audio":"AA"}`+"\n\n"+
		`data: {"type":"speech.audio.done","usage":{"input_tokens":2,"output_tokens":5}}`+"\n\n", end{true, false, false, [3]int64{2, 5, -1}})
	f("cut picture", engine.OpenAIImages, `data: {"type":"image_generation.partial_image","b64_json":"AA"}`+"\n\n", end{false, false, false, unknown})

	f("message without event lines", engine.AnthropicMessages,
		strings.NewReplacer("event: message_start\n", "", "event: content_block_delta\n", "", "event: message_delta\n", "", "event: message_stop\n", "").
			Replace(startEvent+textEvent+deltaEvent+stopEvent),
		end{true, false, false, [3]int64{130, 7, 100}})
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	f := func(name, in string, class engine.Class, reason string, frames ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 13, max(1, len(in))} {
				s := NewStream(engine.OpenAIChat, acceptM)
				for c := range slices.Chunk([]byte(in), size) {
					if s.Feed(c) != Wait {
						break
					}
				}
				if got := s.End(); got != Discard {
					t.Fatalf("chunks of %d: verdict is %v, want discard", size, got)
				}
				if g := s.Finding(); g.Class != class || g.Reason.String() != reason {
					t.Errorf("chunks of %d: finding is %v %v, want %v %s", size, g.Class, g.Reason, class, reason)
				}
				if d := cmp.Diff(frames, toStrings(s.Frames())); d != "" {
					t.Errorf("chunks of %d: frames (-want +got):\n%s", size, d)
				}
			}
		})
	}
	schema, none := engine.ClassSchemaInvalid, engine.ClassUnknown

	f("error frame", roleFrame+errorFrame, none, "", roleFrame, errorFrame)
	f("other model at once", otherContent, engine.ClassContractViolation, "model_mismatch", otherContent)
	f("other model early", strings.Replace(roleFrame, `"m"`, `"other"`, 1), engine.ClassContractViolation, "model_mismatch",
		strings.Replace(roleFrame, `"m"`, `"other"`, 1))
	f("other model late", roleFrame+otherContent, engine.ClassContractViolation, "model_mismatch", roleFrame, otherContent)
	f("nothing", "", engine.ClassProviderTransient, "truncated")
	f("comments", ": a\n\n: b\n\n", engine.ClassProviderTransient, "truncated", ": a\n\n", ": b\n\n")
	f("role only", roleFrame, engine.ClassProviderTransient, "truncated", roleFrame)
	f("lost frame", roleFrame+strings.TrimSuffix(contentFrame, "\n"), engine.ClassProviderTransient, "truncated",
		roleFrame, strings.TrimSuffix(contentFrame, "\n"))
	f("lost error", roleFrame+strings.TrimSuffix(errorFrame, "\n\n"), none, "", roleFrame, strings.TrimSuffix(errorFrame, "\n\n"))
	f("strange objects", "data: {\"a\":1}\n\n", schema, "missing_fields", "data: {\"a\":1}\n\n")
	f("plain text", "upstream connect error\n", schema, "wrong_content_type", "upstream connect error\n")
	f("json completion", jsonAnswer, schema, "wrong_content_type", jsonAnswer)
	f("json error", jsonError, none, "", jsonError)
	f("json error without envelope", `{"code":"busy","detail":"m"}`, none, "", `{"code":"busy","detail":"m"}`)
	f("cut json", jsonAnswer[:30], schema, "truncated_json", jsonAnswer[:30])
	f("bad json", `{"a":]}`, schema, "bad_json", `{"a":]`)
	f("page", errorPage, schema, "html_body", strings.TrimSpace(errorPage))
	f("page behind a mark", "\xEF\xBB\xBF\n <p>", schema, "html_body", "\xEF\xBB\xBF\n <p>")
}

func TestNamelessAnswerIsAccepted(t *testing.T) {
	t.Parallel()
	s := NewStream(engine.OpenAIChat, func(string) bool { return false })
	if got := s.Feed([]byte(`data: {"model":"","choices":[{"delta":{"content":"a"}}]}` + "\n\n")); got != Commit {
		t.Errorf("verdict is %v, want commit", got)
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	s := NewStream(engine.OpenAIChat, nil)
	ping := []byte(": " + strings.Repeat("x", 1000) + "\n\n")
	fed := 0
	for !s.Full() {
		if got := s.Feed(ping); got != Wait {
			t.Fatalf("verdict is %v, want wait", got)
		}
		fed += len(ping)
	}
	if fed < MaxHeld || fed > MaxHeld+len(ping) || len(s.Held()) != fed {
		t.Errorf("full after %d bytes with %d held", fed, len(s.Held()))
	}
	s.Pass([]byte(contentFrame + finishFrame))
	if !s.Complete() || s.Held() != nil {
		t.Errorf("complete %v with %d bytes held, want a watched end and none", s.Complete(), len(s.Held()))
	}
}

func TestForeignBytesAreNeverFull(t *testing.T) {
	t.Parallel()
	s := NewStream(engine.OpenAIChat, nil)
	s.Feed([]byte(`{"a":"`))
	for range MaxHeld / 1000 {
		if s.Full() || !s.Foreign() {
			t.Fatalf("full %v, foreign %v", s.Full(), s.Foreign())
		}
		s.Feed(bytes.Repeat([]byte("x"), 1000))
	}
	if got := s.Feed(bytes.Repeat([]byte("x"), 1000)); got != Discard || s.Finding() != schemaInvalid("truncated_json") {
		t.Errorf("%v %v, want it discarded at the bound", got, s.Finding())
	}
}

func TestFrameOverTheBoundPasses(t *testing.T) {
	t.Parallel()
	s := NewStream(engine.OpenAIChat, nil)
	s.Feed([]byte(contentFrame))
	s.Pass([]byte(`data: {"choices":[{"delta":{"images":["`))
	for range 200 {
		s.Pass(bytes.Repeat([]byte("A"), 10_000))
	}
	s.Pass([]byte(`"]}}]}` + "\n\n" + finishFrame))
	if !s.Complete() || s.Errored() || s.Open() {
		t.Errorf("complete %v, errored %v, open %v", s.Complete(), s.Errored(), s.Open())
	}
}

func TestDeepFrame(t *testing.T) {
	t.Parallel()
	s := NewStream(engine.OpenAIChat, nil)
	if got := s.Feed([]byte("data: " + strings.Repeat("[", 200_000) + "\n\n")); got != Discard || s.Finding() != schemaInvalid("bad_json") {
		t.Errorf("%v %v, want bad_json", got, s.Finding())
	}
}

// TestChunking holds that the frame that decides, and all that is known at the end,
// don't depend on how the stream was cut.
func TestChunking(t *testing.T) {
	t.Parallel()
	frames := map[engine.Endpoint][]string{
		engine.OpenAIChat:        {roleFrame, contentFrame, finishFrame, usageFrame, doneFrame, errorFrame, otherContent, ": c\n\n", "\n", "data: {\"a\":1}\n\n", "junk\r\r", "data: {]\r\n\r\n"},
		engine.AnthropicMessages: {startEvent, textEvent, deltaEvent, stopEvent, overloaded, ": c\n\n", "event: ping\ndata: {}\n\n", doneFrame, contentFrame},
		engine.OpenAIResponses:   {"data: {\"type\":\"response.created\"}\n\n", responseText, errorFrame, doneFrame, contentFrame, ": c\n\n"},
		engine.GeminiGenerate:    {geminiText, errorFrame, "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\n\r\n", ": c\n\n", "[{}]"},
	}
	type outcome struct {
		At                int // frames that were fed when the verdict came
		Verdict           Verdict
		Finding           engine.Finding
		Model             string
		Complete, Errored bool
		Open              bool
		Usage             [3]int64
	}
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom([]engine.Endpoint{engine.OpenAIChat, engine.AnthropicMessages, engine.OpenAIResponses, engine.GeminiGenerate}).Draw(t, "endpoint")
		parts := rapid.SliceOfN(rapid.SampledFrom(frames[e]), 0, 8).Draw(t, "frames")
		in := []byte(strings.Join(parts, ""))
		run := func(next func(left int) int) outcome {
			s := NewStream(e, acceptM)
			rest := in
			for len(rest) > 0 && s.verdict != Discard {
				n := next(len(rest))
				if s.verdict == Wait {
					if s.Feed(rest[:n]) == Commit {
						s.Release() // as the driver does
					}
				} else {
					s.Pass(rest[:n])
				}
				rest = rest[n:]
			}
			at := 0
			if s.verdict == Discard {
				at = len(s.ends)
			}
			v := s.End()
			return outcome{at, v, s.Finding(), s.Model(), s.Complete(), s.Errored(), v == Commit && s.Open(), usage(s.Usage())}
		}
		want := run(func(int) int { return 1 })
		got := run(func(left int) int { return rapid.IntRange(1, left).Draw(t, "chunk") })
		if d := cmp.Diff(want, got, cmp.Comparer(func(a, b engine.Finding) bool { return a == b })); d != "" {
			t.Fatalf("%q (-byte by byte +chunks):\n%s", in, d)
		}
	})
}

func FuzzStream(f *testing.F) {
	for _, s := range []string{roleFrame + contentFrame + usageFrame + doneFrame, startEvent + textEvent + overloaded, jsonError, errorPage, "\xEF\xBB\xBFdata\r\r"} {
		f.Add([]byte(s), uint8(engine.OpenAIChat), uint8(5))
		f.Add([]byte(s), uint8(engine.AnthropicMessages), uint8(40))
	}
	f.Fuzz(func(t *testing.T, in []byte, e, size uint8) {
		s := NewStream(engine.Endpoint(e%10), acceptM)
		fed := 0
		for c := range slices.Chunk(in, int(size)+1) {
			if s.verdict != Wait {
				break
			}
			s.Feed(c)
			fed += len(c)
		}
		if !bytes.Equal(s.Held(), in[:fed]) {
			t.Fatalf("held is %q, want %q", s.Held(), in[:fed])
		}
		if joined := bytes.Join(s.Frames(), nil); !bytes.HasPrefix(s.Held(), joined) {
			t.Fatalf("frames are %q, want a beginning of %q", joined, s.Held())
		}
		if v := s.End(); v == Wait {
			t.Fatal("no verdict at the end")
		} else if v != Discard && s.Finding() != (engine.Finding{}) {
			t.Fatalf("finding %v with verdict %v", s.Finding(), v)
		}
		s.Pass(in[fed:])
		s.Usage()
	})
}
