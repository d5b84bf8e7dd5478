package gate

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/fourgate-dev/fourgate/proxy/sse"
)

// openAIChat reads chat completions, OpenAI's own and those of the many servers that
// speak the same shape with small additions.
type openAIChat struct{}

// chatOutput are the members of a delta or message that hold output. Read only.
var chatOutput = [...]string{
	"content",
	"refusal",
	"tool_calls",
	"function_call",     // before tools
	"reasoning_content", // DeepSeek, vLLM, xAI, Moonshot
	"reasoning",         // OpenRouter, Groq
	"reasoning_details", // OpenRouter
	"thinking",          // Mistral, Ollama
	"audio",
	"images", // OpenRouter
}

// foreignToChat are members that only answers of other protocols have. Read only.
var foreignToChat = [...]string{
	"candidates",  // Gemini
	"output",      // OpenAI Responses
	"stop_reason", // Anthropic
}

// foreignTypes are beginnings of the type member in other protocols. Read only.
var foreignTypes = [...]string{"message", "content_block_", "response."}

// errorMembers are what an error body has that is in no envelope, where the choices
// are missing too. Read only.
var errorMembers = [...]string{"code", "detail", "error_code", "error_msg", "errors", "message", "msg"}

func (openAIChat) endMark() string { return "[DONE]" }

func (c openAIChat) frame(event []byte, root gjson.Result) reading {
	r := c.read(root, "delta", "message")
	if string(event) == "error" {
		r.sign = failure
	}
	return r
}

func (c openAIChat) whole(root gjson.Result) reading {
	r := c.read(root, "message", "message")
	switch choices := root.Get("choices"); {
	case r.sign == failure || r.sign == invalid:
	case !choices.IsArray():
		r.sign, r.reason = invalid, "missing_fields"
	case r.sign == strange:
		r.sign, r.reason = invalid, "missing_fields"
	case r.sign == nothing:
		r.sign = ended
	}
	return r
}

// read reads a chunk or a completion; its choices hold their output in the member
// named part, or in the one named other.
func (openAIChat) read(root gjson.Result, part, other string) reading {
	var r reading
	var failed, foreign, spoke, shaped, loose bool
	root.ForEach(func(key, v gjson.Result) bool {
		switch name := key.Str; name {
		case "error":
			failed = failed || truthy(v)
		case "model":
			r.model = v.Str
		case "choices":
			if v.IsArray() {
				shaped = true
				v.ForEach(func(_, choice gjson.Result) bool {
					s, done, bad := chatChoice(choice, part, other)
					spoke, r.done, failed = spoke || s, r.done || done, failed || bad
					return true
				})
			}
		case "usage":
			shaped = true
			r.tally.merge(chatUsage(v))
		case "x_groq":
			r.tally.merge(chatUsage(v.Get("usage")))
			failed = failed || truthy(v.Get("error"))
		case "base_resp": // MiniMax
			failed = failed || truthy(v.Get("status_code"))
		case "success":
			failed = failed || v.Type == gjson.False
		case "object":
			failed = failed || v.Str == "error"
		case "type":
			failed = failed || v.Str == "error"
			foreign = foreign || among(foreignTypes[:], v.Str, strings.HasPrefix)
		default:
			foreign = foreign || among(foreignToChat[:], name, equal)
			loose = loose || truthy(v) && among(errorMembers[:], name, equal)
		}
		return true
	})
	hasChoices := shaped && root.Get("choices").IsArray()
	switch {
	case failed:
		r.sign = failure
	case foreign && !hasChoices:
		r.sign, r.reason = invalid, "wrong_protocol"
	case loose && !hasChoices:
		r.sign = failure
	case spoke || r.done:
		r.sign = output
	case !shaped:
		r.sign = strange
	}
	return r
}

// chatChoice reads one choice: whether it holds output, whether it has a finish
// reason, and whether it says that generating failed.
func chatChoice(choice gjson.Result, part, other string) (spoke, done, failed bool) {
	choice.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case part, other:
			v.ForEach(func(key, v gjson.Result) bool {
				spoke = spoke || among(chatOutput[:], key.Str, equal) && said(v)
				return !spoke
			})
		case "finish_reason":
			// A router's "error" is no reason that a model can have.
			failed = failed || v.Str == "error"
			done = v.Str != "" && v.Str != "error"
		case "error":
			failed = failed || truthy(v)
		}
		return true
	})
	return spoke, done, failed
}

func chatUsage(v gjson.Result) tally {
	var t tally
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens":
			t.input = tokens(v)
		case "completion_tokens":
			t.output = tokens(v)
		case "prompt_tokens_details":
			t.cacheRead = tokens(v.Get("cached_tokens"))
		}
		return true
	})
	return t
}

func (openAIChat) glance(raw []byte) glance {
	// Nearly all frames are one data line. The others are worth a closer look.
	if raw[0] != 'd' {
		f := sse.Parse(raw, false)
		if string(f.Event) == "error" {
			return look
		}
		if f.Comment {
			return pass
		}
	}
	switch {
	case member(raw, `finish_reason"`), member(raw, `rror"`):
		return look
	case member(raw, `usage"`):
		return lastUsage
	case len(raw) < 64 && bytes.Contains(raw, []byte("[DONE]")):
		return look
	}
	return pass
}

func among(list []string, s string, is func(s, of string) bool) bool {
	for _, of := range list {
		if is(s, of) {
			return true
		}
	}
	return false
}

func equal(a, b string) bool { return a == b }
