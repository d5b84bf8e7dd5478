package sim

import (
	"fmt"
	"strings"
)

// responsesShape is openai.responses. It answers with one message, one refusal or one
// function call.
type responsesShape struct{ openAIShape }

// responseOf is the response object in a given state.
func responseOf(a *asked, status, output, usage string) string {
	details := "null"
	if a.kind == Length && status == "incomplete" {
		details = `{"reason":"max_output_tokens"}`
	}
	if a.kind == ContentFilter && status == "incomplete" {
		details = `{"reason":"content_filter"}`
	}
	return `{"id":"resp_sim","object":"response","created_at":` + created + `,"status":"` + status +
		`","error":null,"incomplete_details":` + details + `,"model":` + quoted(a.model) +
		`,"output":[` + output + `],"usage":` + usage + `}`
}

func responsesUsage(output int) string {
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,`+
		`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`, InputTokens, output, InputTokens+output)
}

// finalStatus is the state in which a response ends.
func finalStatus(k Kind) string {
	if k == Length || k == ContentFilter {
		return "incomplete"
	}
	return "completed"
}

// contentPart is the part that holds a message's text.
func contentPart(k Kind, text string) string {
	if k == Refusal {
		return `{"type":"refusal","refusal":"` + text + `"}`
	}
	return `{"type":"output_text","annotations":[],"text":"` + text + `"}`
}

// item is the one output item with a given text, which is JSON-escaped already.
func item(a *asked, status, text string, started bool) string {
	if a.kind == ToolCall {
		return `{"type":"function_call","id":"fc_sim_1","call_id":"call_sim_1","name":` + quoted(a.toolName()) +
			`,"status":"` + status + `","arguments":"` + text + `"}`
	}
	content := ""
	if started {
		content = contentPart(a.kind, text)
	}
	return `{"type":"message","id":"msg_sim","role":"assistant","status":"` + status + `","content":[` + content + `]}`
}

// mark stands for the text while a whole body is taken apart around it.
const mark = "\x00"

func (responsesShape) whole(a *asked) parts {
	if a.kind == ContentFilter || a.kind == EmptyAnswer {
		return parts{contentType: typeJSON, closing: []string{
			responseOf(a, finalStatus(a.kind), "", responsesUsage(0)),
		}}
	}
	body := responseOf(a, finalStatus(a.kind), item(a, "completed", mark, true), responsesUsage(len(a.pieces)))
	head, tail, _ := strings.Cut(body, mark)
	return parts{contentType: typeJSON, opening: []string{head}, content: each(a.pieces, inner), closing: []string{tail}}
}

func (responsesShape) stream(a *asked) parts {
	n := -1
	next := func(name, members string) string {
		n++
		return event(name, fmt.Sprintf(`{"type":"%s","sequence_number":%d,%s}`, name, n, members))
	}
	p := parts{contentType: typeStream}
	p.opening = []string{
		next("response.created", `"response":`+responseOf(a, "in_progress", "", "null")),
		next("response.in_progress", `"response":`+responseOf(a, "in_progress", "", "null")),
	}
	last := "response." + finalStatus(a.kind)
	if a.kind == ContentFilter || a.kind == EmptyAnswer {
		p.closing = []string{next(last, `"response":`+responseOf(a, finalStatus(a.kind), "", responsesUsage(0)))}
		return p
	}
	text := inner(strings.Join(a.pieces, ""))
	done := item(a, "completed", text, true)
	added := next("response.output_item.added", `"output_index":0,"item":`+item(a, "in_progress", "", false))
	if a.kind == ToolCall {
		const at = `"item_id":"fc_sim_1","output_index":0,`
		p.content = append(p.content, added) // it names the tool: a caller sees that
		for _, piece := range a.pieces {
			p.content = append(p.content, next("response.function_call_arguments.delta", at+`"delta":`+quoted(piece)))
		}
		p.closing = []string{next("response.function_call_arguments.done", at+`"arguments":"`+text+`"`)}
	} else {
		const at = `"item_id":"msg_sim","output_index":0,"content_index":0,`
		kind, member := "response.output_text", "text"
		if a.kind == Refusal {
			kind, member = "response.refusal", "refusal"
		}
		p.opening = append(p.opening, added, next("response.content_part.added", at+`"part":`+contentPart(a.kind, "")))
		for _, piece := range a.pieces {
			p.content = append(p.content, next(kind+".delta", at+`"delta":`+quoted(piece)))
		}
		p.closing = []string{
			next(kind+".done", at+`"`+member+`":"`+text+`"`),
			next("response.content_part.done", at+`"part":`+contentPart(a.kind, text)),
		}
	}
	p.closing = append(p.closing,
		next("response.output_item.done", `"output_index":0,"item":`+done),
		next(last, `"response":`+responseOf(a, finalStatus(a.kind), done, responsesUsage(len(a.pieces)))))
	return p
}

func (responsesShape) errorFrame(f failure) string {
	f = f.fill(openAIErrors, "The model does not exist.")
	code := f.code
	if code == "" {
		code = f.typ
	}
	return event("error", `{"type":"error","sequence_number":2,"code":`+quoted(code)+`,"message":`+quoted(f.message)+`,"param":null}`)
}
