package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/valyala/fasthttp"
)

// refuseUnread answers a request that fasthttp could not read: a malformed head, or a
// body cut within its first bytes.
func (s *Server) refuseUnread(ctx *fasthttp.RequestCtx, err error) {
	x := s.begin(ctx)
	x.id = newID(x.arrived, s.Rand)
	target := brokenTarget(err)
	_, x.endpoint = locate(target)
	x.shape = shapeOf(protocolOf(target))
	p := &problem{status: 400, code: codeBadFraming, close: true,
		message: "the request was refused: it is not well-formed HTTP/1.1"}
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		p = &problem{status: 431, code: codeHeadTooLarge, close: true,
			message: fmt.Sprintf("the request head is over %d bytes", headBuffer)}
	case errors.Is(err, fasthttp.ErrDuplicateContentLength):
		p.message = "the request was refused: " + faultLengthTwice
	case errors.Is(err, os.ErrDeadlineExceeded):
		p = &problem{status: 408, code: codeRequestBroken, close: true, message: "the request did not arrive in time"}
	}
	x.refuse(p)
}

// brokenTarget finds the target of a request whose head fasthttp could not read. It has
// forgotten the head by then, but its error quotes the first 200 bytes, and they are all
// that tells the caller's protocol. The answer is "" if they don't.
func brokenTarget(err error) string {
	_, quoted, found := strings.Cut(err.Error(), "contents: \"")
	if !found {
		return ""
	}
	_, rest, _ := strings.Cut(quoted, " ")
	target, _, found := strings.Cut(rest, " ")
	if !found {
		return ""
	}
	return target
}

// quietLog takes fasthttp's log lines. Each broken connection makes one, so they are for
// debugging. Their values may quote a request with its credentials, so only the constant
// text is kept.
type quietLog struct{ logger *slog.Logger }

func (l quietLog) Printf(format string, _ ...any) {
	if l.logger.Enabled(context.Background(), slog.LevelDebug) {
		l.logger.Debug("fasthttp: " + format)
	}
}
