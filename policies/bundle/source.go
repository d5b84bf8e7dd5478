package bundle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// Outcome is how a question for a bundle ended.
type Outcome string

// The outcomes. As long as a server offers a bundle that was refused, each question ends
// as Refused.
const (
	Activated   Outcome = "activated"
	Unchanged   Outcome = "unchanged"
	Refused     Outcome = "refused"
	Unreachable Outcome = "unreachable"
)

// Where a bundle in force has come from.
const (
	FromURL   = "url"
	FromCache = "cache"
)

const (
	// firstBackoff is the wait after the first failure in a row.
	firstBackoff = time.Second
	maxDoublings = 20 // of it: eleven days, and no overflow
)

var (
	errClosed      = errors.New("the source of policy bundles is closed")
	errInterrupted = errors.New("somebody wants to know at once")
)

// Status is what an operator wants to know about a source.
type Status struct {
	Revision, Digest string
	Origin           string    // of the bundle in force: [FromURL] or [FromCache]
	Since            time.Time // when it came into force
	Last             Outcome   // of the last question
	Problem          string    // why that was refused or unreachable, empty otherwise
}

// Source has the policy bundle of one URL. Its methods can be called from any goroutine,
// but not from Options.Accept.
type Source struct {
	o     *prepared
	store string         // a directory of OPA's for a registry's layers, empty for a server
	turn  chan struct{}  // holds one value while a question is under way
	loop  sync.WaitGroup // the source's own goroutine
	stop  chan struct{}  // closed by Close
	seen  seen           // of whoever has the turn

	mu       sync.Mutex // guards the rest
	current  Bundle
	status   Status
	urgent   int                     // calls of Poll that ask or wait for their turn
	cancel   context.CancelCauseFunc // of the question under way
	waiting  bool                    // that question lets the server wait
	patient  bool                    // the next one may
	isClosed bool
}

// Open asks for the bundle, waits for it, and begins to ask again and again until Close.
// If none can be had or it is refused, the last good one from the cache is put in force;
// if there is none either, Open fails and nothing is left running. The context bounds
// Open, not the source.
func Open(ctx context.Context, o Options) (*Source, error) {
	p, err := o.prepare()
	if err != nil {
		return nil, err
	}
	s := &Source{o: p, turn: make(chan struct{}, 1), stop: make(chan struct{})}
	if p.place.isOCI() {
		if s.store, err = p.makeStore(); err != nil {
			return nil, err
		}
	}
	outcome, err := s.ask(ctx, true, 0)
	if outcome != Activated {
		if outcome != "" {
			if last := s.startFromCache(ctx); last != nil {
				err = fmt.Errorf("%w; and %w", err, last)
			} else {
				err = nil
			}
		}
		if err != nil {
			s.Close()
			return nil, err
		}
	}
	s.loop.Go(func() { s.run(context.WithoutCancel(ctx), outcome) })
	return s, nil
}

// Current returns the bundle in force.
func (s *Source) Current() Bundle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Status returns what is known of the source.
func (s *Source) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Poll asks now, tries afresh what was refused before, and waits for the answer. Its error
// says why a bundle is refused or can't be had. Whoever holds a lock that Options.Accept
// takes must not call it.
func (s *Source) Poll(ctx context.Context) (Outcome, error) {
	s.mu.Lock()
	s.urgent++
	if s.waiting {
		s.cancel(errInterrupted)
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.urgent--
		s.mu.Unlock()
	}()
	return s.ask(ctx, true, 0)
}

// Close ends the questions under way and waits for them. The bundle in force stays.
func (s *Source) Close() {
	s.mu.Lock()
	if s.isClosed {
		s.mu.Unlock()
		return
	}
	s.isClosed = true
	close(s.stop)
	if s.cancel != nil {
		s.cancel(errClosed)
	}
	s.mu.Unlock()
	s.loop.Wait()
	s.turn <- struct{}{} // for good: the questions of Poll are over, and no other begins
	if s.store != "" {
		if err := os.RemoveAll(s.store); err != nil {
			s.o.Logger.Warn("Cannot remove the layers of a policy bundle.", "error", err)
		}
	}
}

// run asks until the source is closed.
func (s *Source) run(ctx context.Context, last Outcome) {
	failures := 0
	var wait time.Duration
	for {
		if last == Unreachable {
			failures++
		} else {
			failures = 0
		}
		timer := time.NewTimer(s.pause(failures, wait > 0))
		select {
		case <-timer.C:
		case <-s.stop:
			timer.Stop()
			return
		}
		if wait = 0; s.isPatient() {
			wait = s.o.LongPoll
		}
		last, _ = s.ask(ctx, false, wait) // its error is in the log and in the status
	}
}

// pause is the time until the next question: an interval, a little different each time so
// that many proxies don't ask at once; a backoff after failures; and next to nothing if
// the server has held its answer back.
func (s *Source) pause(failures int, waited bool) time.Duration {
	least := min(firstBackoff, s.o.Poll)
	switch {
	case failures > 0:
		backoff := min(least<<min(failures-1, maxDoublings), s.o.Poll)
		return backoff/2 + rand.N(backoff/2+1)
	case waited:
		return least
	}
	return s.o.Poll*3/4 + rand.N(s.o.Poll/2+1)
}
