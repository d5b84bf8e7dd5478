package gate

import (
	"bytes"

	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
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

// errorMembers are what an error has that is in no envelope, where the answer itself
// is missing. Read only.
var errorMembers = [...]string{"code", "detail", "error_code", "error_msg", "errors", "message", "msg"}

func (openAIChat) endMark() string { return "[DONE]" }

func (c openAIChat) frame(event []byte, s *strictjson.Scanner) reading {
	return c.frameOf(event, s, "delta")
}

func (c openAIChat) whole(s *strictjson.Scanner) reading { return c.wholeOf(s, "message") }

func (c openAIChat) frameOf(event []byte, s *strictjson.Scanner, part string) reading {
	r, _ := c.read(s, part)
	if string(event) == "error" {
		r.sign = failure
	}
	return r
}

func (c openAIChat) wholeOf(s *strictjson.Scanner, part string) reading {
	r, chosen := c.read(s, part)
	switch {
	case r.sign == failure, r.sign == invalid:
	case !chosen:
		r.sign, r.reason = invalid, "missing_fields"
	case r.sign == nothing:
		r.sign = ended
	}
	return r
}

// read reads a chunk or a completion, whose choices hold their output in the member
// named part. Chosen says whether there is a list of choices.
func (openAIChat) read(s *strictjson.Scanner, part string) (r reading, chosen bool) {
	var failed, foreign, loose, spoke, counted bool
	s.Object(func(key strictjson.Text) {
		switch name := key.Bytes(); string(name) {
		case "error":
			failed = truthy(s) || failed
		case "model":
			r.model = s.Text().String()
		case "choices":
			chosen = s.Array(func() {
				c := chatChoice(s, part)
				spoke, r.done, failed = spoke || c.spoke, r.done || c.done, failed || c.failed
				if c.done {
					r.finished |= 1 << (c.index & 63)
				}
			})
		case "usage":
			counted = true
			r.tally.merge(chatUsage(s))
		case "x_groq":
			s.Object(func(key strictjson.Text) {
				switch string(key.Raw) {
				case "usage":
					r.tally.merge(chatUsage(s))
				case "error":
					failed = truthy(s) || failed
				}
			})
		case "base_resp": // MiniMax
			inside(s, "status_code", func() { failed = truthy(s) || failed })
		case "success":
			failed = s.Peek() == strictjson.False || failed
		case "object":
			failed = s.Text().Is("error") || failed
		case "type":
			kind := s.Text()
			failed = kind.Is("error") || failed
			for _, prefix := range foreignTypes {
				foreign = foreign || bytes.HasPrefix(kind.Raw, []byte(prefix))
			}
		default:
			foreign = foreign || named(name, foreignToChat[:])
			if named(name, errorMembers[:]) {
				loose = truthy(s) || loose
			}
		}
	})
	switch {
	case failed:
		r.sign = failure
	case foreign && !chosen:
		r.sign, r.reason = invalid, "wrong_protocol"
	case loose && !chosen:
		r.sign = failure
	case spoke, r.done:
		r.sign = output
	case !chosen && !counted:
		r.sign = strange
	}
	return r, chosen
}

// choice is what one choice says: whether it holds output, whether it has a finish
// reason, and whether generating failed.
type choice struct {
	index               int64
	spoke, done, failed bool
}

func chatChoice(s *strictjson.Scanner, part string) (c choice) {
	s.Object(func(key strictjson.Text) {
		switch name := key.Bytes(); string(name) {
		// Some servers stream whole messages.
		case part, "message":
			if s.Peek() == strictjson.String {
				c.spoke = said(s) || c.spoke
				return
			}
			s.Object(func(key strictjson.Text) {
				if named(key.Bytes(), chatOutput[:]) {
					c.spoke = said(s) || c.spoke
				}
			})
		case "index":
			c.index, _ = tokens(s).Get()
		case "finish_reason":
			// A router's "error" is no reason that a model can have.
			reason := s.Text()
			c.failed = c.failed || reason.Is("error")
			c.done = len(reason.Raw) > 0 && !reason.Is("error")
		case "error":
			c.failed = truthy(s) || c.failed
		}
	})
	return c
}

func chatUsage(s *strictjson.Scanner) tally {
	var t tally
	s.Object(func(key strictjson.Text) {
		switch string(key.Raw) {
		case "prompt_tokens":
			t.input = tokens(s)
		case "completion_tokens":
			t.output = tokens(s)
		case "prompt_tokens_details":
			inside(s, "cached_tokens", func() { t.cacheRead = tokens(s) })
		}
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
	if len(raw) < 64 && bytes.Contains(raw, []byte("[DONE]")) {
		return look
	}
	return glanceMembers(raw)
}
