package sim

import "fmt"

// messagesShape is anthropic.messages.
type messagesShape struct{}

func (messagesShape) headers() []Field {
	return []Field{{"request-id", "req_sim"}, {"anthropic-organization-id", "org_sim"}}
}

func (messagesShape) errorBody(f failure) string {
	f = f.fill(anthropicErrors, "model: "+f.model)
	return `{"type":"error","error":{"type":` + quoted(f.typ) + `,"message":` + quoted(f.message) + `},"request_id":"req_sim"}`
}

func (s messagesShape) errorFrame(f failure) string { return event("error", s.errorBody(f)) }

// stopReason is Anthropic's word for how an answer ended. A filter's end is a refusal
// there too.
func stopReason(k Kind) string {
	switch k {
	case ToolCall:
		return `"tool_use"`
	case Refusal, ContentFilter:
		return `"refusal"`
	case Length:
		return `"max_tokens"`
	case EmptyAnswer:
		return "null"
	}
	return `"end_turn"`
}

func messagesUsage(output int) string {
	return fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d}`,
		InputTokens, output)
}

func (messagesShape) whole(a *asked) parts {
	p := parts{contentType: typeJSON}
	head := `{"id":"msg_sim","type":"message","role":"assistant","model":` + quoted(a.model) + `,"content":[`
	tail := `],"stop_reason":` + stopReason(a.kind) + `,"stop_sequence":null,"usage":` + messagesUsage(len(a.pieces)) + `}`
	switch a.kind {
	case ToolCall:
		head += `{"type":"tool_use","id":"toolu_sim_1","name":` + quoted(a.toolName()) + `,"input":`
		tail = `}` + tail
		p.content = a.pieces // the arguments are JSON, not text
	case Text, Length:
		head += `{"type":"text","text":"`
		tail = `"}` + tail
		p.content = each(a.pieces, inner)
	}
	p.opening, p.closing = []string{head}, []string{tail}
	return p
}

func (messagesShape) stream(a *asked) parts {
	p := parts{contentType: typeStream}
	p.opening = []string{event("message_start", `{"type":"message_start","message":{"id":"msg_sim","type":"message","role":"assistant","model":`+
		quoted(a.model)+`,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`+messagesUsage(1)+`}}`)}
	block := func(b string) string {
		return event("content_block_start", `{"type":"content_block_start","index":0,"content_block":`+b+`}`)
	}
	delta := func(d string) string {
		return event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+d+`}`)
	}
	ping := event("ping", `{"type":"ping"}`)
	switch a.kind {
	case ToolCall:
		p.opening = append(p.opening, ping)
		p.content = append(p.content, block(`{"type":"tool_use","id":"toolu_sim_1","name":`+quoted(a.toolName())+`,"input":{}}`))
		for _, piece := range a.pieces {
			p.content = append(p.content, delta(`{"type":"input_json_delta","partial_json":`+quoted(piece)+`}`))
		}
	case Text, Length:
		p.opening = append(p.opening, block(`{"type":"text","text":""}`), ping)
		p.content = each(a.pieces, func(piece string) string { return delta(`{"type":"text_delta","text":` + quoted(piece) + `}`) })
	}
	if len(p.content) > 0 {
		p.closing = append(p.closing, event("content_block_stop", `{"type":"content_block_stop","index":0}`))
	}
	if a.kind != EmptyAnswer {
		p.closing = append(p.closing, event("message_delta", `{"type":"message_delta","delta":{"stop_reason":`+stopReason(a.kind)+
			fmt.Sprintf(`,"stop_sequence":null},"usage":{"output_tokens":%d}}`, len(a.pieces))))
	}
	p.closing = append(p.closing, event("message_stop", `{"type":"message_stop"}`))
	return p
}
