package sim

import "time"

// Kind is what a channel answers with. The zero value is a normal answer.
type Kind uint8

// The kinds of answer. An endpoint that has no such answer (embeddings know no
// refusal) gives its normal one.
const (
	Text          Kind = iota // text that ends by itself
	ToolCall                  // a call of the request's first tool
	Refusal                   // a completion that the model refused
	ContentFilter             // a completion that a filter emptied
	Length                    // text that ends at the token limit
	EmptyAnswer               // a valid envelope with nothing in it, not even a finish reason
	Error                     // the protocol's own error body under Fault.Status
	ErrorBody200              // the protocol's own error body under 200, even where a stream was asked for
	Body                      // Fault.Body as it is, under Fault.Status
	Empty                     // 200 with a body of no bytes
	HTML                      // 200 with a page, as an edge in front of the provider sends
)

var kindNames = [...]string{
	"ok", "tool-call", "refusal", "content-filter", "length", "empty-answer",
	"status", "json-error", "body", "empty", "html",
}

func (k Kind) String() string { return kindNames[k] }

// Break is how an answer goes wrong. The zero value is that it doesn't.
type Break uint8

// The breaks. After each but Stall and ErrorFrame the connection is closed.
const (
	Whole      Break = iota // nothing breaks
	Cut                     // FIN
	Reset                   // RST
	Stall                   // silence until the peer closes
	End                     // an orderly end of the body, too early
	Malformed               // bytes that are no HTTP: no status line, or no chunk size
	BrokenJSON              // a frame whose JSON stops in the middle, then an orderly end
	ErrorFrame              // the protocol's own error event, then an orderly end
	Truncated               // everything is sent, but more was promised; then FIN
)

var breakNames = [...]string{
	"", "cut", "reset", "stall", "end", "malformed", "broken-json", "error-in-stream", "truncated",
}

func (b Break) String() string { return breakNames[b] }

// Place is where an answer breaks.
type Place uint8

// The places. The zero value comes before every byte of the answer.
const (
	BeforeHeaders Place = iota
	BeforeOutput        // after the headers and the frames that carry no output
	AfterContent        // after Fault.After pieces of content
	BeforeEnd           // after everything but the last frame, or but the closing brackets of a whole body
)

var placeNames = [...]string{"before-headers", "before-output", "after", "before-end"}

func (p Place) String() string { return placeNames[p] }

// Fault is what a channel does to one request. The zero value answers it normally.
// [ParseFault] documents the text form; [Fault.String] gives it.
type Fault struct {
	Kind  Kind
	Break Break
	At    Place
	After int // AfterContent: how many pieces of content come first

	Status         int           // Error, Body; ErrorFrame: the error whose shape the event has
	RetryAfter     string        // the header's value as it is
	RetryAfterMS   string        // likewise
	RetryAfterDate time.Duration // a Retry-After that is a date, this long after now
	Code           string        // replaces the error's code
	Type           string        // replaces the error's type
	Message        string        // replaces the error's message
	Body           string        // Body: the bytes
	Header         []Field       // more response headers

	Model  string // the model that the answer names; empty means the channel's
	Chunks int    // pieces of content, [DefaultChunks] if 0
	Bytes  int    // size of a whole body, or of a stream's content; 0 means as it comes
	Split  int    // a stream's HTTP chunks have this many bytes, wherever its frames end
	Burst  bool   // frames go out in as few writes as the pauses allow

	Headers time.Duration // silence before the response headers
	First   time.Duration // silence before the first content; a whole body's headers wait with it
	Gap     time.Duration // silence between two pieces of content

	Close  bool // say Connection: close, and close
	Hangup bool // close after the answer without having said so

	Times int  // play it for so many requests; 0 means one
	Again bool // start the script over after it
}

// DefaultChunks is how many pieces of content an answer has unless its fault says
// another number.
const DefaultChunks = 5

// The bounds of a fault's numbers: far above any use, so that a slip of the finger in
// a script doesn't take the memory of the machine.
const (
	maxChunks = 100_000
	maxBytes  = 64 << 20
	maxDelay  = 24 * time.Hour
)

// Field is one header field.
type Field struct{ Name, Value string }
