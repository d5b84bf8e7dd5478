package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
)

// answer is a whole response with a Content-Length.
func answer(status int, contentType, body string, headers ...string) script {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n", status, contentType, len(body))
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	b.WriteString("\r\n" + body)
	return raw(b.String())
}

func raw(text string) script {
	return func(c net.Conn, _ int) bool { _, err := io.WriteString(c, text); return err == nil }
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// stream is a chunked event stream with an orderly end.
func stream(frames ...string) script {
	b := streamHead
	for _, f := range frames {
		b += chunk(f)
	}
	return raw(b + "0\r\n\r\n")
}

// cutStream sends frames and drops the connection within the body.
func cutStream(frames ...string) script {
	b := streamHead
	for _, f := range frames {
		b += chunk(f)
	}
	return func(c net.Conn, _ int) bool { _, _ = io.WriteString(c, b); return false }
}

// hang sends text and then nothing until the proxy closes the connection.
func hang(text string) script {
	return func(c net.Conn, _ int) bool { _, err := io.WriteString(c, text); return err == nil }
}

const (
	roleFrame  = `data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	textFrame  = `data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}` + "\n\n"
	moreFrame  = `data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}` + "\n\n"
	stopFrame  = `data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	doneFrame  = "data: [DONE]\n\n"
	errorFrame = `data: {"error":{"message":"overloaded","type":"server_error","code":"overloaded"}}` + "\n\n"

	wholeAnswer   = `{"id":"c1","object":"chat.completion","model":"gpt-4o-2024-08-06","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`
	wholeRequest  = `{ "model" : "gpt-4o-2024-08-06", "messages":[{"role":"user","content":"é\u00e9"}] }`
	streamRequest = `{"model":"gpt-4o-2024-08-06","stream":true,"messages":[{"role":"user","content":"hi"}]}`

	claudeAnswer = `{"id":"m1","type":"message","role":"assistant","model":"gpt-4o-2024-08-06","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}`
)

func claudeStart() string {
	return "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"gpt-4o-2024-08-06\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n"
}

func claudeText() string {
	return "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n"
}
