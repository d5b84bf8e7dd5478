package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// Attempt is one call to an upstream. One goroutine owns it and calls [Attempt.Open],
// [Attempt.Read], [Attempt.Bound] and at last [Attempt.Close]; any goroutine may call
// [Attempt.Cancel] at any time, after Close too.
type Attempt struct {
	client   *Client
	pool     *pool
	target   *Target
	request  *Request
	limits   engine.Limits
	deadline time.Time // of Open
	bound    time.Time // of Read

	conn      *conn // set and cleared under mu by the owner, who reads it freely
	head      head
	body      framing
	times     Milestones
	reused    bool
	cut       bool  // the request was not written to its end
	failure   error // ends the body; set once
	cancelled atomic.Bool

	mu       sync.Mutex
	stopDial context.CancelFunc
}

// Milestones are the times at which an attempt got somewhere. A zero time was not
// reached.
type Milestones struct {
	Connected time.Time // TLS included; a reused connection was connected at once
	Sent      time.Time // the whole request was handed to the system
	HeadersAt time.Time // the final response head was read
	FirstByte time.Time // of the body
}

// Start prepares an attempt; nothing is sent and nothing blocks. A zero limit or deadline
// is none.
func (c *Client) Start(t *Target, r *Request, limits engine.Limits, deadline time.Time) *Attempt {
	return &Attempt{
		client: c, pool: c.pool(t), target: t, request: r,
		limits: limits, deadline: deadline, bound: deadline,
	}
}

// Status returns the response's status, 0 before Open has succeeded.
func (a *Attempt) Status() int { return a.head.status }

// Header returns the response's end-to-end fields in order and as they were written,
// Content-Length included. They stay valid after Close.
func (a *Attempt) Header() engine.Headers { return a.head.fields }

// ContentLength returns the length of the body: -1 if it is chunked, -2 if it ends when
// the upstream closes, 0 for an answer to HEAD, a 204 and a 304.
func (a *Attempt) ContentLength() int64 { return a.head.length }

// Milestones returns what the attempt has reached so far.
func (a *Attempt) Milestones() Milestones { return a.times }

// Reused says whether the attempt runs on a connection of an earlier one.
func (a *Attempt) Reused() bool { return a.reused }

// Bound keeps each later [Attempt.Read] from blocking past t; zero leaves only the idle
// limit. A Read that hits the bound fails with [engine.NetDeadlineExceeded] and may be
// repeated under another bound: nothing is lost. Until the first call the bound is the
// attempt's deadline, which holds before commit only: clear it at commit.
func (a *Attempt) Bound(t time.Time) { a.bound = t }

// Cancel ends the attempt at once: the socket is closed, and Open and Read return
// [engine.NetContextCanceled].
func (a *Attempt) Cancel() {
	a.cancelled.Store(true)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopDial != nil {
		a.stopDial()
	}
	if a.conn != nil {
		a.conn.close()
	}
}

// Close ends the owner's use. The connection is kept for another attempt if the body was
// read to its orderly end and nothing forbids it, else closed.
func (a *Attempt) Close() {
	if a.failure == nil {
		a.failure = &Error{Kind: engine.NetContextCanceled, Op: engine.OpReadBody, Err: errClosed}
	}
	c := a.release()
	if c == nil {
		return
	}
	if a.body.state == stateData && !a.body.chunked && a.body.left == int64(c.w-c.r) {
		// All of it is here; nobody wanted it.
		a.body.state, c.r = stateDone, c.w
	}
	whole := a.head.status != 0 && a.body.state == stateDone && c.r == c.w
	if whole && !a.head.close && !a.cut && !a.cancelled.Load() {
		a.client.put(a.pool, c)
		return
	}
	c.close()
}

// own makes c the attempt's connection; it fails, and closes c, after Cancel.
func (a *Attempt) own(c *conn) bool {
	a.mu.Lock()
	a.conn, a.stopDial = c, nil
	a.mu.Unlock()
	// Cancel sets its mark before it looks for a connection: either it finds this one,
	// or we find the mark.
	if a.cancelled.Load() {
		a.drop()
		return false
	}
	return true
}

// release takes the connection away from Cancel.
func (a *Attempt) release() *conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.conn
	a.conn = nil
	return c
}

// drop closes the connection, which nobody can use again.
func (a *Attempt) drop() {
	if c := a.release(); c != nil {
		c.close()
	}
}

// fail makes an error of err, or of the cancellation that caused it.
func (a *Attempt) fail(op engine.NetOp, kind engine.NetKind, notStarted bool, err error) *Error {
	if a.cancelled.Load() {
		kind, err = engine.NetContextCanceled, errCancelled
	}
	return &Error{Kind: kind, Op: op, NotStarted: notStarted, Err: err}
}

// limit returns the earlier of now+d and the deadline, and the kind of error that passing
// it is. A zero time is no limit.
func (a *Attempt) limit(now time.Time, d time.Duration, kind engine.NetKind) (time.Time, engine.NetKind) {
	return earlier(now, d, kind, a.deadline)
}

func earlier(now time.Time, d time.Duration, kind engine.NetKind, other time.Time) (time.Time, engine.NetKind) {
	if d <= 0 {
		return other, engine.NetDeadlineExceeded
	}
	if t := now.Add(d); other.IsZero() || t.Before(other) {
		return t, kind
	}
	return other, engine.NetDeadlineExceeded
}

// passed says whether a limit has passed; a zero one never does.
func passed(limit time.Time) bool { return !limit.IsZero() && !time.Now().Before(limit) }
