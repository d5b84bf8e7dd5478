package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// refuseUnread answers a request that fasthttp could not read: a malformed head, or a
// body cut within its first bytes.
func (s *Server) refuseUnread(ctx *fasthttp.RequestCtx, err error) {
	x := s.begin(ctx)
	x.id = newID(x.arrived, s.around.Rand)
	target := brokenTarget(err)
	x.route = locate(target)
	x.endpoint, x.shape = x.route.endpoint, shapeOf(x.route)
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

// A closed connection with bytes unread is reset, and a client that is still sending
// may lose the answer that it was sent. So the connection of a refused upload lingers:
// its writing side is closed, and what still comes is thrown away, up to these bounds.
const (
	lingerFor   = 2 * time.Second
	lingerBytes = 64 << 20
)

// linger takes the connection over from fasthttp, which closes at once whatever it
// answers itself, and sends the response that is ready.
func linger(ctx *fasthttp.RequestCtx) {
	var response bytes.Buffer
	if _, err := ctx.Response.WriteTo(&response); err != nil {
		return
	}
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) {
		under := c
		if h, ok := c.(interface{ UnsafeConn() net.Conn }); ok {
			under = h.UnsafeConn()
		}
		if under.SetDeadline(time.Now().Add(lingerFor)) != nil {
			return
		}
		if _, err := under.Write(response.Bytes()); err != nil {
			return
		}
		if half, ok := under.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_, _ = io.CopyN(io.Discard, c, lingerBytes)
		}
	})
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
