package upstream

import (
	"errors"
	"io"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// Read gives bytes of the body as soon as there are some, without the chunked framing. It
// returns [io.EOF] at an orderly end and an [*Error] at any other. Silence for longer
// than the idle limit ends the body; hitting the bound doesn't (see [Attempt.Bound]).
func (a *Attempt) Read(p []byte) (int, error) {
	switch {
	case a.failure != nil:
		return 0, a.failure
	case a.cancelled.Load():
		return 0, a.end(a.fail(engine.OpReadBody, engine.NetContextCanceled, false, errCancelled))
	case a.conn == nil:
		return 0, a.end(a.fail(engine.OpReadBody, engine.NetContextCanceled, false, errClosed))
	case len(p) == 0:
		return 0, nil
	}
	n, err := a.read(p)
	if n > 0 && a.times.FirstByte.IsZero() {
		a.times.FirstByte = time.Now()
	}
	return n, err
}

func (a *Attempt) read(p []byte) (int, error) {
	c := a.conn
	for {
		used, put, err := a.body.next(p, c.buf[c.r:c.w])
		c.r += used
		switch {
		case put > 0:
			// An error behind these bytes is found again by the next call.
			return put, nil
		case err != nil:
			return 0, a.end(a.fail(engine.OpReadBody, engine.NetMalformedResponse, false, err))
		case a.body.state == stateDone:
			return 0, a.end(io.EOF)
		}
		limit, late := earlier(time.Now(), a.limits.Idle, engine.NetIdleTimeout, a.bound)
		if n := a.body.direct(len(p)); n > 0 {
			n, err = c.read(p[:n], limit)
			if n > 0 {
				a.body.took(n)
				return n, nil
			}
		} else {
			err = c.fill(limit)
		}
		if err != nil {
			return 0, a.broken(err, late)
		}
	}
}

// broken names the error of a read. late is what a time limit means.
func (a *Attempt) broken(err error, late engine.NetKind) error {
	if errors.Is(err, io.EOF) && !a.cancelled.Load() {
		if err = a.body.ended(); err == io.EOF {
			return a.end(err)
		}
	}
	e := a.fail(engine.OpReadBody, readKind(err, engine.NetUnexpectedEOF, late), false, err)
	if e.Kind == engine.NetDeadlineExceeded {
		return e // the bound; the body goes on under another one
	}
	return a.end(e)
}

// end makes err the answer of every later Read. Only an orderly end leaves a connection
// that somebody can use.
func (a *Attempt) end(err error) error {
	a.failure = err
	if err != io.EOF {
		a.drop()
	}
	return err
}
