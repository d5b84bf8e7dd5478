package gate

import (
	"bytes"

	"github.com/tidwall/gjson"
)

// anyJSON reads answers of endpoints without a table of their own by what all JSON
// protocols share: an error is a member of that name, and any other frame is output.
type anyJSON struct{}

func (anyJSON) endMark() string { return "[DONE]" }

func (a anyJSON) frame(event []byte, root gjson.Result) reading {
	r := a.whole(root)
	if string(event) == "error" {
		r.sign = failure
	}
	return r
}

func (anyJSON) whole(root gjson.Result) reading {
	r := reading{sign: output, model: root.Get("model").Str}
	if truthy(root.Get("error")) || root.Get("type").Str == "error" {
		r.sign = failure
	}
	r.tally.merge(chatUsage(root.Get("usage")))
	return r
}

func (anyJSON) glance(raw []byte) glance {
	switch {
	case member(raw, `rror"`), bytes.HasPrefix(raw, []byte("event: error")):
		return look
	case member(raw, `usage"`):
		return lastUsage
	case len(raw) < 64 && bytes.Contains(raw, []byte("[DONE]")):
		return look
	}
	return pass
}
