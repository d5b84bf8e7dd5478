//go:build wasip1

package fourgate

import "unsafe"

// Class says what kind of failure it was.
type Class int32

// The classes.
const (
	Unknown           Class = 0
	KeyFault          Class = 1
	RateLimited       Class = 2
	ProviderTransient Class = 3
	BadModel          Class = 4
	BadRequest        Class = 5
	Denied            Class = 6
	SchemaInvalid     Class = 7
	ContractViolation Class = 8
	Refusal           Class = 9
	Cancelled         Class = 10
	Partial           Class = 11
	OK                Class = 12
)

// Scope says what is to blame.
type Scope int32

// The scopes.
const (
	ScopeNone     Scope = 0
	ScopeRequest  Scope = 1
	ScopeKey      Scope = 2
	ScopeModel    Scope = 3
	ScopeChannel  Scope = 4
	ScopeProvider Scope = 5
)

// The phases, transports and ends of a body.
const (
	BeforeHeaders = 0
	BeforeOutput  = 1
	AfterOutput   = 2

	Network = 0
	HTTP    = 1
	SSE     = 2

	EndEOF       = 0
	EndReset     = 1
	EndIdle      = 2
	EndCancelled = 3
)

// The bits of [Flags].
const (
	FlagStream     = 1
	FlagCallerGone = 2
	FlagNotStarted = 4
)

// Failing is the document that the failure is in: the body, or the last telling frame's
// data. A frame's number or what [JSONAt] gave are documents, too.
const Failing int32 = -1

// NoWait is no wait, where waits are milliseconds.
const NoWait int64 = -1

// The ways to read a duration: the whole text is one, or there is one in a sentence.
const (
	AsValue int32 = 0
	InText  int32 = 1
)

//go:wasmimport fourgate status
func status() int32

//go:wasmimport fourgate endpoint
func endpoint() int32

//go:wasmimport fourgate phase
func phase() int32

//go:wasmimport fourgate transport
func transport() int32

//go:wasmimport fourgate body_end
func bodyEnd() int32

//go:wasmimport fourgate net_kind
func netKind() int32

//go:wasmimport fourgate net_op
func netOp() int32

//go:wasmimport fourgate flags
func flags() int32

//go:wasmimport fourgate model
func model(buf unsafe.Pointer, size uint32) int32

//go:wasmimport fourgate names_model
func namesModel(doc int32, path string) int32

//go:wasmimport fourgate header
func header(name string, buf unsafe.Pointer, size uint32) int32

//go:wasmimport fourgate header_contains
func headerContains(name, phrases string) int32

//go:wasmimport fourgate header_matches
func headerMatches(name, lists string) int64

//go:wasmimport fourgate header_duration
func headerDuration(name string, how int32) int64

//go:wasmimport fourgate retry_after
func retryAfter() int64

//go:wasmimport fourgate body
func body(offset uint32, buf unsafe.Pointer, size uint32) int32

//go:wasmimport fourgate frame_count
func frameCount() int32

//go:wasmimport fourgate frame
func frame(i int32, offset uint32, buf unsafe.Pointer, size uint32) int32

//go:wasmimport fourgate contains
func contains(doc int32, phrases string) int32

//go:wasmimport fourgate json_state
func jsonState(doc int32) int32

//go:wasmimport fourgate json_at
func jsonAt(doc int32, path string) int32

//go:wasmimport fourgate json_kind
func jsonKind(doc int32, path string) int32

//go:wasmimport fourgate json
func jsonText(doc int32, path string, buf unsafe.Pointer, size uint32) int32

//go:wasmimport fourgate json_int
func jsonInt(doc int32, path string) int64

//go:wasmimport fourgate json_is
func jsonIs(doc int32, path, words string) int32

//go:wasmimport fourgate json_contains
func jsonContains(doc int32, path, phrases string) int32

//go:wasmimport fourgate json_matches
func jsonMatches(doc int32, path, lists string) int64

//go:wasmimport fourgate json_duration
func jsonDuration(doc int32, path string, how int32) int64

//go:wasmimport fourgate verdict
func verdict(class, scope int32, reason string, retryAfterMs int64)

// text asks for a text of unknown length: once for most, a second time for long ones.
func text(ask func(buf unsafe.Pointer, size uint32) int32) (string, bool) {
	buf := make([]byte, 256)
	n := ask(unsafe.Pointer(&buf[0]), uint32(len(buf)))
	if n > int32(len(buf)) {
		buf = make([]byte, n)
		n = ask(unsafe.Pointer(&buf[0]), uint32(len(buf)))
	}
	if n < 0 {
		return "", false
	}
	return string(buf[:min(int(n), len(buf))]), true
}

