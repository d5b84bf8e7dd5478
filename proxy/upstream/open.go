package upstream

import (
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// Open connects, sends the request and reads the response's head. It blocks until then,
// at most to the deadline, and is called once. After an error there is nothing to read;
// Close is still due.
//
// limits.Connect holds for the lookup of the name and the TCP connect to all its addresses,
// limits.TLS for the handshake, limits.Headers from the written request to the final head,
// and again for the writing itself where that may block.
func (a *Attempt) Open() *Error {
	err := a.open()
	if err != nil {
		a.failure = err
		a.drop()
	}
	a.request = nil // its slices are the caller's again
	return err
}

func (a *Attempt) open() *Error {
	now := time.Now()
	if !a.deadline.IsZero() && !now.Before(a.deadline) {
		return a.fail(engine.OpDial, engine.NetDeadlineExceeded, true, errTimeout)
	}
	if c := a.client.take(a.pool, now); c != nil {
		a.reused = true
		a.times.Connected = now
		if !a.own(c) {
			return a.fail(engine.OpDial, engine.NetContextCanceled, true, errCancelled)
		}
	} else if err := a.connect(now); err != nil {
		return err
	}
	sent, err := a.send()
	if err != nil && a.reused && sent == 0 && err.Kind == engine.NetConnReset {
		// The idle connection died between the check and the first byte. The upstream
		// can't have seen anything, so this is still the same single call.
		a.drop()
		a.reused = false
		if err := a.connect(time.Now()); err != nil {
			return err
		}
		sent, err = a.send()
	}
	if err != nil {
		// An upstream that refuses a large body answers before it has read all of it, and
		// closes or reads no more; that answer says more than the broken write.
		if sent == 0 || a.receive(time.Now(), earlyAnswer) != nil {
			return a.fail(err.Op, err.Kind, err.NotStarted, err.Err)
		}
		a.cut = true
		return nil
	}
	a.times.Sent = time.Now()
	return a.receive(a.times.Sent, a.limits.Headers)
}

// earlyAnswer is how long to look for an answer on a connection that takes no more bytes.
// It has arrived before the write failed, or never will.
const earlyAnswer = 100 * time.Millisecond

// send writes the request and says how many of its bytes the connection accepted. A write
// that may block has as long as the headers have after it.
func (a *Attempt) send() (int64, *Error) {
	c := a.conn
	head, err := appendHead(c.buf[:0], a.target, a.request)
	if err != nil {
		return 0, a.fail(engine.OpWrite, engine.NetNone, true, err)
	}
	late := engine.NetDeadlineExceeded
	n, err := c.write(head, a.request.Body, func() error {
		var limit time.Time
		limit, late = a.limit(time.Now(), a.limits.Headers, engine.NetHeaderTimeout)
		c.writeArmed = !limit.IsZero()
		return c.raw.SetWriteDeadline(limit)
	})
	if err == nil && c.writeArmed {
		c.writeArmed = false
		err = c.raw.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		return n, a.fail(engine.OpWrite, readKind(err, engine.NetConnReset, late), n == 0, err)
	}
	return n, nil
}

// receive reads heads until the final one, for patience at most.
func (a *Attempt) receive(now time.Time, patience time.Duration) *Error {
	c := a.conn
	limit, late := a.limit(now, patience, engine.NetHeaderTimeout)
	c.r, c.w = 0, 0
	for interim := 0; ; {
		end, lines, err := c.readHead(limit)
		if err != nil {
			eof := engine.NetUnexpectedEOF
			if interim == 0 && c.w == 0 {
				eof = engine.NetEOF
			}
			return a.fail(engine.OpReadHeaders, readKind(err, eof, late), false, err)
		}
		block := c.buf[c.r:end]
		c.r = end
		status, _, err := parseStatus(block)
		if err == nil && status >= 200 {
			a.head, err = parseHead(block, lines, a.request.Method == "HEAD")
			if err == nil {
				break
			}
		}
		if err == nil && status == 101 {
			err = errUpgrade
		}
		if interim++; err == nil && interim > maxInterim {
			err = errInterim
		}
		if err != nil {
			return a.fail(engine.OpReadHeaders, engine.NetMalformedResponse, false, err)
		}
	}
	a.body = newFraming(a.head.length)
	a.times.HeadersAt = time.Now()
	if c.w > c.r {
		a.times.FirstByte = a.times.HeadersAt
	}
	return nil
}

// readHead reads until a whole head is in the buffer and returns where it ends and how
// many lines it has.
func (c *conn) readHead(limit time.Time) (end, lines int, err error) {
	line := 0 // start of the last incomplete line, from c.r
	for {
		if have := c.buf[c.r:c.w]; len(have) > 0 {
			if !statusPrefix(have) {
				return 0, 0, errStatusLine
			}
			end, line, lines, err = headEnd(have, line, lines)
			if err != nil {
				return 0, 0, err
			}
			if end > maxHead || end == 0 && len(have) >= maxHead {
				return 0, 0, errHeadSize
			}
			if end > 0 {
				return c.r + end, lines, nil
			}
			if len(have) == len(c.buf) {
				c.grow()
			}
		}
		if err := c.fill(limit); err != nil {
			return 0, 0, err
		}
	}
}
