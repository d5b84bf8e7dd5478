package gate

import (
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestWhole(t *testing.T) {
	t.Parallel()
	f := func(e engine.Endpoint, contentType, body string, reason string, errorBody bool) {
		t.Helper()
		a := Whole(e, contentType, []byte(body), acceptM)
		if a.Finding.Reason.String() != reason || a.ErrorBody != errorBody {
			t.Errorf("%v %.80q: %q, error body %v; want %q, %v", e, body, a.Finding.Reason, a.ErrorBody, reason, errorBody)
		}
	}
	chat := func(message string) string { return `{"model":"m","choices":[{"message":` + message + `}]}` }
	const j = "application/json"

	f(engine.OpenAIChat, j, jsonAnswer, "", false)
	f(engine.OpenAIChat, j, "\xEF\xBB\xBF\n"+jsonAnswer, "", false)
	f(engine.OpenAIChat, "text/event-stream", jsonAnswer, "", false)
	f(engine.OpenAIChat, "", jsonAnswer, "", false)
	f(engine.OpenAIChat, j, chat(`{"content":null,"refusal":"No."}`), "", false)
	f(engine.OpenAIChat, j, chat(`{"content":null,"tool_calls":[{"id":"c","function":{"name":"f"}}]}`), "", false)
	f(engine.OpenAIChat, j, chat(`{"content":""}`), "empty_answer", false)
	f(engine.OpenAIChat, j, `{"choices":[]}`, "empty_answer", false)
	f(engine.OpenAIChat, j, `{"choices":[{"finish_reason":"stop"}]}`, "", false)
	f(engine.OpenAIChat, j, `{"model":"m","choices":{}}`, "missing_fields", false)
	f(engine.OpenAIChat, j, `{}`, "missing_fields", false)
	f(engine.OpenAIChat, j, `[]`, "missing_fields", false)
	f(engine.OpenAIChat, j, `"text"`, "missing_fields", false)
	f(engine.OpenAIChat, j, strings.Replace(jsonAnswer, `"m"`, `"other"`, 1), "model_mismatch", false)
	f(engine.OpenAIChat, j, `{"type":"message","model":"m","content":[],"stop_reason":null}`, "wrong_protocol", false)
	f(engine.OpenAIChat, j, `{"object":"response","output":[]}`, "wrong_protocol", false)
	f(engine.OpenAIChat, j, " \r\n", "empty_body", false)
	f(engine.OpenAIChat, j, "<!doctype html>", "html_body", false)
	f(engine.OpenAIChat, "text/html; charset=utf-8", "Sign in", "html_body", false)
	f(engine.OpenAIChat, j, jsonAnswer[:len(jsonAnswer)-1], "truncated_json", false)
	f(engine.OpenAIChat, j, `{"a":1]`, "bad_json", false)
	f(engine.OpenAIChat, j, "oops", "bad_json", false)
	f(engine.OpenAIChat, "text/plain", "oops", "wrong_content_type", false)
	f(engine.OpenAIChat, "text/event-stream", contentFrame, "wrong_content_type", false)
	f(engine.OpenAIChat, j, strings.Repeat("[", 100_000), "bad_json", false)
	f(engine.OpenAIChat, j, jsonError, "", true)
	f(engine.OpenAIChat, j, `[`+jsonError+`]`, "", true)
	f(engine.OpenAIChat, j, `{"detail":"busy"}`, "", true)
	f(engine.OpenAIImages, "text/plain", jsonError, "", true)
	f(engine.OpenAIImages, "", "upstream connect error", "bad_json", false)
	f(engine.OpenAIImages, "text/plain", "<html>Bad gateway</html>", "html_body", false)
	f(engine.OpenAIAudio, "text/plain", "hello there", "", false)
	f(engine.OpenAIAudio, "text/plain", "<html>Bad gateway</html>", "html_body", false)
	f(engine.OpenAIAudio, "", jsonError, "", true)
	f(engine.OpenAIChat, j, `{"error":null,"choices":[{"finish_reason":"stop"}]}`, "", false)

	f(engine.AnthropicMessages, j, `{"type":"message","model":"m","content":[{"type":"text","text":"a"}]}`, "", false)
	f(engine.AnthropicMessages, j, `{"type":"message","content":[],"stop_reason":"refusal"}`, "", false)
	f(engine.AnthropicMessages, j, `{"type":"message","content":[],"stop_reason":null}`, "empty_answer", false)
	f(engine.AnthropicMessages, j, `{"type":"message","model":"other","content":[{"type":"text","text":"a"}]}`, "model_mismatch", false)
	f(engine.AnthropicMessages, j, `{"type":"message"}`, "missing_fields", false)
	f(engine.AnthropicMessages, j, `{"type":"error","error":{"type":"api_error"}}`, "", true)
	f(engine.AnthropicMessages, j, `{"message":"busy"}`, "", true)
	f(engine.AnthropicMessages, j, jsonAnswer, "wrong_protocol", false)

	f(engine.OpenAIResponses, j, `{"object":"response","model":"m","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}`, "", false)
	f(engine.OpenAIResponses, j, `{"model":"m","status":"queued","output":[]}`, "", false)
	f(engine.OpenAIResponses, j, `{"model":"m","status":"completed","output":[]}`, "empty_answer", false)
	f(engine.OpenAIResponses, j, `{"model":"m","status":"failed","output":[]}`, "", true)
	f(engine.OpenAIResponses, j, jsonAnswer, "wrong_protocol", false)
	f(engine.OpenAIResponses, j, `{"model":"m"}`, "missing_fields", false)
	f(engine.OpenAICompletions, j, `{"model":"m","choices":[{"text":"a"}]}`, "", false)
	f(engine.GeminiGenerate, j, `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"modelVersion":"other"}`, "model_mismatch", false)
	f(engine.GeminiGenerate, j, `{}`, "missing_fields", false)

	f(engine.OpenAIEmbeddings, j, `{"data":[{"embedding":[0.5]}],"model":"m"}`, "", false)
	f(engine.OpenAIEmbeddings, j, `{"data":[],"model":"m"}`, "empty_answer", false)
	f(engine.OpenAIEmbeddings, j, `{"model":"m"}`, "missing_fields", false)
	f(engine.OpenAIEmbeddings, j, `{"detail":"Not found"}`, "", true)
	f(engine.OpenAIEmbeddings, j, jsonAnswer, "wrong_protocol", false)
	f(engine.OpenAIEmbeddings, j, `{"data":[{"embedding":[0.5`, "truncated_json", false)
	f(engine.OpenAIEmbeddings, j, `{"data":[{}],"model":"other"}`, "model_mismatch", false)
	f(engine.OpenAIImages, j, `{"created":1,"data":[{"b64_json":"AA"}]}`, "", false)
	f(engine.OpenAIImages, j, `{"created":1}`, "missing_fields", false)
	f(engine.OpenAIImages, "text/html", errorPage, "html_body", false)
	f(engine.OpenAIAudio, j, `{"text":""}`, "", false)
	f(engine.OpenAIAudio, j, `{"created":1}`, "missing_fields", false)
	f(engine.OpenAIAudio, "text/plain; charset=utf-8", "1\n00:00 --> 00:01\nHello", "", false)
	f(engine.GeminiGenerate, j, `[{"candidates":[]}]`, "missing_fields", false)
	f(engine.OpenAIAudio, "audio/mpeg", "\xFF\xFB", "", false)
	f(engine.OpenAIAudio, "audio/mpeg", "", "empty_body", false)
	f(engine.OpenAIAudio, j, jsonError, "", true)
}

func TestWholeUsage(t *testing.T) {
	t.Parallel()
	f := func(e engine.Endpoint, body string, want [3]int64) {
		t.Helper()
		if got := usage(Whole(e, "application/json", []byte(body), nil).Usage); got != want {
			t.Errorf("%s: usage is %v, want %v", body, got, want)
		}
	}
	f(engine.OpenAIChat, `{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":0}}`, [3]int64{5, 0, -1})
	f(engine.OpenAIChat, `{"choices":[{"finish_reason":"stop"}],"usage":null}`, [3]int64{-1, -1, -1})
	f(engine.AnthropicMessages, `{"content":[],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2,"cache_read_input_tokens":10}}`, [3]int64{15, 2, 10})
	f(engine.AnthropicMessages, `{"content":[],"stop_reason":"end_turn","usage":{"output_tokens":2}}`, [3]int64{-1, 2, -1})
}

func FuzzWhole(f *testing.F) {
	for _, s := range []string{jsonAnswer, jsonError, errorPage, contentFrame, `{"content":[{"text":"a"}]}`, `[[[`} {
		f.Add([]byte(s), uint8(engine.OpenAIChat))
		f.Add([]byte(s), uint8(engine.AnthropicMessages))
	}
	f.Fuzz(func(t *testing.T, body []byte, e uint8) {
		a := Whole(engine.Endpoint(e%10), "application/json", body, acceptM)
		if a.ErrorBody && a.Finding != (engine.Finding{}) {
			t.Fatalf("an error body with the finding %v", a.Finding)
		}
	})
}
