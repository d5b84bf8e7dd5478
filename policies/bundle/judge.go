package bundle

import (
	"context"
	"fmt"
	"time"
)

// seen is what the last answers were. Whoever has the turn reads and writes it.
type seen struct {
	etag    string // of the last bundle, a refused one too: it need not come again
	patient bool   // the server can hold its answer back
	bad     string // the digest of the bundle that was refused, if one came whole
	badName string // its revision, if it came whole and has one
	why     error  // why; nil if what the server offers is in force
}

func (s *Source) isPatient() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o.LongPoll > 0 && s.patient
}

// begin waits for the turn. It returns a context, which Close ends, and Poll does if the
// server may wait; how long it really may; and what gives the turn back.
func (s *Source) begin(ctx context.Context, wait time.Duration) (context.Context, time.Duration, func(), error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, nil, context.Cause(ctx)
	case <-s.stop:
		return nil, 0, nil, errClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		<-s.turn
		return nil, 0, nil, errClosed
	}
	if s.urgent > 0 {
		wait = 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.cancel, s.waiting = cancel, wait > 0
	return ctx, wait, func() {
		s.mu.Lock()
		s.cancel, s.waiting = nil, false
		s.patient = s.seen.patient
		s.mu.Unlock()
		cancel(nil)
		<-s.turn
	}, nil
}

// ask asks once. Without an outcome the error says who has cancelled it. Asking afresh
// tries again what was refused.
func (s *Source) ask(ctx context.Context, afresh bool, wait time.Duration) (Outcome, error) {
	ctx, wait, end, err := s.begin(ctx, wait)
	if err != nil {
		return "", err
	}
	defer end()
	if afresh && s.seen.why != nil {
		s.seen.etag, s.seen.bad, s.seen.badName = "", "", ""
	}
	a := s.o.fetch(ctx, s.store, s.seen, wait)
	var outcome Outcome
	if ctx.Err() == nil {
		outcome, err = s.judge(ctx, a)
	}
	if ctx.Err() != nil && outcome != Activated {
		return "", context.Cause(ctx)
	}
	s.report(outcome, err)
	if s.store != "" {
		if err := tidy(s.store, s.o.MaxBytes*storeFactor); err != nil {
			s.o.Logger.Warn("Cannot look after the layers of a policy bundle.", "error", err)
		}
	}
	return outcome, err
}

// judge decides about an answer: this is the gate between a download and the policy in
// force.
func (s *Source) judge(ctx context.Context, a answer) (Outcome, error) {
	if a.lost != nil {
		return Unreachable, fmt.Errorf("cannot fetch policy bundle %s: %w", s.o.place.shown, a.lost)
	}
	s.seen.patient = a.patient
	inForce := s.Current().Digest
	switch {
	case a.refused != nil:
		return s.refuse(a, a.refused)
	case a.raw == nil && s.seen.why != nil:
		return Refused, s.seen.why
	case a.raw == nil && inForce == "":
		return Unreachable, fmt.Errorf("cannot fetch policy bundle %s: its server says that it has not changed, but there is none yet", s.o.place.shown)
	case a.raw == nil:
		return Unchanged, nil
	case a.bundle.Digest == inForce:
		s.seen.etag, s.seen.bad, s.seen.badName, s.seen.why = a.etag, "", "", nil
		return Unchanged, nil
	case a.bundle.Digest == s.seen.bad:
		s.seen.etag = a.etag
		return Refused, s.seen.why
	}
	if err := s.o.Accept(ctx, a.bundle); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return s.refuse(a, err)
	}
	s.seen = seen{etag: a.etag, patient: a.patient}
	s.putInForce(a.bundle, FromURL)
	if s.o.Cache != "" && !s.o.KeepsNothing {
		if err := keep(keptFile(s.o.Cache, s.o.URL), a.raw); err != nil {
			s.o.Logger.Warn("Cannot keep the policy bundle, which is in force. A start without its server would not find it: "+
				"let the user that runs Fourgate write to its cache.", "cache", s.o.Cache, "error", err)
		}
	}
	return Activated, nil
}

func (s *Source) refuse(a answer, why error) (Outcome, error) {
	s.seen.etag, s.seen.bad, s.seen.badName = a.etag, a.bundle.Digest, a.bundle.Revision
	s.seen.why = fmt.Errorf("cannot use policy bundle %s: %w", s.o.place.shown, why)
	return Refused, s.seen.why
}

// startFromCache puts the last good bundle in force. Nobody else has the source yet.
func (s *Source) startFromCache(ctx context.Context) error {
	b, err := s.o.kept()
	if err != nil {
		return err
	}
	if err := s.o.Accept(ctx, b); err != nil {
		return fmt.Errorf("cannot use the last good one: %w", err)
	}
	if s.o.place.isOCI() && s.seen.why == nil {
		s.seen.etag = digestETag(b.Digest)
	}
	s.putInForce(b, FromCache)
	s.o.Logger.Warn("The last good policy bundle is in force.", "revision", b.Revision, "digest", b.Digest, "error", s.Status().Problem)
	return nil
}

func (s *Source) putInForce(b Bundle, origin string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = b
	s.status.Revision, s.status.Digest, s.status.Origin, s.status.Since = b.Revision, b.Digest, origin, time.Now()
	s.o.Metrics.inForce(b, origin, s.status.Since)
}

// report counts how a question ended, and logs what is new. In a line about a bundle,
// revision is that one's, and in_force that of the one which stays.
func (s *Source) report(outcome Outcome, err error) {
	s.o.Metrics.loads.WithLabelValues(string(outcome)).Inc()
	s.mu.Lock()
	before := s.status
	s.status.Last, s.status.Problem = outcome, ""
	if err != nil {
		s.status.Problem = err.Error()
	}
	now := s.status
	s.mu.Unlock()
	switch {
	case now.Digest == "": // at a start, whose error or last good bundle says it
	case outcome == Activated:
		s.o.Logger.Info("A new policy bundle is in force.", "revision", now.Revision, "digest", now.Digest)
	case outcome == Refused && before.Problem != now.Problem:
		said := []any{"in_force", now.Revision, "error", err}
		if s.seen.badName != "" {
			said = append([]any{"revision", s.seen.badName}, said...)
		}
		s.o.Logger.Warn("A policy bundle is refused; the one in force stays.", said...)
	// The words of a lost connection differ from one time to the next.
	case outcome == Unreachable && before.Last != Unreachable:
		s.o.Logger.Warn("No policy bundle can be had; the one in force stays.", "in_force", now.Revision, "error", err)
	case outcome == Unchanged && (before.Last == Refused || before.Last == Unreachable):
		s.o.Logger.Info("The policy bundle in force is offered again.", "revision", now.Revision)
	}
}
