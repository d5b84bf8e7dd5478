package sim

import (
	"fmt"
	"strings"
)

// created is the time that every OpenAI answer names: answers are always the same.
const created = "1760000000"

// openAIShape is what all of OpenAI's endpoints share: errors and headers.
type openAIShape struct{}

func (openAIShape) errorBody(f failure) string {
	f = f.fill(openAIErrors, fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", f.model))
	return `{"error":{"message":` + quoted(f.message) + `,"type":` + quoted(f.typ) +
		`,"param":null,"code":` + orNull(f.code) + `}}`
}

func (s openAIShape) errorFrame(f failure) string { return data(s.errorBody(f)) }

func (openAIShape) headers() []Field {
	return []Field{{"x-request-id", "req_sim"}, {"openai-processing-ms", "5"}, {"openai-version", "2020-10-01"}}
}

// whole answers a path that isn't there; render gives it status 404.
func (s openAIShape) whole(a *asked) parts {
	return parts{contentType: typeJSON, closing: []string{
		s.errorBody(failure{status: 404, code: "unknown_url", message: "Unknown request URL. Check its path and method."}),
	}}
}

// openAIUsage is the usage member of chat and text completions.
func openAIUsage(output int) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}}`,
		InputTokens, output, InputTokens+output)
}

// finishReason is OpenAI's word for how an answer ended.
func finishReason(k Kind) string {
	switch k {
	case ToolCall:
		return `"tool_calls"`
	case ContentFilter:
		return `"content_filter"`
	case Length:
		return `"length"`
	case EmptyAnswer:
		return "null"
	}
	return `"stop"`
}

// chatShape is openai.chat.
type chatShape struct{ openAIShape }

func (chatShape) whole(a *asked) parts {
	p := parts{contentType: typeJSON, content: each(a.pieces, inner)}
	head := `{"id":"chatcmpl-sim","object":"chat.completion","created":` + created + `,"model":` + quoted(a.model) +
		`,"choices":[{"index":0,"message":{"role":"assistant",`
	tail := `},"logprobs":null,"finish_reason":` + finishReason(a.kind) + `}],"usage":` + openAIUsage(len(a.pieces)) +
		`,"service_tier":"default","system_fingerprint":"fp_sim"}`
	switch a.kind {
	case ToolCall:
		head += `"content":null,"tool_calls":[{"id":"call_sim_1","type":"function","function":{"name":` +
			quoted(a.toolName()) + `,"arguments":"`
		tail = `"}}],"refusal":null` + tail
	case Refusal:
		head += `"content":null,"refusal":"`
		tail = `"` + tail
	case EmptyAnswer:
		head += `"content":null,"refusal":null`
	default:
		head += `"content":"`
		tail = `","refusal":null,"annotations":[]` + tail
	}
	p.opening, p.closing = []string{head}, []string{tail}
	return p
}

func (chatShape) stream(a *asked) parts {
	usage := ""
	if a.usage {
		usage = `,"usage":null`
	}
	chunk := func(delta, finish string) string {
		return data(`{"id":"chatcmpl-sim","object":"chat.completion.chunk","created":` + created + `,"model":` + quoted(a.model) +
			`,"service_tier":"default","system_fingerprint":"fp_sim","choices":[{"index":0,"delta":{` + delta +
			`},"logprobs":null,"finish_reason":` + finish + `}]` + usage + `}`)
	}
	p := parts{contentType: typeStream}
	role := `"role":"assistant","content":"","refusal":null`
	if a.kind == ToolCall {
		role = `"role":"assistant","content":null`
	}
	p.opening = []string{chunk(role, "null")}
	switch a.kind {
	case ToolCall:
		p.content = append(p.content, chunk(`"tool_calls":[{"index":0,"id":"call_sim_1","type":"function","function":{"name":`+
			quoted(a.toolName())+`,"arguments":""}}]`, "null"))
		for _, piece := range a.pieces {
			p.content = append(p.content, chunk(`"tool_calls":[{"index":0,"function":{"arguments":`+quoted(piece)+`}}]`, "null"))
		}
	case Refusal:
		p.content = each(a.pieces, func(piece string) string { return chunk(`"refusal":`+quoted(piece), "null") })
	default:
		p.content = each(a.pieces, func(piece string) string { return chunk(`"content":`+quoted(piece), "null") })
	}
	if a.kind != EmptyAnswer {
		p.closing = append(p.closing, chunk("", finishReason(a.kind)))
		if a.usage {
			p.closing = append(p.closing, data(`{"id":"chatcmpl-sim","object":"chat.completion.chunk","created":`+created+
				`,"model":`+quoted(a.model)+`,"service_tier":"default","system_fingerprint":"fp_sim","choices":[],"usage":`+
				openAIUsage(len(a.pieces))+`}`))
		}
	}
	p.closing = append(p.closing, data("[DONE]"))
	return p
}

// completionsShape is openai.completions. It knows no tool call and no refusal.
type completionsShape struct{ openAIShape }

func (completionsShape) whole(a *asked) parts {
	return parts{
		contentType: typeJSON,
		opening: []string{`{"id":"cmpl-sim","object":"text_completion","created":` + created + `,"model":` + quoted(a.model) +
			`,"choices":[{"index":0,"text":"`},
		content: each(a.pieces, inner),
		closing: []string{`","logprobs":null,"finish_reason":` + finishReason(a.kind) + `}],"usage":` +
			openAIUsage(len(a.pieces)) + `}`},
	}
}

func (completionsShape) stream(a *asked) parts {
	chunk := func(choices, more string) string {
		return data(`{"id":"cmpl-sim","object":"text_completion","created":` + created + `,"model":` + quoted(a.model) +
			`,"choices":[` + choices + `]` + more + `}`)
	}
	choice := func(text, finish string) string {
		return `{"index":0,"text":` + quoted(text) + `,"logprobs":null,"finish_reason":` + finish + `}`
	}
	p := parts{contentType: typeStream}
	p.content = each(a.pieces, func(piece string) string { return chunk(choice(piece, "null"), "") })
	if a.kind != EmptyAnswer {
		p.closing = append(p.closing, chunk(choice("", finishReason(a.kind)), ""))
		if a.usage {
			p.closing = append(p.closing, chunk("", `,"usage":`+openAIUsage(len(a.pieces))))
		}
	}
	p.closing = append(p.closing, data("[DONE]"))
	return p
}

// modelsShape is the list of models.
type modelsShape struct{ openAIShape }

func (modelsShape) whole(a *asked) parts {
	return parts{contentType: typeJSON, closing: []string{`{"object":"list","data":[{"id":` + quoted(a.model) +
		`,"object":"model","created":` + created + `,"owned_by":"sim"}]}`}}
}

// embeddingsShape is openai.embeddings: the same eight numbers for every input.
type embeddingsShape struct{ openAIShape }

// The vector, and its base64 form as the official SDK asks for it: eight little-endian
// float32 of 0.5.
const (
	vector       = "[0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5]"
	vectorBase64 = `"AAAAPwAAAD8AAAA/AAAAPwAAAD8AAAA/AAAAPwAAAD8="`
)

func (embeddingsShape) whole(a *asked) parts {
	v := vector
	if a.base64 {
		v = vectorBase64
	}
	items := make([]string, max(a.inputs, 1))
	for i := range items {
		items[i] = fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, v)
	}
	return parts{contentType: typeJSON, closing: []string{`{"object":"list","data":[` + strings.Join(items, ",") + `],"model":` +
		quoted(a.model) + fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"total_tokens":%d}}`, InputTokens, InputTokens)}}
}
