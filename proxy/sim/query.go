package sim

import (
	"net/url"
	"strings"

	"github.com/tidwall/gjson"
)

// endpoint is one of the operations that the simulator answers.
type endpoint uint8

const (
	noEndpoint endpoint = iota
	chat
	completions
	responses
	embeddings
	models
	messages
	gemini
	images
	transcripts
	speech
)

// paths are what follows the channel's name, for every endpoint that is named by its
// path alone.
var paths = map[string]endpoint{
	"/v1/chat/completions": chat,
	"/v1/completions":      completions,
	"/v1/responses":        responses,
	"/v1/embeddings":       embeddings,
	"/v1/models":           models,
	"/v1/messages":         messages,

	"/v1/images/generations":   images,
	"/v1/images/edits":         images,
	"/v1/images/variations":    images,
	"/v1/audio/transcriptions": transcripts,
	"/v1/audio/translations":   transcripts,
	"/v1/audio/speech":         speech,
}

// query is what an answer depends on of a request. Equal queries have equal answers.
type query struct {
	endpoint endpoint
	model    string
	stream   bool
	usage    bool   // the caller asked for usage in its stream
	sse      bool   // gemini: the stream has events; without alt=sse it is one JSON array
	tool     string // the name of the first tool
	inputs   int    // embeddings: how many
	base64   bool   // embeddings: as base64, which the official SDK asks for
}

// streams says whether the answer is a stream: of events, or in a JSON array.
func (q query) streams() bool {
	switch q.endpoint {
	case chat, completions, responses, messages:
		return q.stream
	case gemini:
		return q.stream
	}
	return false
}

// array says whether the answer is a stream in a JSON array.
func (q query) array() bool { return q.endpoint == gemini && q.stream && !q.sse }

// DefaultModel is what an answer names if neither the script, nor the channel, nor the
// request has a model.
const DefaultModel = "sim-model"

// splitTarget separates a request's target into the channel and the provider's own path.
// A target without a channel belongs to the channel "default".
func splitTarget(target string) (channel, path string) {
	path, _, _ = strings.Cut(target, "?")
	if strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v1beta/") {
		return "default", path
	}
	name, rest, ok := strings.Cut(path[1:], "/")
	if !ok || name == "" {
		return "", path
	}
	return name, "/" + rest
}

// read finds out what a request asks for. A body that is no JSON asks for nothing in
// particular: it isn't the simulator that judges it.
func (q *query) read(path, rawQuery string, body []byte) {
	q.endpoint = paths[path]
	if model, op, ok := geminiPath(path); ok {
		q.endpoint, q.model = gemini, model
		q.stream = op == "streamGenerateContent"
		q.sse = strings.Contains(rawQuery, "alt=sse")
		q.tool = gjson.GetBytes(body, "tools.0.functionDeclarations.0.name").Str
		return
	}
	if q.endpoint == noEndpoint || q.endpoint == models || !gjson.ValidBytes(body) {
		return
	}
	q.model = gjson.GetBytes(body, "model").Str
	switch q.endpoint {
	case embeddings:
		q.inputs = 1
		if in := gjson.GetBytes(body, "input"); in.IsArray() {
			q.inputs = int(min(max(in.Get("#").Int(), 1), 2048))
		}
		q.base64 = gjson.GetBytes(body, "encoding_format").Str == "base64"
		return
	case chat:
		q.tool = gjson.GetBytes(body, "tools.0.function.name").Str
	case messages, responses:
		q.tool = gjson.GetBytes(body, "tools.0.name").Str
	}
	q.stream = gjson.GetBytes(body, "stream").Type == gjson.True
	if q.stream && (q.endpoint == chat || q.endpoint == completions) {
		q.usage = gjson.GetBytes(body, "stream_options.include_usage").Type == gjson.True
	}
}

// geminiPath reads /v1beta/models/MODEL:OPERATION; /v1 serves the same.
func geminiPath(path string) (model, op string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1beta/models/")
	if !ok {
		if rest, ok = strings.CutPrefix(path, "/v1/models/"); !ok {
			return "", "", false
		}
	}
	if rest, ok = unescaped(rest); !ok {
		return "", "", false
	}
	model, op, ok = strings.Cut(rest, ":")
	return model, op, ok && (op == "generateContent" || op == "streamGenerateContent")
}

func unescaped(s string) (string, bool) {
	plain, err := url.PathUnescape(s)
	return plain, err == nil
}
