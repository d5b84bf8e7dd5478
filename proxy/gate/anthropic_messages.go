package gate

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// anthropicMessages reads messages. A stream is a fixed sequence of typed events, and
// the type stands in the data too: servers that leave the event line out are common.
type anthropicMessages struct{}

// messageEvents are the events of a stream and the reader of each. Read only. Events
// that aren't here decide nothing, since the API may add some at any time.
var messageEvents = [...]struct {
	kind string
	read func(root gjson.Result) reading
}{
	{"message_start", messageStart},
	{"content_block_start", func(root gjson.Result) reading { return block(root.Get("content_block")) }},
	{"content_block_delta", func(root gjson.Result) reading { return block(root.Get("delta")) }},
	{"content_block_stop", func(gjson.Result) reading { return reading{} }},
	{"message_delta", messageDelta},
	{"message_stop", func(gjson.Result) reading { return reading{sign: ended, done: true} }},
	{"ping", func(gjson.Result) reading { return reading{} }},
	{"error", func(gjson.Result) reading { return reading{sign: failure} }},
}

func (anthropicMessages) endMark() string { return "" }

func (anthropicMessages) frame(event []byte, root gjson.Result) reading {
	if string(event) == "error" || truthy(root.Get("error")) {
		return reading{sign: failure}
	}
	kind := root.Get("type").Str
	if kind == "" {
		kind = string(event)
	}
	for _, e := range messageEvents {
		if e.kind == kind {
			return e.read(root)
		}
	}
	switch {
	case foreignToMessages(root), strings.HasPrefix(kind, "response."):
		return reading{sign: invalid, reason: "wrong_protocol"}
	case kind == "":
		return reading{sign: strange}
	}
	return reading{}
}

func messageStart(root gjson.Result) reading {
	message := root.Get("message")
	r := reading{model: message.Get("model").Str, tally: messageUsage(message.Get("usage"))}
	// What was put out so far is a placeholder here; message_delta has the count.
	r.tally.output = reading{}.tally.output
	if said(message.Get("content")) {
		r.sign = output
	}
	return r
}

// block reads the start or a delta of a content block: a text, a thought, a tool's
// name, a piece of its arguments, a result.
func block(v gjson.Result) reading {
	if said(v) {
		return reading{sign: output}
	}
	return reading{}
}

func messageDelta(root gjson.Result) reading {
	r := reading{tally: messageUsage(root.Get("usage"))}
	if root.Get("delta.stop_reason").Str != "" {
		r.sign = output
	}
	return r
}

func messageUsage(v gjson.Result) tally {
	t := tally{apart: true}
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "input_tokens":
			t.input = tokens(v)
		case "output_tokens":
			t.output = tokens(v)
		case "cache_read_input_tokens":
			t.cacheRead = tokens(v)
		case "cache_creation_input_tokens":
			t.cacheWrite = tokens(v)
		}
		return true
	})
	return t
}

// foreignToMessages says whether an object has what only other protocols' have.
func foreignToMessages(root gjson.Result) bool {
	return root.Get("choices").Exists() || root.Get("candidates").Exists() || root.Get("output").IsArray()
}

func (anthropicMessages) whole(root gjson.Result) reading {
	r := reading{model: root.Get("model").Str, tally: messageUsage(root.Get("usage"))}
	kind, content := root.Get("type").Str, root.Get("content")
	switch {
	case kind == "error", truthy(root.Get("error")), root.Get("success").Type == gjson.False,
		truthy(root.Get("base_resp.status_code")):
		r.sign = failure
	case foreignToMessages(root):
		r.sign, r.reason = invalid, "wrong_protocol"
	case content.IsArray():
		r.sign = ended
		if said(content) || root.Get("stop_reason").Str != "" {
			r.sign = output
		}
	case kind != "message" && loose(root):
		r.sign = failure
	default:
		r.sign, r.reason = invalid, "missing_fields"
	}
	return r
}

// loose says whether an object looks like an error without an envelope.
func loose(root gjson.Result) bool {
	found := false
	root.ForEach(func(key, v gjson.Result) bool {
		found = truthy(v) && among(errorMembers[:], key.Str, equal)
		return !found
	})
	return found
}

func (anthropicMessages) glance(raw []byte) glance {
	const block, event, data = `content_block_`, `event: ` + `content_block_`, `data: {"type":"` + `content_block_`
	switch {
	case bytes.HasPrefix(raw, []byte(event)), bytes.HasPrefix(raw, []byte(data)):
		return pass
	// Other spellings; in a text these quotes would be escaped.
	case bytes.Contains(raw, []byte(`"`+block+`delta"`)):
		return pass
	}
	return look
}
