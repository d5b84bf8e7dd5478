package gate

import (
	"bytes"

	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
)

// anyJSON reads answers of endpoints without a table of their own by what all JSON
// protocols share: an error is a member of that name, and any other frame is output.
type anyJSON struct{}

func (anyJSON) endMark() string { return "[DONE]" }

func (a anyJSON) frame(event []byte, s *strictjson.Scanner) reading {
	r := a.whole(s)
	if string(event) == "error" {
		r.sign = failure
	}
	return r
}

func (anyJSON) whole(s *strictjson.Scanner) reading {
	r := reading{sign: output}
	s.Object(func(key strictjson.Text) {
		switch string(key.Bytes()) {
		case "error":
			if truthy(s) {
				r.sign = failure
			}
		case "type":
			if s.Text().Is("error") {
				r.sign = failure
			}
		case "model":
			r.model = s.Text().String()
		case "usage":
			r.tally.merge(chatUsage(s))
		}
	})
	return r
}

func (anyJSON) glance(raw []byte) glance {
	if bytes.HasPrefix(raw, []byte("event: error")) || len(raw) < 64 && bytes.Contains(raw, []byte("[DONE]")) {
		return look
	}
	return glanceMembers(raw)
}
