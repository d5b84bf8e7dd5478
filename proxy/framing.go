package proxy

import (
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// head is a caller's request head after the strict check: what the proxy needs of it,
// read in one pass. Its strings are pieces of one copy of the head.
type head struct {
	method, target string
	contentLength  int // -1 if the body is chunked, 0 if there is none
	expectContinue bool

	credentials []string // shown by the caller, in the order of [credentialHeaders]
	requestID   string
	idempotency string
	forward     []engine.Header // the allow-listed fields, canonical names

	contentType      string
	anthropicVersion bool
	nested           bool // it is an attempt of another Fourgate
	retryCount       string
	serverTimeout    string
	sdkTimeout       string

	credentialSpace [2]string
	forwardSpace    [8]engine.Header
}

// Framing faults. Each text completes "the request was refused: …".
const (
	faultVersion       = "its HTTP version is neither 1.0 nor 1.1"
	faultMethod        = "the method CONNECT is not served"
	faultTarget        = "its target is not a path; send an origin-form target such as /v1/chat/completions"
	faultTargetBytes   = "its target contains a byte that must be percent-encoded"
	faultBareLineFeed  = "a header line does not end in CR LF"
	faultControl       = "a header contains a control character"
	faultFolded        = "a header is folded over two lines"
	faultName          = "a header name is empty, or contains a space or another byte that is no token"
	faultNoColon       = "a header line has no colon"
	faultHost          = "it needs exactly one Host header"
	faultLength        = "its Content-Length is not a plain decimal number"
	faultLengthTwice   = "it has more than one Content-Length"
	faultLengthAndTE   = "it has both Content-Length and Transfer-Encoding"
	faultTransfer      = "its Transfer-Encoding is not exactly chunked"
	faultTransferTwice = "it has more than one Transfer-Encoding"
	faultTypeTwice     = "it has more than one Content-Type"
	faultTransferOld   = "it has a Transfer-Encoding under HTTP/1.0"
)

// readHead checks a request head as strictly as the provider behind us might, so that
// no two readers can disagree about where the request ends, and picks the fields the
// proxy needs. raw is the header block without the request line, its final empty line
// included. It returns a fault, or "" for a sound head.
//
// Chunk extensions and trailers can't be seen here and needn't be: the body goes
// upstream under its own Content-Length, without either.
func (h *head) read(method, target, version, raw string) (fault string) {
	h.credentials, h.forward = h.credentialSpace[:0], h.forwardSpace[:0]
	h.method, h.target = method, target
	if version != "HTTP/1.1" && version != "HTTP/1.0" {
		return faultVersion
	}
	if method == "CONNECT" {
		return faultMethod
	}
	if target == "" || target[0] != '/' {
		return faultTarget
	}
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c >= 0x7f || c == '#' {
			return faultTargetBytes
		}
	}
	var seen framingFields
	for len(raw) > 0 {
		end := strings.IndexByte(raw, '\n')
		if end < 1 || raw[end-1] != '\r' {
			return faultBareLineFeed
		}
		line := raw[:end-1]
		raw = raw[end+1:]
		if line == "" {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			return faultFolded
		}
		colon := strings.IndexByte(line, ':')
		if colon < 0 {
			return faultNoColon
		}
		if !isToken(line[:colon]) {
			return faultName
		}
		value := line[colon+1:]
		for i := range len(value) {
			if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
				return faultControl
			}
		}
		if fault := h.field(&seen, line[:colon], strings.Trim(value, " \t")); fault != "" {
			return fault
		}
	}
	if seen.connection != "" {
		h.dropNamedByConnection(seen.connection)
	}
	switch {
	case version == "HTTP/1.1" && seen.hosts != 1, seen.hosts > 1:
		return faultHost
	case seen.lengths > 0 && seen.transfers > 0:
		return faultLengthAndTE
	case seen.transfers > 0 && version == "HTTP/1.0":
		return faultTransferOld
	case seen.transfers > 0:
		h.contentLength = -1
	}
	return ""
}

// framingFields counts the fields that decide where a request ends and what belongs
// to this connection only.
type framingFields struct {
	hosts, lengths, transfers, types int
	connection                       string
}

