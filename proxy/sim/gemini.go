package sim

import (
	"fmt"
	"strings"
)

// geminiShape is gemini.generate. A stream without alt=sse is one JSON array.
type geminiShape struct{}

func (geminiShape) headers() []Field { return []Field{{"vary", "Origin"}} }

func (geminiShape) errorBody(f failure) string {
	f = f.fill(geminiErrors, "models/"+f.model+" is not found for API version v1beta.")
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%s}}`, f.status, quoted(f.message), quoted(f.typ))
}

func (s geminiShape) errorFrame(f failure) string {
	if f.array {
		return s.errorBody(f) + "]"
	}
	return data(s.errorBody(f))
}

func geminiFinish(k Kind) string {
	switch k {
	case Length:
		return `"MAX_TOKENS"`
	case ContentFilter, Refusal:
		return `"SAFETY"`
	}
	return `"STOP"`
}

// geminiTail closes an answer: usage, model and id.
func geminiTail(a *asked) string {
	n := len(a.pieces)
	return fmt.Sprintf(`"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d},"modelVersion":%s,"responseId":"sim"}`,
		InputTokens, n, InputTokens+n, quoted(a.model))
}

func (geminiShape) whole(a *asked) parts {
	p := parts{contentType: "application/json; charset=utf-8"}
	finish := `"finishReason":` + geminiFinish(a.kind) + `,"index":0}],` + geminiTail(a)
	switch a.kind {
	case ToolCall:
		p.opening = []string{`{"candidates":[{"content":{"parts":[{"functionCall":{"name":` + quoted(a.toolName()) + `,"args":`}
		p.content = a.pieces
		p.closing = []string{`}}],"role":"model"},` + finish}
	case Text, Length:
		p.opening = []string{`{"candidates":[{"content":{"parts":[{"text":"`}
		p.content = each(a.pieces, inner)
		p.closing = []string{`"}],"role":"model"},` + finish}
	case EmptyAnswer:
		p.closing = []string{`{"candidates":[],` + geminiTail(a)}
	default:
		p.closing = []string{`{"candidates":[{` + finish}
	}
	return p
}

func (geminiShape) stream(a *asked) parts {
	p := parts{contentType: "text/event-stream"}
	data, last := data, data
	if !a.sse {
		p = parts{contentType: "application/json; charset=UTF-8", opening: []string{"["}}
		data = func(json string) string { return json + ",\r\n" }
		last = func(json string) string { return json + "\n]\n" }
	}
	chunk := func(candidate string) string {
		return data(`{"candidates":[{` + candidate + `"index":0}],"modelVersion":` + quoted(a.model) + `,"responseId":"sim"}`)
	}
	switch a.kind {
	case ToolCall: // never in pieces: its arguments are an object
		p.content = []string{chunk(`"content":{"parts":[{"functionCall":{"name":` + quoted(a.toolName()) + `,"args":` +
			strings.Join(a.pieces, "") + `}}],"role":"model"},`)}
	case Text, Length:
		p.content = each(a.pieces, func(piece string) string {
			return chunk(`"content":{"parts":[{"text":` + quoted(piece) + `}],"role":"model"},`)
		})
	case EmptyAnswer:
		p.closing = []string{last(`{"candidates":[],` + geminiTail(a))}
		return p
	}
	p.closing = []string{last(`{"candidates":[{"content":{"role":"model"},"finishReason":` + geminiFinish(a.kind) + `,"index":0}],` + geminiTail(a))}
	return p
}
