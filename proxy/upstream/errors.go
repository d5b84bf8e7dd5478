package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/fourgate-dev/fourgate/engine"
)

// Error says what ended an attempt. It holds no request or response content, so it is fit
// for logs.
type Error struct {
	Kind engine.NetKind
	Op   engine.NetOp
	// NotStarted is true when certainly no byte of the request reached the upstream.
	NotStarted bool
	// Err is the cause, for people.
	Err error
}

func (e *Error) Error() string {
	kind := e.Kind.String()
	if kind == "" {
		kind = "refused here"
	}
	return "cannot " + operations[e.Op] + ": " + kind + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

var operations = [...]string{
	engine.OpNone:        "call upstream",
	engine.OpDial:        "dial upstream",
	engine.OpTLS:         "agree on TLS with upstream",
	engine.OpWrite:       "write request to upstream",
	engine.OpReadHeaders: "read response headers of upstream",
	engine.OpReadBody:    "read response body of upstream",
}

var (
	errCancelled = errors.New("the attempt was cancelled")
	errTimeout   = errors.New("the time limit has passed")
	errClosed    = errors.New("the attempt is closed")
)

// malformed is a response that breaks HTTP/1.1's rules. The text is a constant: it never
// repeats what the upstream sent.
type malformed string

func (m malformed) Error() string { return string(m) }

// dialKind names a failed dial that had time left.
func dialKind(err error) engine.NetKind {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return engine.NetDNSNotFound
		}
		return engine.NetDNSTemporary
	case isTimeout(err), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return engine.NetDialTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return engine.NetConnRefused
	case errors.Is(err, syscall.ECONNRESET):
		return engine.NetConnReset
	}
	return engine.NetUnreachable
}

// tlsKind names a failed handshake. timeout is the kind of one that took too long.
func tlsKind(err error, timeout engine.NetKind) engine.NetKind {
	var notTLS tls.RecordHeaderError
	switch {
	case isTimeout(err):
		return timeout
	case errors.As(err, &notTLS):
		return engine.NetTLSNotTLS
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return engine.NetEOF
	case isReset(err):
		return engine.NetConnReset
	}
	// What is left is a certificate that doesn't verify, or an alert of a peer that
	// refuses our terms: either way the two sides don't trust each other.
	return engine.NetTLSVerify
}

// readKind names a failed read. eof is the kind of an end at this place, timeout the one
// of a read that took too long.
func readKind(err error, eof, timeout engine.NetKind) engine.NetKind {
	var bad malformed
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &bad), errors.As(err, &notTLS):
		return engine.NetMalformedResponse
	case errors.Is(err, errTimeout), isTimeout(err):
		return timeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return eof
	}
	return engine.NetConnReset
}

// isTimeout says whether a deadline of ours has passed. A connection that the system gave
// up for lack of acknowledgements calls itself a timeout, too, but is as good as reset.
func isTimeout(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout() && !errors.Is(err, syscall.ETIMEDOUT)
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED)
}
