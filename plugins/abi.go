package plugins

import "github.com/fourgate-dev/fourgate/engine"

// ABIModule is the one module that a classifier may import from.
const ABIModule = "fourgate"

// ABIMarker is the export that says for which version of the ABI a module was built. A
// later version gets another marker, so that both can be served side by side.
const ABIMarker = "fourgate_abi_1"

// absent is what a host function answers when there is nothing to give.
const absent = -1

// The numbers below are the ABI's own, fixed for version 1 whatever the order of the
// engine's words is. docs/plugins.md shows the same tables.
var (
	abiClasses = [...]engine.Class{
		0: engine.ClassUnknown, 1: engine.ClassKeyFault, 2: engine.ClassRateLimited,
		3: engine.ClassProviderTransient, 4: engine.ClassBadModel, 5: engine.ClassBadRequest,
		6: engine.ClassDenied, 7: engine.ClassSchemaInvalid, 8: engine.ClassContractViolation,
		9: engine.ClassRefusal, 10: engine.ClassCancelled, 11: engine.ClassPartial, 12: engine.ClassOK,
	}
	abiScopes = [...]engine.Scope{
		0: engine.ScopeNone, 1: engine.ScopeRequest, 2: engine.ScopeKey,
		3: engine.ScopeModel, 4: engine.ScopeChannel, 5: engine.ScopeProvider,
	}
	abiEndpoints = [...]engine.Endpoint{
		0: engine.EndpointNone, 1: engine.OpenAIChat, 2: engine.OpenAIResponses,
		3: engine.OpenAICompletions, 4: engine.OpenAIEmbeddings, 5: engine.OpenAIImages,
		6: engine.OpenAIAudio, 7: engine.AnthropicMessages, 8: engine.GeminiGenerate,
	}
	abiPhases     = [...]engine.Phase{0: engine.BeforeHeaders, 1: engine.BeforeOutput, 2: engine.AfterOutput}
	abiTransports = [...]engine.Transport{0: engine.TransportNetwork, 1: engine.TransportHTTP, 2: engine.TransportSSE}
	abiBodyEnds   = [...]engine.BodyEnd{0: engine.EndEOF, 1: engine.EndReset, 2: engine.EndIdle, 3: engine.EndCancelled}
	abiNetOps     = [...]engine.NetOp{
		0: engine.OpNone, 1: engine.OpDial, 2: engine.OpTLS, 3: engine.OpWrite,
		4: engine.OpReadHeaders, 5: engine.OpReadBody,
	}
	abiNetKinds = [...]engine.NetKind{
		0: engine.NetNone, 1: engine.NetDNSNotFound, 2: engine.NetDNSTemporary,
		3: engine.NetDialTimeout, 4: engine.NetConnRefused, 5: engine.NetUnreachable,
		6: engine.NetProxyError, 7: engine.NetTLSTimeout, 8: engine.NetTLSVerify,
		9: engine.NetTLSNotTLS, 10: engine.NetHeaderTimeout, 11: engine.NetDeadlineExceeded,
		12: engine.NetContextCanceled, 13: engine.NetConnReset, 14: engine.NetEOF,
		15: engine.NetUnexpectedEOF, 16: engine.NetMalformedResponse, 17: engine.NetHTTP2GoAway,
		18: engine.NetHTTP2StreamError, 19: engine.NetIdleTimeout,
	}
)

// The bits of the function flags.
const (
	flagStream     = 1 << 0 // the caller asked for a stream
	flagCallerGone = 1 << 1 // the caller had gone when the attempt ended
	flagNotStarted = 1 << 2 // certainly no work was done upstream
)

// The ways to read a duration.
const (
	durationValue = 0 // the whole text is a duration, a number of seconds or a time
	durationText  = 1 // a duration somewhere in a sentence: "try again in 3.89s"
)

// The kinds of a JSON value.
const (
	kindNull = iota
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
)

// The states of a JSON text.
const (
	jsonNone      = 0 // no object and no array
	jsonComplete  = 1
	jsonTruncated = 2 // it ends in the middle
	jsonBad       = 3 // it is wrong somewhere
	jsonUnjudged  = 4 // longer than the host reads, and right so far
)

// The documents that JSON functions look into. A number from 0 up is a frame, and a
// handle that json_at returned is the value it was returned for.
const docFailing = -1

// abiFunction is one function of the ABI.
type abiFunction struct {
	name string
	sig  signature
	run  func(c *call, stack []uint64)
}

// abiFunctions are all functions of version 1. The list may grow; what stands in it
// never changes.
var abiFunctions = [...]abiFunction{
	{"status", "()->i32", (*call).status},
	{"endpoint", "()->i32", (*call).endpoint},
	{"phase", "()->i32", (*call).phase},
	{"transport", "()->i32", (*call).transport},
	{"body_end", "()->i32", (*call).bodyEnd},
	{"net_kind", "()->i32", (*call).netKind},
	{"net_op", "()->i32", (*call).netOp},
	{"flags", "()->i32", (*call).flags},
	{"model", "(i32,i32)->i32", (*call).model},
	{"names_model", "(i32,i32,i32)->i32", (*call).namesModel},
	{"header", "(i32,i32,i32,i32)->i32", (*call).header},
	{"header_contains", "(i32,i32,i32,i32)->i32", (*call).headerContains},
	{"header_matches", "(i32,i32,i32,i32)->i64", (*call).headerMatches},
	{"header_duration", "(i32,i32,i32)->i64", (*call).headerDuration},
	{"retry_after", "()->i64", (*call).retryAfter},
	{"body", "(i32,i32,i32)->i32", (*call).body},
	{"frame_count", "()->i32", (*call).frameCount},
	{"frame", "(i32,i32,i32,i32)->i32", (*call).frame},
	{"contains", "(i32,i32,i32)->i32", (*call).contains},
	{"json_state", "(i32)->i32", (*call).jsonState},
	{"json_at", "(i32,i32,i32)->i32", (*call).jsonAt},
	{"json_kind", "(i32,i32,i32)->i32", (*call).jsonKind},
	{"json", "(i32,i32,i32,i32,i32)->i32", (*call).json},
	{"json_int", "(i32,i32,i32)->i64", (*call).jsonInt},
	{"json_is", "(i32,i32,i32,i32,i32)->i32", (*call).jsonIs},
	{"json_contains", "(i32,i32,i32,i32,i32)->i32", (*call).jsonContains},
	{"json_matches", "(i32,i32,i32,i32,i32)->i64", (*call).jsonMatches},
	{"json_duration", "(i32,i32,i32,i32)->i64", (*call).jsonDuration},
	{"verdict", "(i32,i32,i32,i32,i64)->", (*call).verdict},
}

func abiSignature(name string) (signature, bool) {
	for i := range abiFunctions {
		if abiFunctions[i].name == name {
			return abiFunctions[i].sig, true
		}
	}
	return "", false
}

// codeOf returns the ABI's number of a word, or 0 for a word that the ABI doesn't know:
// a word that the engine learns later must not look like an old one.
func codeOf[W comparable](table []W, w W) uint64 {
	for i, known := range table {
		if known == w {
			return uint64(i)
		}
	}
	return 0
}
