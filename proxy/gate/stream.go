package gate

import (
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
	proto   protocol
	accepts func(model string) bool
	scan    splitter
	events  sse.Scanner // unless array
	array   bool

	held   []byte
	ends   []int // where the held frames end
	few    [8]int
	loose  bool   // held frames are not to be told apart any more
	passed bool   // nothing is held any more, but for what follows
	parked []byte // the beginning of an open frame that may be an error, not given out yet
	given  int    // frames that were given out
	errAt  int    // where in held the error's frame begins
	kept   bool   // none of the error's frame was given out

	verdict Verdict
	finding engine.Finding

	begun    bool   // something other than white space has come
	foreign  bool   // it is the beginning of no event stream …
	page     bool   // … but of a page of HTML …
	plain    bool   // … or of some text
	doubtful bool   // its first line is a field that no event has
	body     []byte // what it was the beginning of
	json     brackets
	atEnd    bool               // End gave the verdict
	text     strictjson.Scanner // of the frame that is being read
	first    bool               // a frame was read
	event    bool               // a field or comment of an event stream was seen, or an element
	strange  bool               // a frame had none of the protocol's shapes

	model     string
	tally     tally
	lastUsage []byte // data of the last frame with usage, not yet read
	complete  bool
	choices   int    // that were asked for
	finished  uint64 // a bit for each that has a finish reason, by its index
	ended     bool
	errored   bool
	errFrame  []byte
}

// NewStream makes the gate for one attempt at an endpoint. The accepts function says whether
// an answer may name this model; nil accepts all. An answer that names none is accepted.
func NewStream(e engine.Endpoint, accepts func(model string) bool) *Stream {
	s := &Stream{proto: protocolOf(e), accepts: accepts}
	s.scan, s.ends = &s.events, s.few[:0]
	return s
}

// Expect says that so many choices were asked for, each of which ends with a finish reason
// of its own.
func (s *Stream) Expect(choices int) { s.choices = min(choices, 64) }

// NewArray makes the gate for a stream in a JSON array, each of whose elements counts as
// an event.
func NewArray(e engine.Endpoint, accepts func(model string) bool) *Stream {
	s := NewStream(e, accepts)
	s.scan, s.array = new(arrayScanner), true
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
	if s.foreign {
		return s.feedForeign(from)
	}
	s.scan.Feed(s.held[from:])
	for s.verdict != Discard && !s.errored { // nothing counts behind an error
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
			if s.watch(raw) && !s.loose {
				s.errAt = s.end() - len(raw)
			}
		} else {
			s.judge(raw)
		}
	}
	if s.doubtful && !s.event && s.verdict == Wait && len(s.held) >= MaxHeld {
		return s.End()
	}
	return s.verdict
}

// End is called when the upstream ended the body in order. Without a verdict until
// then there is nothing to commit: it says Discard, and [Stream.Finding] says why. A
// frame that was never ended counts as lost, since no client would read it.
func (s *Stream) End() Verdict {
	if s.verdict != Wait {
		return s.verdict
	}
	s.verdict, s.atEnd = Discard, true
	if s.foreign {
		s.endForeign(s.held)
		return s.verdict
	}
	if rest := s.scan.Rest(); len(rest) > 0 {
		f := s.parse(rest, !s.first)
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
func (s *Stream) Full() bool { return len(s.held) >= MaxHeld && !s.Foreign() }

// Foreign says that the bytes are no event stream, or seem to be none, although one was
// asked for: a JSON body, a page, some text. They must not be committed, whatever limit has
// elapsed; [Stream.End] gives the finding.
func (s *Stream) Foreign() bool { return s.foreign || s.doubtful && !s.event }

// Body says that the evidence of a discarded attempt is one body rather than events: a
// foreign one, or an element of an array. [Stream.Frames] has it last.
func (s *Stream) Body() bool { return s.foreign || s.array }

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
		frame := s.held[at:end:end]
		if s.array {
			frame = elementOf(frame)
		}
		frames = append(frames, frame)
		at = end
	}
	if s.verdict == Discard && !s.atEnd || at == len(s.held) {
		return frames
	}
	return append(frames, s.held[at:])
}

// Finding says why the verdict is Discard, or that a stream which was committed before it
// named a model turned out to be another model's. It is zero for an error frame, which is
// for the classifier to read, and otherwise.
func (s *Stream) Finding() engine.Finding { return s.finding }

// Complete says whether the answer's terminal event was seen: the end mark or what
// stands for it in the protocol. Usage may still follow.
func (s *Stream) Complete() bool { return s.complete }

// Ended says whether the protocol's own end mark was seen, after which nothing follows:
// not all protocols have one.
func (s *Stream) Ended() bool { return s.ended }

// Errored says whether an error came after the decisive frame.
func (s *Stream) Errored() bool { return s.errored }

// Withheld says that none of the error that came after the decisive frame was given out.
func (s *Stream) Withheld() bool { return s.errored && s.kept }

// Open says whether what was given out ends within a frame. An event of the proxy's own
// must be separated from it then.
func (s *Stream) Open() bool {
	return s.scan.Open() && len(s.parked) == 0 && !s.errored // nothing follows an error
}

// Given returns how many events were given out whole.
func (s *Stream) Given() int { return s.given }

// Model returns the model that the answer has named, empty if none.
func (s *Stream) Model() string { return s.model }

// Usage returns what the upstream said it has used so far. What it didn't say is
// unknown.
func (s *Stream) Usage() engine.Usage {
	s.readUsage()
	return s.tally.usage()
}

func (s *Stream) end() int {
	if len(s.ends) == 0 {
		return 0
	}
	return s.ends[len(s.ends)-1]
}
