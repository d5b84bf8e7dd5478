package engine

import "fmt"

// Class says what kind of failure an attempt met. The zero value is unknown, the
// class that is never replayed.
type Class uint8

// The failure classes, as the corpus README specifies them.
const (
	ClassUnknown Class = iota
	ClassKeyFault
	ClassRateLimited
	ClassProviderTransient
	ClassBadModel
	ClassBadRequest
	ClassDenied
	ClassSchemaInvalid
	ClassContractViolation
	ClassRefusal
	ClassCancelled
	ClassPartial
	ClassOK
)

var classNames = [...]string{
	"unknown", "key_fault", "rate_limited", "provider_transient", "bad_model", "bad_request",
	"denied", "schema_invalid", "contract_violation", "refusal", "cancelled", "partial", "ok",
}

// Scope says what a failure should be blamed on, and so what may be set aside.
type Scope uint8

// The scopes, from nothing to the whole vendor.
const (
	ScopeNone Scope = iota
	ScopeRequest
	ScopeKey
	ScopeModel
	ScopeChannel
	ScopeProvider
)

var scopeNames = [...]string{"none", "request", "key", "model", "channel", "provider"}

// Phase says how far an attempt had come. The zero value is the earliest.
type Phase uint8

// The phases of an attempt.
const (
	BeforeHeaders Phase = iota
	BeforeOutput
	AfterOutput
)

var phaseNames = [...]string{"before_headers", "before_output", "after_output"}

// Completion says what is known of the upstream's work when an attempt fails. The
// zero value is unknown, which forbids a replay that is not known to be safe.
type Completion uint8

// What can be known of the upstream's work.
const (
	CompletionUnknown Completion = iota
	CompletionNone
	CompletionPartial
)

var completionNames = [...]string{"unknown", "none", "partial"}

// Effects says what a request may have done outside the inference. The zero value is
// unknown, which forbids every replay.
type Effects uint8

// What may have happened outside the inference.
const (
	EffectsUnknown Effects = iota
	EffectsNone
	EffectsPossible
	EffectsRecorded
)

var effectsNames = [...]string{"unknown", "none", "possible", "recorded"}

// Action is what a policy answers. The zero value is abort.
type Action uint8

// The four actions. They are never called by each other's names.
const (
	Abort Action = iota
	Retry
	Fallback
	Substitute
)

var actionNames = [...]string{"abort", "retry", "fallback", "substitute"}

// Terminal is how a caller's request ended. The zero value means that it has not.
type Terminal uint8

// The terminal reasons.
const (
	TerminalNone Terminal = iota
	TerminalSuccess
	TerminalExhausted
	TerminalCancelled
	TerminalPartial
	TerminalPolicyStop
)

var terminalNames = [...]string{"", "success", "exhausted", "cancelled", "partial", "policy_stop"}

// Interlock is a rule that the engine holds whatever a policy or a plugin says. The
// zero value means that none acted.
type Interlock uint8

// The eight interlocks.
const (
	InterlockNone Interlock = iota
	InterlockCommitted
	InterlockCancelled
	InterlockBudget
	InterlockContract
	InterlockEligible
	InterlockEffects
	InterlockRetryAfter
	InterlockRetryBudget
)

var interlockNames = [...]string{
	"", "committed", "cancelled", "budget", "contract", "eligible", "effects", "retry_after", "retry_budget",
}

// Family is the coarse view of a failure that the four-family model uses.
type Family uint8

// The four families, and none for what is no failure. The zero value is the one that
// stops.
const (
	FamilyNonRetryable Family = iota
	FamilyKeyFault
	FamilyProviderTransient
	FamilyBadModel
	FamilyNone
)

var familyNames = [...]string{"NON_RETRYABLE", "KEY_FAULT", "PROVIDER_TRANSIENT", "BAD_MODEL", "NONE"}

// FamilyOf maps a class and its scope to a family, as the corpus README does.
func FamilyOf(c Class, s Scope) Family {
	switch c {
	case ClassKeyFault:
		return FamilyKeyFault
	case ClassRateLimited:
		if s == ScopeModel || s == ScopeProvider {
			return FamilyProviderTransient
		}
		return FamilyKeyFault
	case ClassProviderTransient, ClassSchemaInvalid:
		return FamilyProviderTransient
	case ClassBadModel, ClassContractViolation:
		return FamilyBadModel
	case ClassRefusal, ClassOK:
		return FamilyNone
	}
	return FamilyNonRetryable
}

// Transport is how an upstream answered: not at all, with a whole body, or with frames.
type Transport uint8

// The transports. The zero value is no HTTP response at all.
const (
	TransportNetwork Transport = iota
	TransportHTTP
	TransportSSE
)

var transportNames = [...]string{"network", "http", "sse"}

// BodyEnd is how a response body ended.
type BodyEnd uint8

// The ends of a body. The zero value is an orderly one.
const (
	EndEOF BodyEnd = iota
	EndReset
	EndIdle
	EndCancelled
)

var bodyEndNames = [...]string{"eof", "reset", "idle", "cancelled"}

// NetOp is the operation that a network error interrupted.
type NetOp uint8

// The operations of an upstream call. The zero value is no operation.
const (
	OpNone NetOp = iota
	OpDial
	OpTLS
	OpWrite
	OpReadHeaders
	OpReadBody
)

var netOpNames = [...]string{"", "dial", "tls", "write", "read_headers", "read_body"}

