package judge

import (
	"strconv"
	"unicode/utf8"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/judge/strictjson"
)

// MaxModel bounds a model's name in bytes, so that it may stand in records and headers.
const MaxModel = 256

// Body is what was read of a request body.
type Body struct {
	Model string
	// ModelStart and ModelEnd are the range of the model's JSON string in the body,
	// quotes included. Both are 0 if the endpoint has its model elsewhere.
	ModelStart, ModelEnd int
	// BareModel says that the model stands in an upload, as it is and without quotes.
	BareModel     bool
	Stream, Tools bool
	// Choices is how many answers are asked for at once ("n"), 0 if the body doesn't say.
	Choices int
	// MaxOutput is how many tokens of output the body allows, 0 if it doesn't say.
	MaxOutput int64
	// Cached says that the body marks what a prompt cache may hold.
	Cached bool
	// ReplaySafe says that sending the body once more can do nothing but cost.
	ReplaySafe bool
	// Effects are none if nothing outside the inference can happen, and possible
	// otherwise. A tool that the application runs itself is not outside.
	Effects engine.Effects
}

// Request reads the body of a request to an endpoint. It keeps nothing of body, and
// gives the same answer for the same bytes.
func Request(e engine.Endpoint, body []byte) (Body, *Fault) {
	r := reader{rules: rulesOf(e), s: strictjson.New(body, true)}
	if len(body) == 0 {
		return Body{}, fault(InvalidJSON, 0, "The request has no body. Send a JSON object.")
	}
	if kind := r.s.Peek(); kind != strictjson.Object && kind != strictjson.None {
		r.refuse(WrongType, r.s.Offset(), "The request body must be a JSON object.")
	}
	r.stored, r.outside = r.rules.storesByDefault, r.rules.always
	r.s.Object(r.member)
	// What is no JSON counts first: another parser wouldn't have come so far.
	if f := r.s.End(); f != nil {
		return Body{}, jsonFault(*f, body)
	}
	if r.fault == nil && !r.named && r.rules.needsModel {
		r.refuse(MissingModel, len(body), `The request body has no "model". Name the model that you want.`)
	}
	if r.fault != nil {
		return Body{}, r.fault
	}
	r.body.Effects = engine.EffectsNone
	if r.outside || r.stored {
		r.body.Effects = engine.EffectsPossible
	}
	r.body.ReplaySafe = r.body.Effects == engine.EffectsNone
	return r.body, nil
}

// reader is the state of one Request.
type reader struct {
	rules   *rules
	s       strictjson.Scanner
	body    Body
	named   bool // a model was read
	outside bool // something outside the inference can happen
	stored  bool // the answer is kept, as far as is known
	fault   *Fault
}

// refuse keeps the first fault.
func (r *reader) refuse(reason Reason, at int, message string) {
	if r.fault == nil {
		r.fault = fault(reason, at, message)
	}
}

// member reads one top-level member.
func (r *reader) member(key strictjson.Text) {
	switch {
	case key.Is("model"):
		r.model()
	case key.Is("stream"):
		switch r.s.Peek() {
		case strictjson.True:
			r.body.Stream = true
		case strictjson.False, strictjson.Null:
		default:
			r.refuse(WrongType, r.s.Offset(), `"stream" must be true, false or null.`)
		}
	case key.Is("stream_format") && r.rules.streamFormat:
		r.body.Stream = r.s.Peek() == strictjson.String && r.s.Text().Is("sse") || r.body.Stream
	case key.Is("tools"):
		r.tools()
	case key.Is("functions"):
		r.body.Tools = r.body.Tools || r.given()
	case key.Is("n"):
		if r.s.Peek() == strictjson.Number {
			// What is no sensible number is the upstream's to refuse.
			r.body.Choices, _ = strconv.Atoi(string(r.s.Raw()))
		}
	case key.Is("store"):
		r.stored = !r.off()
	default:
		if r.limit(key) {
			return
		}
		for _, name := range r.rules.outside {
			if key.Is(name) {
				r.outside = r.outside || r.given()
				return
			}
		}
		r.clash(key)
	}
}

// limit reads what tells the request's price beforehand, and says whether it was that.
func (r *reader) limit(key strictjson.Text) bool {
	switch {
	case isOneOf(key, r.rules.limits):
		r.tokens()
	case r.rules.cache != "" && key.Is(r.rules.cache):
		r.body.Cached = r.given()
	case r.rules.nested && (key.Is("generationConfig") || key.Is("generation_config")):
		if r.s.Peek() == strictjson.Object {
			r.s.Object(func(key strictjson.Text) {
				if key.Is("maxOutputTokens") || key.Is("max_output_tokens") {
					r.tokens()
				}
			})
		}
	default:
		return false
	}
	return true
}

