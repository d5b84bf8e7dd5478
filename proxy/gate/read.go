package gate

import (
	"bytes"
	"math/bits"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
	"github.com/fourgate-dev/fourgate/proxy/sse"
)

// readUsage reads the usage that was put off.
func (s *Stream) readUsage() {
	if len(s.lastUsage) > 0 {
		s.tally.merge(s.read(s.parse(s.lastUsage, false)).tally)
		s.lastUsage = s.lastUsage[:0]
	}
}

// note remembers whether a frame has anything of an event stream.
func (s *Stream) note(f sse.Frame) {
	s.first = true
	s.event = s.event || f.Event != nil || f.Data != nil || f.Comment && bytes.IndexByte(f.Raw, ':') >= 0
}

// judge reads a frame while nothing is decided.
func (s *Stream) judge(raw []byte) {
	f := s.parse(raw, !s.first)
	s.note(f)
	r := s.read(f)
	s.take(r)
	s.count(f)
	switch {
	case r.sign == failure:
		s.verdict = Discard
	case r.sign == invalid:
		s.verdict, s.finding = Discard, schemaInvalid(r.reason)
	case r.model != "" && r.model != s.model && s.accepts != nil && !s.accepts(r.model):
		s.model = r.model
		s.verdict, s.finding = Discard, finding(engine.ClassContractViolation, "model_mismatch")
	case r.sign == output:
		s.verdict = Commit
	case r.sign == ended:
		s.verdict, s.finding = Discard, schemaInvalid("empty_answer")
	case r.sign == strange:
		s.strange = true
	}
	if r.model != "" {
		s.model = r.model
	}
}

// watch looks at a frame that goes to the caller, and says whether it is an error.
func (s *Stream) watch(raw []byte) bool {
	seen := s.proto.glance(raw)
	if s.array && raw[len(raw)-1] == ']' || s.unnamed() {
		seen = look
	}
	switch seen {
	case pass:
		if raw[0] > '\r' && raw[0] != ':' { // no keep-alive
			s.given++
		}
		return false
	case lastUsage:
		s.given++
		s.lastUsage = append(s.lastUsage[:0], raw...)
		return false
	}
	s.readUsage()
	f := s.parse(raw, false)
	r := s.read(f)
	s.take(r)
	if s.unnamed() && r.model != "" {
		s.model = r.model
		// The gate's limit has committed a stream before it said whose it is.
		if !s.accepts(r.model) {
			s.finding = finding(engine.ClassContractViolation, "model_mismatch")
		}
	}
	if (r.sign == failure || s.finding != engine.Finding{}) && !s.errored {
		s.errored, s.errFrame = true, bytes.Clone(raw)
		if s.array {
			s.errFrame = elementOf(s.errFrame)
		}
		return true
	}
	s.count(f)
	return false
}

// maxUnnamed is how many events of a stream that was committed by a limit are read for
// the model that it names. One that names none by then never will.
const maxUnnamed = 16

// unnamed says that a committed stream may still turn out to be another model's.
func (s *Stream) unnamed() bool {
	return s.model == "" && s.accepts != nil && s.given < maxUnnamed
}

// count counts a frame that clients see as an event.
func (s *Stream) count(f sse.Frame) {
	if len(f.Data) > 0 {
		s.given++
	}
}

// parse reads the fields of a frame.
func (s *Stream) parse(raw []byte, first bool) sse.Frame {
	if s.array {
		return sse.Frame{Raw: raw, Data: elementOf(raw)}
	}
	return sse.Parse(raw, first)
}

// take keeps what a frame says besides its sign.
func (s *Stream) take(r reading) {
	s.tally.merge(r.tally)
	// An array that isn't closed is no JSON, whatever its elements say.
	s.finished |= r.finished
	whole := !s.array && (s.choices < 2 || bits.OnesCount64(s.finished) >= s.choices)
	s.complete = s.complete || r.done && (r.last || whole)
	s.ended = s.ended || r.last
}

// read reads one frame's data.
func (s *Stream) read(f sse.Frame) reading {
	failed := string(f.Event) == "error"
	data := bytes.TrimSpace(f.Data)
	switch {
	case s.array && len(data) == 0:
		return reading{sign: ended, done: true, last: true}
	case len(data) == 0:
		if failed {
			return reading{sign: failure}
		}
		return reading{}
	case string(data) == "[DONE]":
		// Some send it in protocols that have another end: it means nothing there.
		if s.proto.endMark() == "" {
			return reading{}
		}
		return reading{sign: ended, done: true, last: true}
	case data[0] == '<' && !failed:
		return reading{sign: invalid, reason: "html_body"}
	}
	return s.readJSON(f.Event, data, failed)
}

// readJSON reads data that should be JSON.
func (s *Stream) readJSON(event, data []byte, failed bool) reading {
	s.text = strictjson.New(data, false)
	var r reading
	switch s.text.Peek() {
	case strictjson.Object:
		r = s.proto.frame(event, &s.text)
	case strictjson.Array:
		r.sign = strange
		if errorInArray(&s.text) {
			r.sign = failure
		}
	default:
		r.sign = strange
		s.text.Skip()
	}
	fault := s.text.Failed() || s.text.End() != nil
	s.text = strictjson.Scanner{}
	switch {
	case failed:
		r.sign = failure
	case fault:
		return reading{sign: invalid, reason: "bad_json"}
	}
	return r
}
