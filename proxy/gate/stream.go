package gate

import (
	"bytes"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
	"github.com/fourgate-dev/fourgate/proxy/sse"
)

// MaxHeld is how many bytes a stream holds back before [Stream.Full] tells the driver
// to commit: enough for the opening frames of any provider, tool lists echoed included.
const MaxHeld = 256 << 10

const byteOrderMark = "\xEF\xBB\xBF"

// Verdict is what the bytes so far say of an attempt. The zero value is wait.
type Verdict uint8

// The verdicts. Commit and Discard are final.
const (
	Wait Verdict = iota
	Commit
	Discard
)

func (v Verdict) String() string {
	switch v {
	case Commit:
		return "commit"
	case Discard:
		return "discard"
	}
	return "wait"
}

// Stream judges one upstream's stream, and watches it after commit. One goroutine uses
// it at a time.
type Stream struct {
	endpoint engine.Endpoint
	proto    protocol // nil: opaque bytes
	accepts  func(model string) bool
	scan     sse.Scanner

	held   []byte
	ends   []int // where the held frames end
	few    [8]int
	loose  bool // held frames are not to be told apart any more
	passed bool // Pass was called: nothing is held

	verdict Verdict
	finding engine.Finding

	begun   bool   // something other than white space has come
	foreign bool   // it is the beginning of no event stream …
	page    bool   // … but of a page of HTML
	body    []byte // what it was the beginning of
	json    brackets
	atEnd   bool               // End gave the verdict
	text    strictjson.Scanner // of the frame that is being read
	first   bool               // a frame was read
	event   bool               // a field or comment of an event stream was seen
	strange bool               // a frame had none of the protocol's shapes

	model     string
	tally     tally
	lastUsage []byte // data of the last frame with usage, not yet read
	complete  bool
	ended     bool
	errored   bool
	errFrame  []byte
}

// NewStream makes the gate for one attempt at an endpoint. The accepts function says whether
// an answer may name this model; nil accepts all. An answer that names none is accepted.
func NewStream(e engine.Endpoint, accepts func(model string) bool) *Stream {
	s := &Stream{endpoint: e, proto: protocolOf(e), accepts: accepts}
	s.ends = s.few[:0]
	return s
}

// Feed takes the next bytes and says what is known with them. It keeps a copy of chunk
// in the held buffer. A driver that wants the whole stream before it commits goes on
// feeding after Commit; one that relays calls [Stream.Pass] from then on.
func (s *Stream) Feed(chunk []byte) Verdict {
	if s.passed {
		s.Pass(chunk)
		return s.verdict
	}
	from := len(s.held)
	s.held = append(s.held, chunk...)
	if s.verdict == Discard {
		return s.verdict
	}
	if !s.begun {
		s.begin()
	}
	if s.proto == nil {
		if len(s.held) > 0 {
			s.verdict = Commit
		}
		return s.verdict
	}
	if s.foreign {
		return s.feedForeign(from)
	}
	s.scan.Feed(s.held[from:])
	for s.verdict != Discard {
		raw, ok := s.scan.NextRaw()
		if !ok {
			if s.scan.Err() == nil {
				break
			}
			s.scan.Skip()
			s.loose = true
			continue
		}
		s.ends = append(s.ends, s.end()+len(raw))
		if s.verdict == Commit {
			s.watch(raw)
		} else {
			s.judge(raw)
		}
	}
	return s.verdict
}

// Pass watches bytes that go to the caller after commit, or that go on after the driver
// committed by itself. It neither keeps nor changes chunk, and drops what was held: the
// slice that [Stream.Held] gave stays valid, and is the driver's alone now.
func (s *Stream) Pass(chunk []byte) {
	s.passed, s.verdict = true, Commit
	s.held, s.ends = nil, nil
	if s.proto == nil || s.foreign {
		return
	}
	s.scan.Feed(chunk)
	for {
		raw, ok := s.scan.NextRaw()
		if ok {
			s.watch(raw)
			continue
		}
		if s.scan.Err() == nil {
			return
		}
		// An image in a data URL may be as long as that: let it pass unread.
		s.scan.Skip()
	}
}

// End is called when the upstream ended the body in order. Without a verdict until
// then there is nothing to commit: it says Discard, and [Stream.Finding] says why. A
// frame that was never ended counts as lost, since no client would read it.
func (s *Stream) End() Verdict {
	if s.verdict != Wait {
		return s.verdict
	}
	s.verdict, s.atEnd = Discard, true
	if s.proto == nil {
		s.finding = schemaInvalid("empty_body")
		return s.verdict
	}
	if s.foreign {
		s.endForeign(s.held)
		return s.verdict
	}
	if rest := s.scan.Rest(); len(rest) > 0 {
		f := sse.Parse(rest, !s.first)
		s.note(f)
		if s.read(f).sign == failure {
			return s.verdict
		}
	}
	switch {
	case len(s.held) > 0 && !s.event:
		s.finding = schemaInvalid("wrong_content_type")
	case s.strange:
		s.finding = schemaInvalid("missing_fields")
	default:
		s.finding = finding(engine.ClassProviderTransient, "truncated")
	}
	return s.verdict
}

