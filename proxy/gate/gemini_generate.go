package gate

import (
	"bytes"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
)

// geminiGenerate reads generated content; each frame of a stream has the shape of a
// whole answer, and nothing marks the end but a finish reason.
type geminiGenerate struct{}

// brokenCalls are finish reasons that say that what should have been a tool call is
// none. Read only.
var brokenCalls = [...]string{"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"}

func (geminiGenerate) endMark() string { return "" }

func (g geminiGenerate) frame(event []byte, s *strictjson.Scanner) reading {
	r, _ := g.read(s)
	if string(event) == "error" {
		r.sign = failure
	}
	return r
}

func (g geminiGenerate) whole(s *strictjson.Scanner) reading {
	r, shaped := g.read(s)
	switch {
	case r.sign == nothing:
		r.sign = ended
	case r.sign == strange && shaped:
		r.sign = ended
	case r.sign == strange:
		r.sign, r.reason = invalid, "missing_fields"
	}
	return r
}

// read reads one answer. Shaped says whether it has anything that only answers have.
func (geminiGenerate) read(s *strictjson.Scanner) (r reading, shaped bool) {
	var failed, foreign, spoke, broken bool
	s.Object(func(key strictjson.Text) {
		switch string(key.Bytes()) {
		case "error":
			failed = truthy(s) || failed
		case "candidates":
			shaped = true
			s.Array(func() {
				said, done, bad := candidate(s)
				spoke, r.done, broken = spoke || said, r.done || done, broken || bad
			})
		case "promptFeedback":
			// The prompt was refused; the classifier says what for.
			inside(s, "blockReason", func() { failed = truthy(s) || failed })
		case "modelVersion":
			shaped = true
			r.model = s.Text().String()
		case "usageMetadata":
			shaped = true
			r.tally = geminiUsage(s)
		case "choices", "output", "stop_reason":
			foreign = true
		}
	})
	switch {
	case failed:
		r.sign = failure
	case foreign && !shaped:
		r.sign, r.reason = invalid, "wrong_protocol"
	case spoke:
		r.sign = output
	case broken:
		r.sign, r.reason = invalid, "malformed_tool_call"
	case r.done:
		r.sign = output
	case !shaped:
		r.sign = strange
	}
	return r, shaped
}

// candidate reads one candidate: whether it holds output, whether it has a finish
// reason, and whether that speaks of a broken tool call.
func candidate(s *strictjson.Scanner) (spoke, done, broken bool) {
	s.Object(func(key strictjson.Text) {
		switch string(key.Bytes()) {
		case "content":
			inside(s, "parts", func() { spoke = said(s) || spoke })
		case "finishReason":
			reason := s.Text().Bytes()
			done = len(reason) > 0
			broken = named(reason, brokenCalls[:])
		}
	})
	return spoke, done, broken
}

func geminiUsage(s *strictjson.Scanner) tally {
	var t tally
	var answer, thoughts engine.Tokens
	s.Object(func(key strictjson.Text) {
		switch string(key.Raw) {
		case "promptTokenCount":
			t.input = tokens(s)
		case "candidatesTokenCount":
			answer = tokens(s)
		case "thoughtsTokenCount":
			thoughts = tokens(s)
		case "cachedContentTokenCount":
			t.cacheRead = tokens(s)
		}
	})
	t.output = answer
	if n, known := thoughts.Get(); known {
		said, _ := answer.Get()
		t.output = engine.TokensOf(n + said) // thoughts are paid as output and counted apart
	}
	return t
}

func (geminiGenerate) glance(raw []byte) glance {
	switch {
	case bytes.Contains(raw, []byte(`"finishReason"`)), bytes.Contains(raw, []byte(`"error"`)),
		bytes.Contains(raw, []byte(`"blockReason"`)), bytes.HasPrefix(raw, []byte("event: error")):
		return look
	case bytes.Contains(raw, []byte(`"usageMetadata"`)):
		return lastUsage
	}
	return pass
}
