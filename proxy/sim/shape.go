package sim

import (
	"encoding/json"
	"strings"
)

// asked is what a shape must answer: a query under a fault, with every default filled in.
type asked struct {
	query
	kind   Kind
	pieces []string // the content
}

// parts are an answer's body before it is framed. A whole body is the parts joined; a
// stream's are frames. Nothing in opening is output that a caller would see.
type parts struct {
	contentType string
	streamed    bool // it goes out in pieces as they come
	opening     []string
	content     []string
	closing     []string
}

// shape is how one endpoint's answers look.
type shape interface {
	whole(a *asked) parts
	// errorBody is the body of an error status.
	errorBody(f failure) string
	// headers are the response headers that this provider sends with every answer.
	headers() []Field
}

// streamer is the shape of an endpoint that streams; see [query.streams].
type streamer interface {
	stream(a *asked) parts
	errorFrame(f failure) string // an error as an event inside the stream
}

// shapes are the shapes by endpoint. An unknown path is answered by OpenAI's, as most
// servers of these protocols do.
var shapes = [...]shape{
	noEndpoint:  openAIShape{},
	chat:        chatShape{},
	completions: completionsShape{},
	responses:   responsesShape{},
	embeddings:  embeddingsShape{},
	models:      modelsShape{},
	messages:    messagesShape{},
	gemini:      geminiShape{},
	images:      imagesShape{},
	transcripts: transcriptsShape{},
	speech:      speechShape{},
}

// The content types that the providers send.
const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream; charset=utf-8"
	typeHTML   = "text/html; charset=utf-8"
)

// InputTokens is what every answer's usage says of the input; the output counts one
// token for each piece of content.
const InputTokens = 12

// words are the text of an answer, over and over.
var words = [...]string{
	"This ", "answer ", "comes ", "from ", "a ", "simulated ", "provider, ", "piece ", "by ", "piece. ",
}

// textPieces makes n pieces of text, of size bytes together unless size is 0.
func textPieces(n, size int) []string {
	pieces := make([]string, n)
	if size == 0 {
		for i := range pieces {
			pieces[i] = words[i%len(words)]
		}
		return pieces
	}
	text := strings.Repeat(strings.Join(words[:], ""), size/len("This answer comes ")+1)[:size]
	for i := range pieces {
		pieces[i] = text[i*size/n : (i+1)*size/n]
	}
	return pieces
}

// argumentPieces makes a tool's arguments in n pieces: one JSON object as text.
func argumentPieces(n, size int) []string {
	pieces := textPieces(n, max(size-len(`{"query":""}`), 0))
	pieces[0] = `{"query":"` + pieces[0]
	pieces[n-1] += `"}`
	return pieces
}

// quoted is s as a JSON string.
func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic("BUG: a string has no JSON form: " + err.Error())
	}
	return string(text)
}

// inner is s as it stands inside a JSON string.
func inner(s string) string {
	q := quoted(s)
	return q[1 : len(q)-1]
}

// each makes one text of every piece.
func each(pieces []string, f func(piece string) string) []string {
	out := make([]string, len(pieces))
	for i, p := range pieces {
		out[i] = f(p)
	}
	return out
}

// data is a frame without a name, event one with.
func data(json string) string        { return "data: " + json + "\n\n" }
func event(name, json string) string { return "event: " + name + "\ndata: " + json + "\n\n" }

// toolName is the tool that a tool call names.
func (a *asked) toolName() string {
	if a.tool != "" {
		return a.tool
	}
	return "lookup"
}