// Held returns everything that was fed and not passed, to be sent in one write.
func (s *Stream) Held() []byte { return s.held }

// Full says that the driver should commit: [MaxHeld] bytes have decided nothing. It is
// never said of bytes that are no event stream.
func (s *Stream) Full() bool { return len(s.held) >= MaxHeld && !s.foreign }

// Foreign says that the bytes are no event stream, although one was asked for: a JSON
// body, a page. They must not be committed, whatever limit has elapsed; [Stream.End]
// gives the finding.
func (s *Stream) Foreign() bool { return s.foreign }

// Opaque says that the bytes are not read at all: audio, images, a stream in a JSON
// array. Nothing is known of where such an answer ends, so Complete stays false, and an
// orderly end of the body has to do.
func (s *Stream) Opaque() bool { return s.proto == nil }

// Frames returns the raw frames for the classifier, an unfinished one last. While
// bytes are held these are all of them up to the one that decided for discarding;
// after [Stream.Pass], the frame with the error alone.
func (s *Stream) Frames() [][]byte {
	switch {
	case s.passed && s.errored:
		return [][]byte{s.errFrame}
	case len(s.held) == 0:
		return nil
	case s.foreign && s.verdict == Discard:
		return [][]byte{s.body}
	case s.foreign || s.loose:
		return [][]byte{s.held}
	}
	frames := make([][]byte, 0, len(s.ends)+1)
	at := 0
	for _, end := range s.ends {
		frames = append(frames, s.held[at:end:end])
		at = end
	}
	if s.verdict == Discard && !s.atEnd || at == len(s.held) {
		return frames
	}
	return append(frames, s.held[at:])
}

// Finding says why the verdict is Discard. It is zero for an error frame, which is for
// the classifier to read, and for every other verdict.
func (s *Stream) Finding() engine.Finding { return s.finding }

// Complete says whether the answer's terminal event was seen: the end mark or what
// stands for it in the protocol. Usage may still follow.
func (s *Stream) Complete() bool { return s.complete }

// Ended says whether the protocol's own end mark was seen, after which nothing follows:
// not all protocols have one.
func (s *Stream) Ended() bool { return s.ended }

// Errored says whether an error came after the decisive frame.
func (s *Stream) Errored() bool { return s.errored }

// Open says whether the stream stands within a frame. An event of the proxy's own must
// be separated by a blank line then.
func (s *Stream) Open() bool { return s.scan.Open() }

// Model returns the model that the answer has named, empty if none.
func (s *Stream) Model() string { return s.model }

// Usage returns what the upstream said it has used so far. What it didn't say is
// unknown.
func (s *Stream) Usage() engine.Usage {
	s.readUsage()
	return s.tally.usage()
}

// readUsage reads the usage that was put off.
func (s *Stream) readUsage() {
	if len(s.lastUsage) > 0 {
		s.tally.merge(s.read(sse.Parse(s.lastUsage, false)).tally)
		s.lastUsage = s.lastUsage[:0]
	}
}

func (s *Stream) end() int {
	if len(s.ends) == 0 {
		return 0
	}
	return s.ends[len(s.ends)-1]
}

// note remembers whether a frame has anything of an event stream.
func (s *Stream) note(f sse.Frame) {
	s.first = true
	s.event = s.event || f.Event != nil || f.Data != nil || f.Comment && bytes.IndexByte(f.Raw, ':') >= 0
}

// judge reads a frame while nothing is decided.
func (s *Stream) judge(raw []byte) {
	f := sse.Parse(raw, !s.first)
	s.note(f)
	r := s.read(f)
	s.take(r)
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

// watch looks at a frame that goes to the caller.
func (s *Stream) watch(raw []byte) {
	switch s.proto.glance(raw) {
	case pass:
		return
	case lastUsage:
		s.lastUsage = append(s.lastUsage[:0], raw...)
		return
	}
	s.readUsage()
	r := s.read(sse.Parse(raw, false))
	if r.sign == failure && !s.errored {
		s.errored, s.errFrame = true, bytes.Clone(raw)
	}
	s.take(r)
}

// take keeps what a frame says besides its sign.
func (s *Stream) take(r reading) {
	s.tally.merge(r.tally)
	s.complete = s.complete || r.done
	s.ended = s.ended || r.last
}

// read reads one frame's data.
func (s *Stream) read(f sse.Frame) reading {
	failed := string(f.Event) == "error"
	data := bytes.TrimSpace(f.Data)
	switch {
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