// field takes one header field. Names are compared by length first: most fields of a
// request are none of ours.
func (h *head) field(seen *framingFields, name, value string) (fault string) {
	switch len(name) {
	case 4:
		if strings.EqualFold(name, "Host") {
			seen.hosts++
		}
	case 6:
		if strings.EqualFold(name, "Accept") {
			h.pass("Accept", value)
		} else if strings.EqualFold(name, "Expect") {
			h.expectContinue = strings.EqualFold(value, "100-continue")
		}
	case 7:
		h.credential("api-key", name, value)
	case 9:
		h.credential("x-api-key", name, value)
	case 10:
		switch {
		case strings.EqualFold(name, "Connection"):
			seen.connection += "," + value
		case strings.EqualFold(name, "User-Agent"):
			h.pass("User-Agent", value)
		}
	case 11:
		if strings.EqualFold(name, "OpenAI-Beta") {
			h.pass("OpenAI-Beta", value)
		} else if strings.EqualFold(name, "traceparent") && saneTraceparent(value) {
			h.pass("traceparent", value)
		}
	case 12:
		if strings.EqualFold(name, "Content-Type") {
			if seen.types++; seen.types > 1 {
				return faultTypeTwice
			}
			h.contentType = value
			h.pass("Content-Type", value)
		} else if strings.EqualFold(name, "X-Request-Id") && saneID(value) {
			h.requestID = value
		}
	case 13:
		if strings.EqualFold(name, "Authorization") {
			if token, ok := bearer(value); ok {
				h.credential(name, name, token)
			}
		}
	case 14:
		switch {
		case strings.EqualFold(name, "Content-Length"):
			return h.length(seen, value)
		case strings.EqualFold(name, "anthropic-beta"):
			h.pass("anthropic-beta", value)
		case strings.EqualFold(name, "x-goog-api-key"):
			h.credential(name, name, value)
		}
	case 15:
		switch {
		case strings.EqualFold(name, "Idempotency-Key"):
			h.idempotency = value
			h.pass("Idempotency-Key", value)
		}
	case 16:
		if strings.EqualFold(name, "X-Server-Timeout") {
			h.serverTimeout = value
		}
	case 17:
		switch {
		case strings.EqualFold(name, "Transfer-Encoding"):
			seen.transfers++
			if seen.transfers > 1 {
				return faultTransferTwice
			}
			if !strings.EqualFold(value, "chunked") {
				return faultTransfer
			}
		case strings.EqualFold(name, "anthropic-version"):
			h.anthropicVersion = true
			h.pass("anthropic-version", value)
		}
	case 18:
		if strings.EqualFold(name, "X-Fourgate-Attempt") {
			h.nested = true
		}
	case 19:
		switch {
		case strings.EqualFold(name, "X-Stainless-Timeout"):
			h.sdkTimeout = value
		case strings.EqualFold(name, "X-Client-Request-Id"):
			h.pass("X-Client-Request-Id", value)
		}
	case 23:
		if strings.EqualFold(name, "X-Stainless-Retry-Count") {
			h.retryCount = value
		}
	}
	return ""
}

func (h *head) length(seen *framingFields, value string) (fault string) {
	seen.lengths++
	if seen.lengths > 1 {
		return faultLengthTwice
	}
	if len(value) == 0 || len(value) > 15 {
		return faultLength
	}
	n := 0
	for i := range len(value) {
		if value[i] < '0' || value[i] > '9' {
			return faultLength
		}
		n = n*10 + int(value[i]-'0')
	}
	h.contentLength = n
	return ""
}

// pass puts a field on the list of those that go upstream.
func (h *head) pass(name, value string) {
	h.forward = append(h.forward, engine.Header{Name: name, Value: value})
}

// credential keeps what a caller shows to be known by. None of it goes upstream.
func (h *head) credential(want, name, value string) {
	if value != "" && strings.EqualFold(name, want) {
		h.credentials = append(h.credentials, value)
	}
}

// dropNamedByConnection takes the fields off the list that the caller declared to be
// of this connection only.
func (h *head) dropNamedByConnection(list string) {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.Trim(name, " \t")
		kept := h.forward[:0]
		for _, f := range h.forward {
			if !strings.EqualFold(f.Name, name) {
				kept = append(kept, f)
			}
		}
		h.forward = kept
	}
}

func bearer(value string) (string, bool) {
	if len(value) < 7 || !strings.EqualFold(value[:7], "Bearer ") {
		return "", false
	}
	return strings.Trim(value[7:], " "), true
}

// tokenBytes marks the bytes of an RFC 9110 token.
var tokenBytes = func() (t [256]bool) {
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = true, true
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()

func isToken(s string) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return s != ""
}

// saneTraceparent accepts the version-00 form of W3C Trace Context: 55 bytes,
// lower-case hex, neither id all zero.
func saneTraceparent(s string) bool {
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return false
	}
	return isHexID(s[3:35]) && isHexID(s[36:52]) && isHex(s[53:])
}

func isHexID(s string) bool { return isHex(s) && strings.Trim(s, "0") != "" }

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}