// NetKind is the kind of a network error, in the corpus' vocabulary.
type NetKind uint8

// The network error kinds. The zero value is no error.
const (
	NetNone NetKind = iota
	NetDNSNotFound
	NetDNSTemporary
	NetDialTimeout
	NetConnRefused
	NetUnreachable
	NetProxyError
	NetTLSTimeout
	NetTLSVerify
	NetTLSNotTLS
	NetHeaderTimeout
	NetDeadlineExceeded
	NetContextCanceled
	NetConnReset
	NetEOF
	NetUnexpectedEOF
	NetMalformedResponse
	NetHTTP2GoAway
	NetHTTP2StreamError
	NetIdleTimeout
)

var netKindNames = [...]string{
	"", "dns_not_found", "dns_temporary", "dial_timeout", "conn_refused", "network_unreachable",
	"proxy_error", "tls_handshake_timeout", "tls_verify", "tls_not_tls", "header_timeout",
	"deadline_exceeded", "context_canceled", "conn_reset", "eof", "unexpected_eof",
	"malformed_response", "http2_goaway", "http2_stream_error", "idle_timeout",
}

// GateMark is what one gate said of a failure. The zero value means that it said nothing.
type GateMark uint8

// A gate either lets a replay pass or stops it.
const (
	GateSilent GateMark = iota
	GatePass
	GateStop
)

var gateMarkNames = [...]string{"", "pass", "stop"}

// EffectKind is a change that a policy asks to make to a key or a channel.
type EffectKind uint8

// The effects of a decision. The zero value changes nothing.
const (
	EffectNothing EffectKind = iota
	EffectCountFailure
	EffectCoolKey
	EffectQuarantineChannel
	EffectEvictModel
)

var effectKindNames = [...]string{"", "count_failure", "cool_key", "quarantine_channel", "evict_model"}

// word is any of the closed vocabularies above.
type word interface{ ~uint8 }

func name[W word](names []string, w W) string {
	if int(w) < len(names) {
		return names[w]
	}
	return names[0]
}

func parse[W word](kind string, names []string, text string) (W, error) {
	if text != "" {
		for i, n := range names {
			if n == text {
				return W(i), nil
			}
		}
	}
	return 0, fmt.Errorf("cannot read %s %q", kind, text)
}

func (c Class) String() string      { return name(classNames[:], c) }
func (s Scope) String() string      { return name(scopeNames[:], s) }
func (p Phase) String() string      { return name(phaseNames[:], p) }
func (c Completion) String() string { return name(completionNames[:], c) }
func (e Effects) String() string    { return name(effectsNames[:], e) }
func (a Action) String() string     { return name(actionNames[:], a) }
func (t Terminal) String() string   { return name(terminalNames[:], t) }
func (i Interlock) String() string  { return name(interlockNames[:], i) }
func (f Family) String() string     { return name(familyNames[:], f) }
func (t Transport) String() string  { return name(transportNames[:], t) }
func (b BodyEnd) String() string    { return name(bodyEndNames[:], b) }
func (o NetOp) String() string      { return name(netOpNames[:], o) }
func (k NetKind) String() string    { return name(netKindNames[:], k) }
func (m GateMark) String() string   { return name(gateMarkNames[:], m) }
func (k EffectKind) String() string { return name(effectKindNames[:], k) }

// ParseClass reads a failure class.
func ParseClass(s string) (Class, error) { return parse[Class]("failure class", classNames[:], s) }

// ParseScope reads a failure's scope.
func ParseScope(s string) (Scope, error) { return parse[Scope]("scope", scopeNames[:], s) }

// ParsePhase reads an attempt's phase.
func ParsePhase(s string) (Phase, error) { return parse[Phase]("phase", phaseNames[:], s) }

// ParseCompletion reads what is known of the upstream's work.
func ParseCompletion(s string) (Completion, error) {
	return parse[Completion]("completion", completionNames[:], s)
}

// ParseEffects reads a request's effects.
func ParseEffects(s string) (Effects, error) { return parse[Effects]("effects", effectsNames[:], s) }

// ParseAction reads a decision's action.
func ParseAction(s string) (Action, error) { return parse[Action]("action", actionNames[:], s) }

// ParseTerminal reads how a request ended.
func ParseTerminal(s string) (Terminal, error) {
	return parse[Terminal]("terminal reason", terminalNames[:], s)
}

// ParseTransport reads a transport.
func ParseTransport(s string) (Transport, error) {
	return parse[Transport]("transport", transportNames[:], s)
}

// ParseBodyEnd reads how a body ended.
func ParseBodyEnd(s string) (BodyEnd, error) { return parse[BodyEnd]("body end", bodyEndNames[:], s) }

// ParseNetOp reads the operation that a network error interrupted.
func ParseNetOp(s string) (NetOp, error) { return parse[NetOp]("operation", netOpNames[:], s) }

// ParseNetKind reads a network error's kind.
func ParseNetKind(s string) (NetKind, error) {
	return parse[NetKind]("network error kind", netKindNames[:], s)
}

// ParseGateMark reads "pass" or "stop".
func ParseGateMark(s string) (GateMark, error) {
	return parse[GateMark]("gate mark", gateMarkNames[:], s)
}

// ParseEffectKind reads the kind of a decision's effect.
func ParseEffectKind(s string) (EffectKind, error) {
	return parse[EffectKind]("effect", effectKindNames[:], s)
}
