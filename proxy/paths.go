package proxy

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/judge"
)

// place is what a path of the proxy leads to.
type place uint8

const (
	placeNone place = iota
	placeEndpoint
	placeModels
	placeHealth
	placeReady
)

// served names the paths in the answer to one that is not.
const served = "POST /v1/chat/completions, /v1/responses, /v1/completions, /v1/embeddings, " +
	"/v1/images/generations, edits and variations, /v1/audio/speech, transcriptions and translations, /v1/messages, " +
	"/v1beta/models/MODEL:generateContent and :streamGenerateContent, GET /v1/models, /v1beta/models, /healthz and /readyz " +
	"(the /v1 paths also below /openai and /anthropic)"

// route is what a target leads to.
type route struct {
	place    place
	endpoint engine.Endpoint
	// path is the endpoint's path as callers and providers spell it, its version first.
	// Where the model is a part of it, path ends before the model.
	path string
	// Of an endpoint that names them in its path: the model, what to do with it, and
	// whether the answer is a stream, in a JSON array unless it is one of events.
	model, operation string
	stream, array    bool
	protocol         engine.Protocol // of the errors
}

// operations are the endpoints that their path alone names. Read only.
var operations = map[string]engine.Endpoint{
	"/v1/chat/completions":     engine.OpenAIChat,
	"/v1/responses":            engine.OpenAIResponses,
	"/v1/completions":          engine.OpenAICompletions,
	"/v1/embeddings":           engine.OpenAIEmbeddings,
	"/v1/images/generations":   engine.OpenAIImages,
	"/v1/images/edits":         engine.OpenAIImages,
	"/v1/images/variations":    engine.OpenAIImages,
	"/v1/audio/speech":         engine.OpenAIAudio,
	"/v1/audio/transcriptions": engine.OpenAIAudio,
	"/v1/audio/translations":   engine.OpenAIAudio,
	"/v1/messages":             engine.AnthropicMessages,
}

const (
	modelsPath       = "/v1/models"
	geminiModelsPath = "/v1beta/models"
)

// locate finds what a target leads to and the protocol its errors are in. The query is
// ignored, as official SDKs send one (anthropic's ?beta=true), but for Gemini's alt=sse.
func locate(target string) route {
	path, query, _ := strings.Cut(target, "?")
	switch path {
	case "/healthz":
		return route{place: placeHealth}
	case "/readyz":
		return route{place: placeReady}
	}
	short := path
	for _, below := range [...]string{"/openai/v1/", "/anthropic/v1/"} {
		if strings.HasPrefix(path, below) {
			short = path[len(below)-len("/v1/"):]
		}
	}
	if e, ok := operations[short]; ok {
		return route{place: placeEndpoint, endpoint: e, path: short, protocol: e.Protocol()}
	}
	r := route{protocol: protocolOf(target)}
	switch {
	case short == modelsPath, path == geminiModelsPath:
		r.place, r.path = placeModels, path
	case strings.HasPrefix(path, geminiModelsPath+"/"):
		r.generate(path[len(geminiModelsPath)+1:], query)
	}
	return r
}

// generate reads MODEL:OPERATION. Google's own clients escape the colon or don't.
func (r *route) generate(rest, query string) {
	rest, err := url.PathUnescape(rest)
	colon := strings.LastIndexByte(rest, ':')
	if err != nil || colon < 1 || !saneModel(rest[:colon]) {
		return
	}
	operation := rest[colon+1:]
	switch operation {
	case "generateContent":
	case "streamGenerateContent":
		r.stream = true
		r.array = queryValue(query, "alt") != "sse"
	default:
		return
	}
	r.place, r.endpoint = placeEndpoint, engine.GeminiGenerate
	r.path, r.model, r.operation = geminiModelsPath+"/", rest[:colon], operation
}

// saneModel says whether a model's name may stand in a path, a header and a record.
func saneModel(name string) bool {
	return len(name) <= judge.MaxModel && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c >= 0x7f && c < 0xa0 || c == '/' || c == utf8.RuneError })
}

// protocolOf guesses the protocol that errors for a target should be in, for requests
// of which nothing else is known.
func protocolOf(target string) engine.Protocol {
	switch {
	case strings.Contains(target, "/messages"), strings.HasPrefix(target, "/anthropic/"):
		return engine.ProtocolAnthropic
	case strings.HasPrefix(target, "/v1beta/"):
		return engine.ProtocolGemini
	}
	return engine.ProtocolOpenAI
}

// upstreamPath is what follows a provider's base URL for the model under the name that is
// sent. A base URL may or may not end in a version: OpenAI's SDKs put it there,
// Anthropic's don't, and both are understood. The caller's query goes along, as
// anthropic's ?beta=true must, as far as it is on the allow-list.
func (r *route) upstreamPath(versioned bool, model, target string) string {
	path := r.path
	if versioned {
		path = path[1+strings.IndexByte(path[1:], '/'):]
	}
	if r.model != "" {
		path += url.PathEscape(model) + ":" + r.operation
	}
	_, query, found := strings.Cut(target, "?")
	if !found {
		return path
	}
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(part, "="); forwarded(name) {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return path
	}
	return path + "?" + strings.Join(kept, "&")
}

// versioned says whether a provider's base URL ends in an API version.
func versioned(base string) bool {
	return strings.HasSuffix(base, "/v1") || strings.HasSuffix(base, "/v1beta")
}

// forwarded is the allow-list of query parameters. A model, a credential or whatever else
// an upstream may read there has not been judged.
func forwarded(name string) bool {
	switch name {
	case "alt", "api-version", "beta":
		return true
	}
	return false
}

// queryValue returns the value of a query's parameter, empty if there is none or more
// than one.
func queryValue(query, want string) string {
	if query == "" {
		return ""
	}
	found, n := "", 0
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil && plain == want {
			n++
			if found, err = url.QueryUnescape(value); err != nil {
				return ""
			}
		}
	}
	if n > 1 {
		return ""
	}
	return found
}
