package proxy_test

import (
	"fmt"
	"strings"
)

// recorded is a stream of testdata/streams with what a reader of its protocol knows of
// it. It is all that the test of the cuts goes by: the gate's own tables play no part.
type recorded struct {
	file   string
	path   string
	output string // within the first event that has output
	whole  string // within the first event after which an orderly end is a good one
	end    string // within the event that ends the stream whatever follows; empty: none
	error  string // the beginning of an event with an error, which ends all; empty: none
	piece  int    // bytes in each chunk of the transfer; 0: one event in each
	close  bool   // the upstream's closing ends the body instead of a last chunk
}

const (
	chatPath        = "/v1/chat/completions"
	messagesPath    = "/v1/messages"
	completionsPath = "/v1/completions"
	responsesPath   = "/v1/responses"
	geminiPath      = "/v1beta/models/" + model + ":streamGenerateContent?alt=sse"
)

var recordings = []recorded{
	{file: "chat_text", path: chatPath, output: `"Grüß"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_text", path: chatPath, output: `"Grüß"`, whole: `"stop"`, end: "[DONE]", piece: 47},
	{file: "chat_text", path: chatPath, output: `"Grüß"`, whole: `"stop"`, end: "[DONE]", close: true},
	{file: "chat_tools", path: chatPath, output: `"weather"`, whole: `"finish_reason":"tool_calls"`, end: "[DONE]"},
	{file: "chat_refusal", path: chatPath, output: `"I can't"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_usage", path: chatPath, output: `"42"`, whole: `"length"`, end: "[DONE]"},
	{file: "chat_two", path: chatPath, output: `"yes"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_crlf", path: chatPath, output: `"one\ntwo"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_crlf", path: chatPath, output: `"one\ntwo"`, whole: `"stop"`, end: "[DONE]", piece: 37},
	{file: "chat_comments", path: chatPath, output: `"ok"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_comments", path: chatPath, output: `"ok"`, whole: `"stop"`, end: "[DONE]", piece: 41},
	{file: "chat_reasoning", path: chatPath, output: `"Let me think"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_unmarked", path: chatPath, output: `"no mark follows"`, whole: `"stop"`},
	{file: "chat_filters", path: chatPath, output: `"fine"`, whole: `"finish_reason":"content_filter"`, end: "[DONE]"},
	{file: "messages_text", path: messagesPath, output: `"Hello"`, whole: "message_stop", end: "message_stop"},
	{file: "messages_text", path: messagesPath, output: `"Hello"`, whole: "message_stop", end: "message_stop", piece: 67},
	{file: "messages_text", path: messagesPath, output: `"Hello"`, whole: "message_stop", end: "message_stop", close: true},
	{file: "messages_tools", path: messagesPath, output: `"weather"`, whole: "message_stop", end: "message_stop"},
	{file: "messages_thinking", path: messagesPath, output: `"Hm."`, whole: "message_stop", end: "message_stop"},
	{file: "messages_ping", path: messagesPath, output: `"Hi"`, whole: "message_stop", end: "message_stop"},
	{file: "messages_crlf", path: messagesPath, output: `"Hi"`, whole: "message_stop", end: "message_stop"},
	{file: "messages_unnamed", path: messagesPath, output: `"Hi"`, whole: "message_stop", end: "message_stop"},
	{file: "chat_failed", path: chatPath, output: `"Hel"`, whole: "[DONE]", error: `data: {"error"`},
	{file: "chat_failed", path: chatPath, output: `"Hel"`, whole: "[DONE]", error: `data: {"error"`, piece: 53},
	{file: "messages_failed", path: messagesPath, output: `"Hello"`, whole: "overloaded", error: "event: error"},
	{file: "messages_failed", path: messagesPath, output: `"Hello"`, whole: "overloaded", error: "event: error", piece: 71},
	{file: "completions_text", path: completionsPath, output: `"Once"`, whole: `"stop"`, end: "[DONE]"},
	{file: "responses_text", path: responsesPath, output: `"delta":"Hi"`, whole: "response.completed", end: "response.completed"},
	{file: "gemini_text", path: geminiPath, output: `"Hel"`, whole: `"STOP"`},
}

func (r recorded) name() string {
	name := r.file
	if r.piece > 0 {
		name += fmt.Sprintf(" in pieces of %d", r.piece)
	}
	if r.close {
		name += " ended by closing"
	}
	return name
}

// request is what a caller of the stream sends.
func (r recorded) request() string {
	switch r.path {
	case messagesPath:
		return rawPost(r.path, `{"model":"`+model+`","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	case responsesPath:
		return rawPost(r.path, `{"model":"`+model+`","stream":true,"store":false,"input":"hi"}`)
	case completionsPath:
		return rawPost(r.path, `{"model":"`+model+`","stream":true,"prompt":"hi"}`)
	case geminiPath:
		return rawPost(r.path, `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`)
	}
	return rawPost(r.path, streamRequest)
}

// wire is a stream as it goes over the upstream's connection.
type wire struct {
	bytes  string
	steps  []int // where each write ends
	head   int   // length of the response's head
	data   []int // how many bytes of the content the first i bytes of the wire hold
	left   []int // how many bytes of data a chunk still promises after the first i bytes
	output int   // how much of the content is needed for output …
	whole  int   // … for a good end, if it is orderly …
	end    int   // … and for one that is good whatever follows
	error  int   // where the event with an error begins …
	shown  int   // … and how far it may be given out, not yet known for one
}

// after returns where the event that holds text ends.
func after(content, text string) int {
	at := strings.Index(content, text)
	if at < 0 {
		panic("the stream has no " + text)
	}
	end := len(content)
	for _, blank := range []string{"\n\n", "\r\n\r\n"} {
		if i := strings.Index(content[at:], blank); i >= 0 {
			end = min(end, at+i+len(blank))
		}
	}
	return end
}

func (r recorded) wire(content string) *wire {
	w := &wire{output: after(content, r.output), whole: after(content, r.whole), end: len(content) + 1}
	if r.end != "" {
		w.end = after(content, r.end)
	}
	w.error = len(content) + 1
	if r.error != "" {
		w.error = strings.Index(content, r.error)
		w.shown = w.error + len(r.error)
	}
	w.data, w.left = []int{0}, []int{0}
	have, promised := 0, 0
	put := func(s string, isData bool) {
		for range len(s) {
			if isData {
				have++
				promised--
			}
			w.data, w.left = append(w.data, have), append(w.left, promised)
		}
		w.bytes += s
	}
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
	if r.close {
		put(head+"Connection: close\r\n\r\n", false)
	} else {
		put(head+"Transfer-Encoding: chunked\r\n\r\n", false)
	}
	w.head = len(w.bytes)
	for rest := content; rest != ""; {
		n := after(rest, "")
		if r.piece > 0 {
			n = min(r.piece, len(rest))
		}
		if r.close {
			put(rest[:n], true)
		} else {
			put(fmt.Sprintf("%x\r\n", n), false)
			promised = n
			w.left[len(w.bytes)] = n
			put(rest[:n], true)
			put("\r\n", false)
		}
		w.steps = append(w.steps, len(w.bytes))
		rest = rest[n:]
	}
	if !r.close {
		put("0\r\n\r\n", false)
		w.steps = append(w.steps, len(w.bytes))
	}
	return w
}
