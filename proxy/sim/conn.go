package sim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"
)

// conn is one accepted connection. One goroutine owns it: reading a request, pausing
// and writing follow each other. A pause is a read with a deadline, so that a peer's
// FIN or RST ends it at once without a second goroutine.
type conn struct {
	sim *Sim
	nc  net.Conn
	id  int64
	r   *bufio.Reader
}

func newConn(s *Sim, nc net.Conn, id int64) *conn {
	return &conn{sim: s, nc: nc, id: id, r: bufio.NewReaderSize(nc, readBuffer)}
}

func (c *conn) serve() {
	defer c.nc.Close()
	for c.one() {
	}
}

// one answers one request and says whether the connection goes on.
func (c *conn) one() bool {
	r, err := readRequest(c.r, func() error {
		_, err := io.WriteString(c.nc, "HTTP/1.1 100 Continue\r\n\r\n")
		return err
	})
	if err != nil {
		var bad *badRequest
		switch {
		case errors.As(err, &bad):
			c.refuse(bad)
		case r != nil && !c.sim.isClosed():
			// It was sent, if not in full: whoever counts calls must find it.
			name, path := splitTarget(r.target)
			if ch := c.sim.asked(name); ch != nil {
				ch.lost(r, path, c.id, time.Now())
			}
		}
		return false
	}
	name, path := splitTarget(r.target)
	ch := c.sim.asked(name)
	if ch == nil {
		c.refuse(&badRequest{404, "write http://ADDR/CHANNEL/v1/…"})
		return false
	}
	var q query
	_, raw, _ := strings.Cut(r.target, "?")
	q.read(path, raw, r.body)
	seen, line := ch.take(r, path, q, c.id, time.Now())
	sent, gone := c.play(line)
	c.sim.note(func() {
		seen.Sent = sent
		if seen.Gone = gone; gone {
			seen.GoneAt = time.Now()
		} else {
			seen.Done = true
		}
	})
	if ctx := context.Background(); c.sim.log.Enabled(ctx, slog.LevelInfo) {
		c.sim.log.LogAttrs(ctx, slog.LevelInfo, "request", slog.String("channel", ch.name), slog.Int("n", seen.N),
			slog.String("path", path), slog.String("model", q.model), slog.Bool("stream", q.stream),
			slog.String("attempt", seen.Attempt()), slog.String("fault", seen.Fault.String()), slog.Bool("gone", gone))
	}
	return line.end == keepAlive && !gone && !r.close
}

// play does what a timeline says. gone is whether the peer left before its end.
func (c *conn) play(line *timeline) (sent int, gone bool) {
	for i := range line.segments {
		s := &line.segments[i]
		if s.wait > 0 && c.pause(s.wait) {
			return sent, true
		}
		if len(s.data) == 0 {
			continue
		}
		n, err := c.nc.Write(s.data)
		sent += n
		if err != nil {
			return sent, !c.sim.isClosed()
		}
	}
	switch line.end {
	case holdOpen:
		return sent, c.pause(forever)
	case closeRST:
		if tcp, ok := c.nc.(*net.TCPConn); ok {
			// Lingering for no time makes the close a reset.
			if err := tcp.SetLinger(0); err != nil {
				c.sim.log.Error("cannot reset a connection", "error", err)
			}
		}
		c.nc.Close()
	case closeFIN:
		c.nc.Close()
	}
	return sent, false
}

const forever = time.Duration(-1)

// pause is silent for d, or until the peer closes, and says whether it did. What the
// peer sends meanwhile stays in the reader.
func (c *conn) pause(d time.Duration) (gone bool) {
	var until time.Time
	if d != forever {
		until = time.Now().Add(d)
	}
	if err := c.nc.SetReadDeadline(until); err != nil {
		return !c.sim.isClosed()
	}
	for {
		_, err := c.r.Peek(c.r.Buffered() + 1)
		switch {
		case err == nil: // the next request, early
		case errors.Is(err, os.ErrDeadlineExceeded):
			return c.nc.SetReadDeadline(time.Time{}) != nil && !c.sim.isClosed()
		case errors.Is(err, bufio.ErrBufferFull):
			// A peer that sends a whole buffer ahead can't be watched any more. It gets no
			// silence either: no client of ours does this.
			return false
		default:
			return !c.sim.isClosed()
		}
	}
}

// refuse answers what no script can answer, and the connection ends.
func (c *conn) refuse(bad *badRequest) {
	body := `{"error":{"message":` + quoted("fourgate sim: "+bad.why) + `,"type":"invalid_request_error","param":null,"code":null}}`
	// The peer may have gone already; then there is nobody to tell.
	_, _ = fmt.Fprintf(c.nc, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		bad.status, reasonPhrase(bad.status), len(body), body)
}
