package engine

import "strings"

// Header is one response header field.
type Header struct{ Name, Value string }

// Headers are a response's header fields in order. Lookups ignore case.
type Headers []Header

// Get returns the first value of the named field and whether it is there.
func (h Headers) Get(name string) (string, bool) {
	for _, f := range h {
		if strings.EqualFold(f.Name, name) {
			return f.Value, true
		}
	}
	return "", false
}

// Finding is what a stream gate or a body check found by itself: an answer of no
// valid shape ([ClassSchemaInvalid]) or from another model ([ClassContractViolation]).
// The zero value is "nothing found".
type Finding struct {
	Class  Class
	Reason Reason
}

// Evidence is everything known about one failed attempt. It holds response bytes, so
// it lives only as long as the request and never reaches the ledger.
type Evidence struct {
	Provider string // the provider's name in the configuration
	Contract Contract
	Stream   bool // the caller asked for a stream

	Transport Transport
	Status    int // HTTP status, 0 if there was none
	Headers   Headers
	Body      []byte   // TransportHTTP: what was read of the body
	Frames    [][]byte // TransportSSE: the raw frames in order, blank line included
	End       BodyEnd
	NetKind   NetKind
	NetOp     NetOp

	CallerGone bool
	Phase      Phase
	// NotStarted is true when no byte of the request reached the upstream, or its
	// answer proves that it did no work (see the word completion).
	NotStarted bool
	Finding    Finding
}

// Verdict is what a classifier plugin says of a failed attempt. The zero value is
// unknown.
type Verdict struct {
	Class      Class
	Scope      Scope
	Reason     Reason
	RetryAfter Wait
	// Fault is set when the plugin gave no usable verdict: "trap", "timeout",
	// "nonsense", "absent". The class is unknown then.
	Fault string
}

// Classifier gives a verdict on a failed attempt. The same evidence must give the
// same verdict. It must not keep ev, and may be called from many goroutines.
type Classifier interface {
	Classify(ev *Evidence) Verdict
}

// Failure is a verdict that the engine has accepted and completed with what it knows
// itself. Only the engine makes one.
type Failure struct {
	class      Class
	scope      Scope
	reason     Reason
	retryAfter Wait
	status     int
	phase      Phase
	completion Completion
	fault      string
}

// Class returns the failure class.
func (f Failure) Class() Class { return f.class }

// Scope returns what the failure is blamed on.
func (f Failure) Scope() Scope { return f.scope }

// Reason returns the reason, never empty for a failure that the engine made.
func (f Failure) Reason() Reason { return f.reason }

// RetryAfter returns the upstream's valid wait, if it gave one.
func (f Failure) RetryAfter() Wait { return f.retryAfter }

// Status returns the HTTP status, 0 if there was none.
func (f Failure) Status() int { return f.status }

// Phase returns how far the attempt had come.
func (f Failure) Phase() Phase { return f.phase }

// Completion returns what is known of the upstream's work.
func (f Failure) Completion() Completion { return f.completion }

// Fault returns what was wrong with the classifier's verdict, if anything.
func (f Failure) Fault() string { return f.fault }
