package gate

import (
	"github.com/tidwall/gjson"

	"github.com/fourgate-dev/fourgate/engine"
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
	// frame reads the data of one event; event is its name or empty. root is valid JSON.
	frame(event []byte, root gjson.Result) reading
	// glance looks at a raw frame in passing. It must be cheap, may say look too often
	// and must never pass by an end, an error or a last usage.
	glance(raw []byte) glance
	// whole reads a body that came in one piece; root is a valid JSON object. It says
	// output, failure, invalid, or ended for an answer with nothing in it.
	whole(root gjson.Result) reading
	// endMark is data that is no JSON and ends a stream; empty if there is none.
	endMark() string
}

// protocolOf returns the reader for an endpoint's answers, nil for opaque bytes.
func protocolOf(e engine.Endpoint) protocol {
	switch e {
	case engine.OpenAIChat:
		return openAIChat{}
	case engine.AnthropicMessages:
		return anthropicMessages{}
	case engine.OpenAIAudio, engine.OpenAIImages:
		return nil
	}
	return anyJSON{}
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

// maxTokens is far above any count that is true, and keeps sums from overflowing.
const maxTokens = 1 << 50

// tokens reads a count; whatever is no whole number from 0 on is unknown.
func tokens(v gjson.Result) engine.Tokens {
	if v.Type != gjson.Number || v.Num < 0 || v.Num > maxTokens || v.Num != float64(int64(v.Num)) {
		return engine.Tokens{}
	}
	return engine.TokensOf(int64(v.Num))
}
