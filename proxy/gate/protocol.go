package gate

import (
	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
)

// sign is what one frame, or a whole body, says of its answer.
type sign uint8

const (
	nothing sign = iota // lifecycle, keep-alive, empty: decides nothing
	strange             // none of the protocol's shapes: decides nothing alone
	output              // something of the answer, or the reason why it has ended
	ended               // the end mark; without output before it, an empty answer
	failure             // an error, for the classifier to read
	invalid             // no valid answer, as the reading's reason says
)

// reading is what was read in one frame or body.
type reading struct {
	sign   sign
	reason string // with invalid: of the class schema_invalid
	model  string // as the answer names it; empty if it names none
	tally  tally
	done   bool // the protocol's terminal event, or a finish reason that stands for it
	last   bool // the terminal event itself: nothing of the answer can follow it
	// finished has a bit for each choice, by its index, that has a finish reason here.
	finished uint64
}

// glance is what a quick look at a frame of a committed stream found.
type glance uint8

const (
	pass      glance = iota // nothing that a watcher wants to know
	lastUsage               // usage that a later frame may replace: read the last one only
	look                    // read the frame
)

// protocol knows the shapes of one endpoint's answers. Implementations have no state.
type protocol interface {
	// frame reads the data of one event, whose name may be empty. The scanner stands at
	// an object, and behind it afterwards; whether it is valid is the caller's to ask.
	frame(event []byte, s *strictjson.Scanner) reading
	// glance looks at a raw frame in passing. It must be cheap, may say look too often
	// and must not pass by an end, an error that calls itself one, or a last usage.
	glance(raw []byte) glance
	// whole reads a body that came in one piece, as frame does. It says output, failure,
	// invalid, or ended for an answer with nothing in it.
	whole(s *strictjson.Scanner) reading
	// endMark is data that is no JSON and ends a stream; empty if there is none.
	endMark() string
}

// protocolOf returns the reader for an endpoint's answers.
func protocolOf(e engine.Endpoint) protocol {
	switch e {
	case engine.OpenAIResponses:
		return openAIResponses{}
	case engine.OpenAICompletions:
		return openAICompletions{}
	case engine.AnthropicMessages:
		return anthropicMessages{}
	case engine.GeminiGenerate:
		return geminiGenerate{}
	case engine.OpenAIEmbeddings, engine.OpenAIImages:
		return openAIMedia{answer: "data", list: true}
	case engine.OpenAIAudio:
		return openAIMedia{answer: "text"}
	}
	return openAIChat{} // what most servers of no known protocol speak
}

// schemaInvalid makes a finding of that class.
func schemaInvalid(reason string) engine.Finding {
	return finding(engine.ClassSchemaInvalid, reason)
}

func finding(c engine.Class, reason string) engine.Finding {
	r, err := engine.ParseReason(reason)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return engine.Finding{Class: c, Reason: r}
}

// tally are the token counts of an answer as they were named on the wire.
type tally struct {
	input, output, cacheRead, cacheWrite engine.Tokens
	// apart says that input leaves out what was read from and written to a cache.
	apart bool
}

// merge takes over what later says and keeps the rest.
func (t *tally) merge(later tally) {
	for _, p := range [...]struct{ into, from *engine.Tokens }{
		{&t.input, &later.input}, {&t.output, &later.output},
		{&t.cacheRead, &later.cacheRead}, {&t.cacheWrite, &later.cacheWrite},
	} {
		if _, known := p.from.Get(); known {
			*p.into = *p.from
		}
	}
	t.apart = t.apart || later.apart
}

// usage gives the counts in the engine's sense, where the input includes what came
// from a cache.
func (t tally) usage() engine.Usage {
	u := engine.Usage{Input: t.input, Output: t.output, CachedInput: t.cacheRead}
	if n, known := t.input.Get(); known && t.apart {
		read, _ := t.cacheRead.Get()
		write, _ := t.cacheWrite.Get()
		u.Input = engine.TokensOf(n + read + write)
	}
	return u
}