// tokens reads a bound of the output. What is no sensible number is the upstream's to
// refuse.
func (r *reader) tokens() {
	if r.s.Peek() != strictjson.Number {
		return
	}
	if n, err := strconv.ParseInt(string(r.s.Raw()), 10, 64); err == nil {
		r.body.MaxOutput = max(n, 0)
	}
}

// clash refuses a name that only case keeps apart from one that is read.
func (r *reader) clash(key strictjson.Text) {
	for _, list := range [...][]string{everywhere[:], r.rules.outside} {
		for _, name := range list {
			if key.EqualFold(name) {
				r.refuse(AmbiguousName, r.s.Offset(), `A name in the request body differs only in case from "`+name+`". Names are case-sensitive; write it as "`+name+`".`)
				return
			}
		}
	}
}

func (r *reader) model() {
	if r.s.Peek() != strictjson.String {
		r.refuse(WrongType, r.s.Offset(), `"model" must be a string.`)
		return
	}
	start := r.s.Offset()
	text := r.s.Text()
	if len(text.Raw) > 6*MaxModel { // the longest escape of one byte
		r.refuse(BadModel, start, `"model" is longer than 256 bytes.`)
		return
	}
	name := text.String()
	switch {
	case name == "":
		r.refuse(MissingModel, start, `"model" is empty. Name the model that you want.`)
	case len(name) > MaxModel:
		r.refuse(BadModel, start, `"model" is longer than 256 bytes.`)
	case !printable(name):
		r.refuse(BadModel, start, `"model" has a control character or half a surrogate pair.`)
	}
	r.named = true
	r.body.Model, r.body.ModelStart, r.body.ModelEnd = name, start, r.s.Offset()
}

// printable says whether a name has no control character of ASCII or Latin-1, and no
// U+FFFD, which may stand for half a surrogate pair.
func printable(name string) bool {
	for _, c := range name {
		if c < ' ' || c >= 0x7F && c < 0xA0 || c == utf8.RuneError {
			return false
		}
	}
	return true
}

// given says whether the value at hand means something: null, false, an empty array and
// an empty string are how clients leave a member out. An empty object is not: it asks
// for a feature with its defaults.
func (r *reader) given() bool {
	some := false
	switch r.s.Peek() {
	case strictjson.Null, strictjson.False:
		return false
	case strictjson.Array:
		r.s.Array(func() { some = true })
		return some
	case strictjson.String:
		return len(r.s.Text().Raw) > 0
	}
	return true
}

// off says whether the value at hand is false or null; null leaves a default as it is.
func (r *reader) off() bool {
	switch r.s.Peek() {
	case strictjson.False:
		return true
	case strictjson.Null:
		return !r.rules.storesByDefault
	}
	return false
}

// tools reads the list of tools. What is no list of objects is the provider's to
// refuse, and may do anything until then.
func (r *reader) tools() {
	switch r.s.Peek() {
	case strictjson.Null:
		return
	case strictjson.Array:
	default:
		r.outside = true
		return
	}
	r.s.Array(func() {
		r.body.Tools = true
		if r.s.Peek() != strictjson.Object {
			r.outside = true
			return
		}
		if r.rules.toolsByMember {
			r.s.Object(func(key strictjson.Text) {
				r.outside = r.outside || !isOneOf(key, r.rules.ownTools)
			})
			return
		}
		own := r.rules.untypedIsOwn
		r.s.Object(func(key strictjson.Text) {
			switch {
			case key.Is("type"):
				own = r.s.Peek() == strictjson.String && r.own(r.s.Text()) ||
					r.s.Peek() == strictjson.Null && r.rules.untypedIsOwn
			case key.EqualFold("type"):
				r.refuse(AmbiguousName, r.s.Offset(), `A name in a tool differs only in case from "type". Names are case-sensitive.`)
			}
		})
		r.outside = r.outside || !own
	})
}

// own says whether the application runs tools of this type itself.
func (r *reader) own(kind strictjson.Text) bool {
	if isOneOf(kind, r.rules.ownTools) {
		return true
	}
	for _, family := range r.rules.ownFamilies {
		if name := kind.String(); len(name) > len(family) && name[:len(family)] == family {
			return true
		}
	}
	return false
}

func isOneOf(t strictjson.Text, list []string) bool {
	for _, name := range list {
		if t.Is(name) {
			return true
		}
	}
	return false
}
