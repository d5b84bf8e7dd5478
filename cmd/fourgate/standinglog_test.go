package main

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

type sharedFacts []engine.Fact

func (s *sharedFacts) Share(f engine.Fact) { *s = append(*s, f) }

// Who watches an outage reads once that something is set aside, however many requests find
// the same, and once that it is back.
func TestStandingLog(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	var told sharedFacts
	l := &standingLog{
		logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})),
		now:  func() time.Time { return now },
		next: &told,
	}
	key := engine.Fact{Kind: engine.FactKeyCooled, Provider: "p", Key: "main", KeyPrint: "00ff", Until: now.Add(10 * time.Second)}
	breaker := engine.Fact{Kind: engine.FactBreakerOpen, Group: "g", Channel: "a", Until: now.Add(time.Minute)}
	longer, closed := key, breaker
	longer.Until = now.Add(20 * time.Second)
	closed.Until, closed.Lifted = time.Time{}, true
	for _, f := range []engine.Fact{closed, key, breaker, longer, closed, closed} {
		l.Share(f)
	}
	now = now.Add(time.Minute)
	again := key
	again.Until = now.Add(10 * time.Second)
	l.Share(again)
	reopened := breaker
	reopened.Until = now.Add(time.Minute)
	l.Share(reopened)
	now = now.Add(time.Hour) // nobody has sent a probe until now
	l.Share(closed)
	const want = `level=WARN msg="set aside" kind=key_cooled provider=p key=main until=2026-03-01T12:00:10.000Z
level=WARN msg="set aside" kind=breaker_open group=g channel=a until=2026-03-01T12:01:00.000Z
level=INFO msg="put back" kind=breaker_open group=g channel=a
level=WARN msg="set aside" kind=key_cooled provider=p key=main until=2026-03-01T12:01:10.000Z
level=WARN msg="set aside" kind=breaker_open group=g channel=a until=2026-03-01T12:02:00.000Z
level=INFO msg="put back" kind=breaker_open group=g channel=a
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if len(told) != 9 {
		t.Errorf("%d facts were passed on, want all 9", len(told))
	}
}
