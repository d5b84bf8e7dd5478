package proxy

import (
	"sync"

	"github.com/fourgate-dev/fourgate/proxy/upstream"
)

// leaving carries the news that a request is to end early, because its caller has gone
// or the server is closing, from the goroutine that learns it to whatever the request
// waits for: its running attempt or its backoff. The first cause counts.
type leaving struct {
	mu      sync.Mutex
	cause   leaveCause
	attempt *upstream.Attempt
	wake    chan struct{} // closed on leave; made only by a request that waits
}

type leaveCause uint8

const (
	staying leaveCause = iota
	callerGone
	serverClosing
)

// leave ends the request. Any goroutine may call it.
func (l *leaving) leave(cause leaveCause) {
	l.mu.Lock()
	if l.cause != staying {
		l.mu.Unlock()
		return
	}
	l.cause = cause
	attempt, wake := l.attempt, l.wake
	l.mu.Unlock()
	if wake != nil {
		close(wake)
	}
	if attempt != nil {
		attempt.Cancel()
	}
}

// attach makes a the attempt that leaving cancels, instead of the one before. It
// returns false if the request is to end already: a must not start then. An attempt
// that has ended stays attached; cancelling it does nothing.
func (l *leaving) attach(a *upstream.Attempt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != staying {
		return false
	}
	l.attempt = a
	return true
}

// why returns the cause, staying if there is none.
func (l *leaving) why() leaveCause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// woken returns a channel that is closed when the request is to end.
func (l *leaving) woken() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wake == nil {
		l.wake = make(chan struct{})
		if l.cause != staying {
			close(l.wake)
		}
	}
	return l.wake
}

// running is the set of requests with a call, so that a server that closes can end
// them. It is a list through the exchanges themselves and allocates nothing.
type running struct {
	mu     sync.Mutex
	first  *exchange
	closed bool
}

func (r *running) add(x *exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.next = r.first
	if x.next != nil {
		x.next.prev = x
	}
	r.first = x
	if r.closed {
		// Its upload has ended after the drain: nothing may be started for it.
		x.leaving.leave(serverClosing)
	}
}

func (r *running) remove(x *exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.prev != nil {
		x.prev.next = x.next
	} else if r.first == x {
		r.first = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	x.prev, x.next = nil, nil
}

// empty says that no request runs: the records of all are closed.
func (r *running) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first == nil
}

// cancelAll ends every running request and returns their number.
func (r *running) cancelAll() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	n := 0
	for x := r.first; x != nil; x = x.next {
		x.leaving.leave(serverClosing)
		n++
	}
	return n
}
