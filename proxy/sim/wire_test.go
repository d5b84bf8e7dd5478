package sim

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestWire shows what a raw client sees of each fault, byte by byte: testdata/wire holds
// one file a case. In them "\r" stands for a carriage return, and the last line says
// how the connection ended.
func TestWire(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	f := func(name, path, body, faults string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.Channel(name).Script(script(t, faults)...)
			nc := dial(t, s)
			// Asking for a close shows where a whole answer ends.
			post(t, nc, "/"+name+path, body, "Connection: close")
			got, end := readAll(t, nc)
			picture := "# " + faults + "\n" + strings.ReplaceAll(got, "\r", `\r`) + "\n-- " + end + "\n"
			file := filepath.Join("testdata", "wire", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(picture), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if picture != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", picture, want)
			}
			if err := s.Wait(patience(t), func() bool { return s.Requests(name)[0].Done }); err != nil {
				t.Fatal(err)
			}
			if r := s.Requests(name)[0]; r.Gone || r.Sent != len(got) || string(r.Body) != body {
				t.Errorf("gone %v, sent %d of %d read, body %q", r.Gone, r.Sent, len(got), r.Body)
			}
		})
	}
	const openai, anthropic = "/v1/chat/completions", "/v1/messages"
	f("chat_whole", openai, chatWhole, "ok")
	f("chat_stream", openai, chatStream, "ok chunks=2")
	f("chat_tool", openai, chatWhole, "tool-call chunks=2")
	f("chat_tool_stream", openai, chatStream, "tool-call chunks=2")
	f("chat_refusal", openai, chatWhole, "refusal")
	f("chat_refusal_stream", openai, chatStream, "refusal")
	f("chat_filter", openai, chatWhole, "content-filter")
	f("chat_filter_stream", openai, chatStream, "content-filter")
	f("chat_empty_answer_stream", openai, chatStream, "empty-answer")
	f("chat_503", openai, chatWhole, "status=503")
	f("chat_429", openai, chatStream, "status=429 retry-after=2 retry-after-ms=1500")
	f("chat_401", openai, chatWhole, "status=401")
	f("chat_404", openai, chatWhole, "status=404")
	f("chat_quota", openai, chatWhole, "status=429 type=insufficient_quota code=insufficient_quota message=\"No credit left.\"")
	f("chat_error_in_stream", openai, chatStream, "error-in-stream")
	f("chat_error_in_stream_whole", openai, chatWhole, "error-in-stream")
	f("chat_error_in_stream_after", openai, chatStream, "error-in-stream after=2 status=429")
	f("chat_json_error", openai, chatStream, "json-error")
	f("chat_cut_before_headers", openai, chatStream, "cut before-headers")
	f("chat_cut_before_output", openai, chatStream, "cut before-output")
	f("chat_cut_after", openai, chatStream, "cut after=3")
	f("chat_cut_before_end", openai, chatStream, "cut before-end chunks=1")
	f("chat_cut_whole", openai, chatWhole, "cut after=3")
	f("chat_reset_before_headers", openai, chatStream, "reset before-headers")
	f("chat_end_after", openai, chatStream, "end after=1")
	f("chat_end_whole", openai, chatWhole, "end after=1")
	f("chat_malformed_before_headers", openai, chatStream, "malformed before-headers")
	f("chat_malformed_after", openai, chatStream, "malformed after=1")
	f("chat_malformed_whole", openai, chatWhole, "malformed after=1")
	f("chat_broken_json", openai, chatStream, "broken-json before-output")
	f("chat_empty", openai, chatWhole, "empty")
	f("chat_html", openai, chatStream, "html")
	f("chat_truncated", openai, chatWhole, "truncated chunks=1")
	f("chat_truncated_stream", openai, chatStream, "truncated chunks=1")
	f("chat_model", openai, chatWhole, "model=other chunks=1")
	f("chat_body", openai, chatWhole, `body="{\"choices\":[]}" header="X-Cache: none" close`)
	f("chat_split", openai, chatStream, "end before-output split=100")
	f("messages_whole", anthropic, claudeWhole, "ok")
	f("messages_stream", anthropic, claudeStream, "ok chunks=2")
	f("messages_tool", anthropic, claudeWhole, "tool-call chunks=2")
	f("messages_tool_stream", anthropic, claudeStream, "tool-call chunks=2")
	f("messages_refusal_stream", anthropic, claudeStream, "refusal")
	f("messages_529", anthropic, claudeStream, "status=529")
	f("messages_401", anthropic, claudeWhole, "status=401")
	f("messages_429", anthropic, claudeWhole, "status=429 retry-after=7")
	f("messages_error_in_stream", anthropic, claudeStream, "error-in-stream")
	f("messages_error_in_stream_after", anthropic, claudeStream, "error-in-stream after=1")
	f("messages_cut_before_output", anthropic, claudeStream, "cut before-output")
	f("responses_stream", "/v1/responses", `{"model":"m","stream":true,"input":"Hi"}`, "ok chunks=1")
	f("responses_error_in_stream", "/v1/responses", `{"model":"m","stream":true,"input":"Hi"}`, "error-in-stream")
	f("completions_stream", "/v1/completions", `{"model":"m","stream":true,"prompt":"Hi"}`, "ok chunks=1")
	f("embeddings", "/v1/embeddings", `{"model":"m","input":["a","b"]}`, "ok")
	f("gemini_whole", "/v1beta/models/g:generateContent", `{"contents":[]}`, "ok chunks=2")
	f("gemini_stream", "/v1beta/models/g:streamGenerateContent?alt=sse", `{"contents":[]}`, "ok chunks=2")
	f("gemini_503", "/v1beta/models/g:generateContent", `{"contents":[]}`, "status=503")
	f("images", "/v1/images/generations", `{"model":"m","prompt":"a cat"}`, "ok")
	f("transcripts", "/v1/audio/transcriptions", "--form", "cut after=2")
	f("speech", "/v1/audio/speech", `{"model":"m","input":"Hi"}`, "ok bytes=40")
	f("unknown_path", "/v1/nothing", `{}`, "ok")
}

// A reset in the middle of a stream arrives as a reset, and what was sent before it is
// what a cut at the same place sends. How much of it a client can still read after the
// reset is up to its system, so the bytes are read before the simulator goes on.
func TestResetAfterContent(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	s.Channel("a").Script(script(t, "reset after=2 chunks=3 gap=1ms")...)
	nc := dial(t, s)
	post(t, nc, "/a/v1/chat/completions", chatStream)
	got, end := readAll(t, nc)
	if end != "RST" || strings.Count(got, "data: ") != 3 {
		t.Errorf("%s after\n%s", end, got)
	}
}
