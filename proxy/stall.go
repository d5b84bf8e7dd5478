package proxy

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// stallListener drops callers that stop reading. It is below TLS: a deadline that passes
// within a record would break the session.
type stallListener struct {
	net.Listener
	limit time.Duration
}

func (l *stallListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &stallConn{Conn: c, limit: l.limit}, nil
}

// stallConn is a caller's connection. A write to it fails once the caller has taken
// nothing for the limit, or a twelfth of it later; one that is taken slowly goes on for as
// long as it needs.
type stallConn struct {
	net.Conn
	limit time.Duration

	mu sync.Mutex
	// armed is the deadline that is set. A write that it ends is looked at, as only then
	// the system says how much was taken, and goes on.
	armed time.Time
	fixed bool // somebody has set a deadline of their own, which counts instead
}

// Write writes all of b, or says how much of it the caller has taken.
func (c *stallConn) Write(b []byte) (written int, err error) {
	now, look := time.Now(), c.limit/12
	stalls := now.Add(c.limit)
	// Moving the deadline for each write would cost more than a look too many.
	for slack := look / 2; ; slack = 0 {
		if err := c.arm(now.Add(look), slack); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(b[written:])
		written += n
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || c.isFixed() {
			return written, err
		}
		if now = time.Now(); n > 0 {
			stalls = now.Add(c.limit)
		} else if !now.Before(stalls) {
			return written, err
		}
	}
}

// arm moves the deadline to t, unless the one that is set is earlier by slack at most.
func (c *stallConn) arm(t time.Time, slack time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fixed || !c.armed.IsZero() && t.Sub(c.armed) <= slack {
		return nil
	}
	c.armed = t
	return c.Conn.SetWriteDeadline(t)
}

func (c *stallConn) isFixed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fixed
}

// SetWriteDeadline sets a deadline instead of the limit; zero brings the limit back.
func (c *stallConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed, c.fixed = time.Time{}, !t.IsZero()
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets a deadline for reads, and one for writes instead of the limit.
func (c *stallConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// NetConn returns the connection below, where the watch is.
func (c *stallConn) NetConn() net.Conn { return c.Conn }

// CloseRead lets nothing more come in.
func (c *stallConn) CloseRead() error {
	if half, ok := c.Conn.(interface{ CloseRead() error }); ok {
		return half.CloseRead()
	}
	return nil
}

// CloseWrite tells the caller that nothing more comes.
func (c *stallConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
