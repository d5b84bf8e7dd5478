package upstream

import (
	"io"
	"net"
	"syscall"
	"time"
)

// bufferSize is what a connection holds while its stream is silent. 4 KiB take a whole
// small answer, or most frames of a stream, in one read.
const bufferSize = 4 << 10

// conn is one connection to an upstream. It has one owner at a time: an attempt or the
// pool.
type conn struct {
	rw     net.Conn // what HTTP is spoken over
	raw    net.Conn // the socket below; rw itself without TLS
	secure bool
	probe  *probe // nil if raw is no socket

	buf  []byte // buf[r:w] has been read and not yet consumed
	r, w int

	// armed is the read deadline that is set. It may be earlier than the one that is
	// meant: setting one costs more than checking the clock once it fires, and with
	// limits of minutes it hardly ever does.
	armed      time.Time
	writeArmed bool

	vec   net.Buffers // reused by write
	since time.Time   // idle since
}

func newConn(raw net.Conn) *conn {
	c := &conn{rw: raw, raw: raw, buf: make([]byte, bufferSize)}
	if s, ok := raw.(syscall.Conn); ok {
		c.probe = newProbe(s)
	}
	return c
}

// read makes one successful read into p that ends by limit; a zero limit is none.
func (c *conn) read(p []byte, limit time.Time) (int, error) {
	if !limit.IsZero() && (c.armed.IsZero() || c.armed.After(limit)) {
		if err := c.arm(limit); err != nil {
			return 0, err
		}
	}
	for {
		n, err := c.rw.Read(p)
		switch {
		case n > 0:
			return n, nil
		case err == nil:
			continue
		case !isTimeout(err) || c.armed.IsZero():
			return 0, err
		case passed(limit):
			return 0, errTimeout
		}
		if err := c.arm(limit); err != nil {
			return 0, err
		}
	}
}

func (c *conn) arm(t time.Time) error {
	c.armed = t
	return c.raw.SetReadDeadline(t)
}

// fill reads once into the buffer, behind what is in it. The buffer must not be full.
func (c *conn) fill(limit time.Time) error {
	if c.r == c.w {
		c.r, c.w = 0, 0
		if len(c.buf) > bufferSize {
			c.buf = make([]byte, bufferSize)
		}
	} else if c.w == len(c.buf) {
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	if c.w == len(c.buf) {
		return io.ErrShortBuffer
	}
	n, err := c.read(c.buf[c.w:], limit)
	c.w += n
	return err
}

// grow makes room for a head that doesn't fit, up to twice the buffer's size.
func (c *conn) grow() {
	bigger := make([]byte, 2*len(c.buf))
	c.w = copy(bigger, c.buf[c.r:c.w])
	c.r = 0
	c.buf = bigger
}

// dead says whether the upstream has closed the connection, or has sent something that
// nobody asked for, which makes it as unusable.
func (c *conn) dead() bool {
	if c.probe != nil {
		return !c.probe.quiet()
	}
	// Without a socket, a read whose time is up tells at least a pipe that is closed.
	if c.arm(time.Unix(1, 0)) != nil {
		return true
	}
	n, err := c.raw.Read(c.buf[:1])
	return n > 0 || err == nil || !isTimeout(err) || c.arm(time.Time{}) != nil
}

func (c *conn) close() { _ = c.raw.Close() }