// Status returns the HTTP status, 0 if there was no response.
func Status() int { return int(status()) }

// Endpoint returns the endpoint's number, 0 for one that callers can't speak.
func Endpoint() int { return int(endpoint()) }

// Phase returns how far the attempt had come.
func Phase() int { return int(phase()) }

// Transport returns [Network], [HTTP] or [SSE].
func Transport() int { return int(transport()) }

// BodyEnd returns how the body ended.
func BodyEnd() int { return int(bodyEnd()) }

// NetKind returns the number of the network error's kind, 0 for none.
func NetKind() int { return int(netKind()) }

// NetOp returns the number of the operation that it interrupted, 0 for none.
func NetOp() int { return int(netOp()) }

// Flags returns the bits [FlagStream], [FlagCallerGone] and [FlagNotStarted].
func Flags() int { return int(flags()) }

// Model returns the contract's model.
func Model() (string, bool) { return text(model) }

// NamesModel returns 1 if the value names the contract's model, 0 if another, -1 if one
// of them is not known.
func NamesModel(doc int32, path string) int { return int(namesModel(doc, path)) }

// Header returns a header's first value; names ignore case.
func Header(name string) (string, bool) {
	return text(func(buf unsafe.Pointer, size uint32) int32 { return header(name, buf, size) })
}

// HeaderContains says whether a header's value has one of the phrases "a|b|c".
func HeaderContains(name, phrases string) bool { return headerContains(name, phrases) >= 0 }

// HeaderMatches returns a bit for each list of phrases, one a line, of which a header's
// value has one.
func HeaderMatches(name, lists string) uint64 { return uint64(headerMatches(name, lists)) }

// HeaderDuration reads a header as a wait in milliseconds, [NoWait] if there is none.
func HeaderDuration(name string, how int32) int64 { return headerDuration(name, how) }

// RetryAfter returns the wait in milliseconds that the headers ask for, or [NoWait].
func RetryAfter() int64 { return retryAfter() }

// Body returns the body as it was read. Prefer [JSONContains] and [Contains], which leave
// it where it is.
func Body() string {
	s, _ := text(func(buf unsafe.Pointer, size uint32) int32 { return body(0, buf, size) })
	return s
}

// FrameCount returns how many frames there are.
func FrameCount() int { return int(frameCount()) }

// Frame returns a raw frame.
func Frame(i int) (string, bool) {
	return text(func(buf unsafe.Pointer, size uint32) int32 { return frame(int32(i), 0, buf, size) })
}

// Contains says whether a document's text has one of the phrases.
func Contains(doc int32, phrases string) bool { return contains(doc, phrases) >= 0 }

// JSONState returns 0 for no JSON object or array, 1 whole, 2 cut, 3 wrong, 4 too long to
// be judged.
func JSONState(doc int32) int { return int(jsonState(doc)) }

// JSONAt returns a handle of the value at a path, to be used as a document, or -1.
func JSONAt(doc int32, path string) int32 { return jsonAt(doc, path) }

// JSONKind returns 0 null, 1 false, 2 true, 3 number, 4 string, 5 array, 6 object, or -1.
func JSONKind(doc int32, path string) int { return int(jsonKind(doc, path)) }

// JSON returns a value: a string's text, anything else as it is written.
func JSON(doc int32, path string) (string, bool) {
	return text(func(buf unsafe.Pointer, size uint32) int32 { return jsonText(doc, path, buf, size) })
}

// JSONInt returns a whole number, also one inside a string.
func JSONInt(doc int32, path string) (int64, bool) {
	n := jsonInt(doc, path)
	return n, n != -1<<63
}

// JSONIs says whether one of the values is one of the words "a|b|c".
func JSONIs(doc int32, path, words string) bool { return jsonIs(doc, path, words) >= 0 }

// JSONContains says whether one of the values has one of the phrases.
func JSONContains(doc int32, path, phrases string) bool {
	return jsonContains(doc, path, phrases) >= 0
}

// JSONMatches returns a bit for each list of phrases, one a line, of which one of the
// values has one.
func JSONMatches(doc int32, path, lists string) uint64 { return uint64(jsonMatches(doc, path, lists)) }

// JSONDuration reads a value as a wait in milliseconds, [NoWait] if there is none.
func JSONDuration(doc int32, path string, how int32) int64 { return jsonDuration(doc, path, how) }

// Answer gives the verdict; call it exactly once. The reason has 1 to 64 bytes of
// a-z0-9_.
func Answer(c Class, s Scope, reason string, retryAfterMs int64) {
	verdict(int32(c), int32(s), reason, retryAfterMs)
}
