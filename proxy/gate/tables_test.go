package gate

import (
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// rows check what one frame alone says. Every row is a stream of its own, and a row
// with an error is one after commit, too.
func rows(t *testing.T, e engine.Endpoint) func(name, data string, want Verdict, reason string) {
	first := map[engine.Endpoint]string{
		engine.OpenAIChat: contentFrame, engine.AnthropicMessages: textEvent,
		engine.OpenAIResponses: responseText, engine.GeminiGenerate: geminiText,
	}[e]
	return func(name, data string, want Verdict, reason string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if first != "" && want == Discard && reason == "" {
				s := NewStream(e, nil)
				s.Feed([]byte(first))
				s.Pass([]byte(data + "\n\n"))
				if !s.Errored() {
					t.Errorf("%s: no error after commit", data)
				}
			}
			s := NewStream(e, nil)
			if got := s.Feed([]byte(data + "\n\n")); got != want || s.Finding().Reason.String() != reason {
				t.Errorf("%s: %v %q, want %v %q", data, got, s.Finding().Reason, want, reason)
			}
		})
	}
}

func TestOpenAIChatTable(t *testing.T) {
	t.Parallel()
	row := rows(t, engine.OpenAIChat)
	delta := func(d string) string { return `data: {"choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` }
	finish := func(f string) string { return `data: {"choices":[{"index":0,"delta":{},"finish_reason":` + f + `}]}` }

	// One row for each member that holds output.
	outputs := map[string]string{
		"content":           `{"content":"a"}`,
		"refusal":           `{"refusal":"No."}`,
		"tool_calls":        `{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}`,
		"function_call":     `{"function_call":{"name":"f"}}`,
		"reasoning_content": `{"content":null,"reasoning_content":"Hm"}`,
		"reasoning":         `{"content":"","reasoning":"Hm"}`,
		"reasoning_details": `{"reasoning_details":[{"type":"reasoning.text","text":"Hm"}]}`,
		"thinking":          `{"thinking":"Hm"}`,
		"audio":             `{"audio":{"id":"audio_1","data":"AAAA"}}`,
		"images":            `{"images":[{"type":"image_url","image_url":{"url":"data:,"}}]}`,
	}
	for _, name := range chatOutput {
		if outputs[name] == "" {
			t.Errorf("%s has no row here", name)
			continue
		}
		row("output in "+name, delta(outputs[name]), Commit, "")
	}
	row("content parts", delta(`{"content":[{"type":"text","text":"a"}]}`), Commit, "")
	row("tool arguments", delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`), Commit, "")
	row("white space is content", delta(`{"content":" "}`), Commit, "")
	row("second choice", `data: {"choices":[{"index":0,"delta":{}},{"index":1,"delta":{"content":"a"}}]}`, Commit, "")
	row("message in place of delta", `data: {"choices":[{"message":{"content":"a"}}]}`, Commit, "")
	row("crlf and event name", "event: message\r\n"+delta(`{"content":"a"}`)+"\r\n\r", Commit, "")

	for _, f := range []string{"stop", "length", "content_filter", "tool_calls", "function_call"} {
		row("finish "+f, finish(`"`+f+`"`), Commit, "")
	}

	row("role only", delta(`{"role":"assistant"}`), Wait, "")
	row("role and empty content", delta(`{"role":"assistant","content":"","refusal":null}`), Wait, "")
	row("empty delta", delta(`{}`), Wait, "")
	row("null delta", delta(`null`), Wait, "")
	row("empty tool calls", delta(`{"tool_calls":[]}`), Wait, "")
	row("tool call with an id only", delta(`{"tool_calls":[{"index":0,"id":"call_1","type":"function"}]}`), Wait, "")
	row("empty reasoning", delta(`{"reasoning_content":"","reasoning":null}`), Wait, "")
	row("empty content parts", delta(`{"content":[{"type":"text","text":""}]}`), Wait, "")
	row("audio id only", delta(`{"audio":{"id":"audio_1","expires_at":1760000000}}`), Wait, "")
	row("empty finish reason", finish(`""`), Wait, "")
	row("empty choices", `data: {"choices":[],"model":""}`, Wait, "")
	row("usage only", `data: {"choices":[],"usage":{"prompt_tokens":1}}`, Wait, "")
	row("error null", `data: {"error":null,"choices":[]}`, Wait, "")
	row("error empty", `data: {"error":"","choices":[]}`, Wait, "")
	row("comment", ": OPENROUTER PROCESSING", Wait, "")
	row("blank", "", Wait, "")
	row("retry field", "retry: 3000", Wait, "")
	row("event without data", "event: ping", Wait, "")
	row("empty data", "data:", Wait, "")
	row("unknown object", `data: {"progress":0.5}`, Wait, "")
	row("text that speaks of an error", `data: {"choices":[{"delta":{"role":"\"error\":{}"}}]}`, Wait, "")

	row("error object", `data: {"error":{"message":"m","type":"server_error"}}`, Discard, "")
	row("error string", `data: {"error":"Too busy"}`, Discard, "")
	row("error beside content", `data: {"error":{"code":502},"choices":[{"delta":{"content":"a"}}]}`, Discard, "")
	row("error in a choice", `data: {"choices":[{"error":{"code":502},"delta":{"content":""}}]}`, Discard, "")
	row("finish error", finish(`"error"`), Discard, "")
	row("error event", "event: error\ndata: {\"message\":\"m\"}", Discard, "")
	row("error event without json", "event: error\ndata: busy", Discard, "")
	row("error event without data", "event: error", Discard, "")
	row("error type", `data: {"type":"error","message":"m"}`, Discard, "")
	row("error without envelope", `data: {"object":"error","message":"m","code":50001}`, Discard, "")
	row("error in an array", `data: [{"error":{"code":503}}]`, Discard, "")
	row("error of groq", `data: {"x_groq":{"error":"over capacity"},"choices":[]}`, Discard, "")
	row("status of minimax", `data: {"choices":null,"base_resp":{"status_code":1002}}`, Discard, "")

	row("end mark", "data: [DONE]", Discard, "empty_answer")
	row("bad json", `data: {"choices":[`, Discard, "bad_json")
	row("html in a data line", "data: <html></html>", Discard, "html_body")
	row("anthropic stream", `data: {"type":"message_start","message":{}}`, Discard, "wrong_protocol")
	row("responses stream", `data: {"type":"response.created","response":{}}`, Discard, "wrong_protocol")
	row("gemini stream", `data: {"candidates":[]}`, Discard, "wrong_protocol")
}

// TestErrorWithoutEnvelope is apart: such a frame is told by what is missing in it,
// which a glance in passing can't see.
func TestErrorWithoutEnvelope(t *testing.T) {
	t.Parallel()
	s := NewStream(engine.OpenAIChat, nil)
	if got := s.Feed([]byte(`data: {"detail":"Not found"}` + "\n\n")); got != Discard || s.Finding() != (engine.Finding{}) {
		t.Errorf("%v %v, want it discarded without a finding", got, s.Finding())
	}
}

func TestAnthropicMessagesTable(t *testing.T) {
	t.Parallel()
	row := rows(t, engine.AnthropicMessages)
	delta := func(d string) string {
		return "event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":` + d + `}`
	}
	start := func(b string) string {
		return "event: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":` + b + `}`
	}

	// One row at least for each event of the table.
	events := map[string]func(kind string){
		"message_start": func(kind string) {
			row(kind, `data: {"type":"message_start","message":{"id":"m","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":1}}}`, Wait, "")
			row(kind+" with content", `data: {"type":"message_start","message":{"content":[{"type":"text","text":"a"}]}}`, Commit, "")
		},
		"content_block_start": func(kind string) {
			row(kind+" of a text", start(`{"type":"text","text":""}`), Wait, "")
			row(kind+" with a text", start(`{"type":"text","text":"a"}`), Commit, "")
			row(kind+" of a thought", start(`{"type":"thinking","thinking":"","signature":""}`), Wait, "")
			row(kind+" of a redacted thought", start(`{"type":"redacted_thinking","data":"Ev"}`), Commit, "")
			row(kind+" of a tool call", start(`{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`), Commit, "")
			row(kind+" of a provider's tool", start(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`), Commit, "")
			row(kind+" of a result", start(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`), Commit, "")
		},
		"content_block_delta": func(kind string) {
			row(kind+" text", delta(`{"type":"text_delta","text":"a"}`), Commit, "")
			row(kind+" thought", delta(`{"type":"thinking_delta","thinking":"Hm"}`), Commit, "")
			row(kind+" arguments", delta(`{"type":"input_json_delta","partial_json":"{"}`), Commit, "")
			row(kind+" signature", delta(`{"type":"signature_delta","signature":"Ev"}`), Commit, "")
			row(kind+" empty text", delta(`{"type":"text_delta","text":""}`), Wait, "")
			row(kind+" empty arguments", delta(`{"type":"input_json_delta","partial_json":""}`), Wait, "")
		},
		"content_block_stop": func(kind string) {
			row(kind, `data: {"type":"content_block_stop","index":0}`, Wait, "")
		},
		"message_delta": func(kind string) {
			for _, r := range []string{"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"} {
				row(kind+" "+r, `data: {"type":"message_delta","delta":{"stop_reason":"`+r+`"}}`, Commit, "")
			}
			row(kind+" without a reason", `data: {"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":0}}`, Wait, "")
		},
		"message_stop": func(kind string) {
			row(kind, `data: {"type":"message_stop"}`, Discard, "empty_answer")
		},
		"ping": func(kind string) {
			row(kind, "event: ping\ndata: {\"type\":\"ping\"}", Wait, "")
			row(kind+" without type", "event: ping\ndata: {}", Wait, "")
		},
		"error": func(kind string) {
			row(kind, "event: error\ndata: "+`{"type":"error","error":{"type":"overloaded_error"}}`, Discard, "")
			row(kind+" without event line", `data: {"type":"error","error":{"type":"api_error"}}`, Discard, "")
			row(kind+" without envelope", `data: {"type":"error","message":"m"}`, Discard, "")
			row(kind+" of another protocol", `data: {"error":{"message":"m"}}`, Discard, "")
			row(kind+" without json", "event: error\ndata: busy", Discard, "")
		},
	}
	for _, e := range messageEvents {
		if events[e.kind] == nil {
			t.Errorf("%s has no row here", e.kind)
			continue
		}
		events[e.kind](e.kind)
	}
	row("new event", `data: {"type":"message_hint","hint":"x"}`, Wait, "")
	row("another protocol's end mark", "data: [DONE]", Wait, "")
	row("comment", ": ping", Wait, "")
	row("untyped", `data: {"a":1}`, Wait, "")
	row("error null", `data: {"type":"ping","error":null}`, Wait, "")
	row("chat stream", `data: {"object":"chat.completion.chunk","choices":[]}`, Discard, "wrong_protocol")
	row("responses stream", `data: {"type":"response.created","response":{}}`, Discard, "wrong_protocol")
	row("bad json", `data: {"type":`, Discard, "bad_json")
}

func TestOtherEndpoints(t *testing.T) {
	t.Parallel()
	row := rows(t, engine.OpenAIEmbeddings)
	row("error", `data: {"type":"error","message":"m"}`, Discard, "")
	row("end mark", "data: [DONE]", Discard, "empty_answer")

	row = rows(t, engine.OpenAIImages)
	row("partial image", `data: {"type":"image_generation.partial_image","b64_json":"AA","partial_image_index":0}`, Commit, "")
	row("image", `data: {"type":"image_edit.completed","b64_json":"AA"}`, Commit, "")
	row("image without one", `data: {"type":"image_generation.partial_image","b64_json":""}`, Wait, "")
	row("image error", `data: {"type":"error","error":{"code":"moderation_blocked"}}`, Discard, "")
	row("chat stream", `data: {"choices":[]}`, Discard, "wrong_protocol")

	row = rows(t, engine.OpenAIAudio)
	row("heard", `data: {"type":"transcript.text.delta","delta":"a"}`, Commit, "")
	row("heard nothing yet", `data: {"type":"transcript.text.delta","delta":""}`, Wait, "")
	row("silence", `data: {"type":"transcript.text.done","text":""}`, Commit, "")
	row("spoken", `data: {"type":"speech.audio.delta","audio":"AA"}`, Commit, "")
	row("progress", `data: {"type":"transcript.progress"}`, Wait, "")
	row("untyped", `data: {"a":1}`, Wait, "")
	row("error event", "event: error\ndata: busy", Discard, "")
}

func TestOpenAIResponsesTable(t *testing.T) {
	t.Parallel()
	row := rows(t, engine.OpenAIResponses)
	event := func(kind, members string) string {
		return "event: " + kind + "\ndata: " + `{"type":"` + kind + `","sequence_number":1` + members + `}`
	}
	terminal := map[string]func(kind string){
		"error": func(kind string) {
			row(kind, event(kind, `,"code":"rate_limit_exceeded","message":"m"`), Discard, "")
			row(kind+" with an envelope", event(kind, `,"error":{"code":"x"}`), Discard, "")
		},
		"response.failed":    func(kind string) { row(kind, event(kind, `,"response":{"error":{"code":"x"}}`), Discard, "") },
		"response.cancelled": func(kind string) { row(kind, event(kind, `,"response":{}`), Discard, "") },
		"response.completed": func(kind string) {
			row(kind+" empty", event(kind, `,"response":{"status":"completed","output":[]}`), Discard, "empty_answer")
			row(kind, event(kind, `,"response":{"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}`), Commit, "")
		},
		"response.incomplete": func(kind string) {
			row(kind, event(kind, `,"response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`), Commit, "")
		},
	}
	for _, e := range responseEvents {
		if terminal[e.kind] == nil {
			t.Errorf("%s has no row here", e.kind)
			continue
		}
		terminal[e.kind](e.kind)
	}
	for _, kind := range []string{"output_text", "refusal", "function_call_arguments", "custom_tool_call_input", "reasoning_text", "reasoning_summary_text", "audio.transcript"} {
		row(kind, event("response."+kind+".delta", `,"delta":"a"`), Commit, "")
		row(kind+" empty", event("response."+kind+".delta", `,"delta":""`), Wait, "")
	}
	row("text without deltas", event("response.output_text.done", `,"text":"a"`), Commit, "")
	row("image", event("response.image_generation_call.partial_image", `,"partial_image_b64":"AA"`), Commit, "")
	row("function call", event("response.output_item.added", `,"item":{"type":"function_call","name":"f","arguments":""}`), Commit, "")
	row("provider's tool", event("response.output_item.added", `,"item":{"type":"web_search_call","status":"in_progress"}`), Commit, "")
	row("message begins", event("response.output_item.added", `,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`), Wait, "")
	row("reasoning begins", event("response.output_item.added", `,"item":{"id":"rs_1","type":"reasoning","summary":[]}`), Wait, "")
	row("part begins", event("response.content_part.added", `,"part":{"type":"output_text","text":""}`), Wait, "")
	row("created", event("response.created", `,"response":{"status":"in_progress","error":null,"output":[],"instructions":"i"}`), Wait, "")
	row("in progress", event("response.in_progress", `,"response":{"status":"in_progress","output":[]}`), Wait, "")
	row("queued", event("response.queued", `,"response":{"status":"queued","output":[]}`), Wait, "")
	row("keep-alive", event("keepalive", ""), Wait, "")
	row("chat stream", `data: {"choices":[]}`, Discard, "wrong_protocol")
	row("messages stream", event("message_start", `,"message":{}`), Discard, "wrong_protocol")
}

func TestGeminiTable(t *testing.T) {
	t.Parallel()
	row := rows(t, engine.GeminiGenerate)
	parts := func(p string) string {
		return `data: {"candidates":[{"content":{"role":"model","parts":[` + p + `]}}]}`
	}
	row("text", parts(`{"text":"a"}`), Commit, "")
	row("thought", parts(`{"text":"Hm","thought":true}`), Commit, "")
	row("function call", parts(`{"functionCall":{"name":"f","args":{}}}`), Commit, "")
	row("image", parts(`{"inlineData":{"mimeType":"image/png","data":"AA"}}`), Commit, "")
	for _, reason := range []string{"STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "SPII"} {
		row("finish "+reason, `data: {"candidates":[{"finishReason":"`+reason+`"}]}`, Commit, "")
	}
	for _, reason := range brokenCalls {
		row("finish "+reason, `data: {"candidates":[{"content":{},"finishReason":"`+reason+`"}]}`, Discard, "malformed_tool_call")
	}
	row("empty text", parts(`{"text":""}`), Wait, "")
	row("no parts", parts(``), Wait, "")
	row("no candidates", `data: {"candidates":[],"usageMetadata":{"promptTokenCount":1}}`, Wait, "")
	row("error", `data: {"error":{"code":503,"status":"UNAVAILABLE"}}`, Discard, "")
	row("error in an array", `data: [{"error":{"code":503}}]`, Discard, "")
	row("blocked prompt", `data: {"promptFeedback":{"blockReason":"SAFETY"}}`, Discard, "")
	row("feedback without a block", `data: {"candidates":[],"promptFeedback":{"safetyRatings":[]}}`, Wait, "")
	row("chat stream", `data: {"choices":[]}`, Discard, "wrong_protocol")
}

func TestOpenAICompletionsTable(t *testing.T) {
	t.Parallel()
	row := rows(t, engine.OpenAICompletions)
	row("text", `data: {"choices":[{"index":0,"text":"a","finish_reason":null}]}`, Commit, "")
	row("empty text", `data: {"choices":[{"index":0,"text":"","finish_reason":null}]}`, Wait, "")
	row("finish", `data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}`, Commit, "")
	row("error", `data: {"error":{"message":"m"}}`, Discard, "")
	row("end mark", "data: [DONE]", Discard, "empty_answer")
}
