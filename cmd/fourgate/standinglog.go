package main

import (
	"log/slog"
	"sync"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// standingLog writes a line when something is set aside for what was seen here, and when
// it is put back: by hand, or since probes went well, however late they came. What is only
// set aside for longer is not said again. It passes everything on.
type standingLog struct {
	logger *slog.Logger
	now    func() time.Time
	next   engine.Sharer // nil if nobody else is told

	mu    sync.Mutex
	aside map[engine.Fact]time.Time // by what it is about, until when
}

// maxAside is far more than is set aside at once; past it what has ended is forgotten.
const maxAside = 10_000

// Share implements [engine.Sharer].
func (l *standingLog) Share(f engine.Fact) {
	if l.next != nil {
		l.next.Share(f)
	}
	now, about := l.now(), f
	about.Until, about.Lifted = time.Time{}, false
	l.mu.Lock()
	until, said := l.aside[about]
	switch {
	case f.Lifted:
		delete(l.aside, about)
	default:
		if l.aside == nil {
			l.aside = map[engine.Fact]time.Time{}
		}
		if len(l.aside) >= maxAside {
			for what, until := range l.aside {
				if !now.Before(until) {
					delete(l.aside, what)
				}
			}
		}
		l.aside[about] = f.Until
	}
	l.mu.Unlock()
	switch {
	case f.Lifted && said:
		l.logger.Info("put back", namesOf(f)...)
	case !f.Lifted && !now.Before(until):
		l.logger.Warn("set aside", append(namesOf(f), "until", f.Until.UTC().Truncate(time.Second))...)
	}
}

// namesOf are a fact's attributes in a log line, without those that it hasn't.
func namesOf(f engine.Fact) []any {
	attributes := []any{"kind", f.Kind.String()}
	for _, a := range [...]struct{ name, value string }{
		{"group", f.Group}, {"channel", f.Channel}, {"model", f.Model}, {"provider", f.Provider}, {"key", f.Key},
	} {
		if a.value != "" {
			attributes = append(attributes, a.name, a.value)
		}
	}
	return attributes
}
