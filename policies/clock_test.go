package policies

import (
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The clock hangs where the configuration says, so the same moment is another day there.
func TestClockHangsInItsLocation(t *testing.T) {
	t.Parallel()
	f := func(where *time.Location, want string) {
		t.Helper()
		q := failed(t)
		set := load(t, Options{Location: where}, `package fourgate
decision := {"action": "abort", "reason": sprintf("%s_%s_%d_%d", [input.clock.weekday, replace(input.clock.date, "-", ""), input.clock.hour, input.clock.minute])}
`)
		if got := set.Decide(&q); got.Reason.String() != want {
			t.Errorf("in %v: got %q (%s), want %q", where, got.Reason, got.Why, want)
		}
	}
	f(nil, "monday_20261130_23_5")
	f(time.FixedZone("here", 3600), "tuesday_20261201_0_5")
	f(time.FixedZone("there", -30*60), "monday_20261130_22_35")
}

// Only the part of the clock that a policy reads makes a new question.
func TestClockIsReadByParts(t *testing.T) {
	t.Parallel()
	f := func(fact string, step time.Duration, want int) {
		t.Helper()
		set := load(t, Options{}, answering(`{"action": "abort", "reason": "r"} if input.clock.`+fact+` != 99`))
		q := failed(t)
		q.Now = q.Now.Truncate(24 * time.Hour)
		for range 10 {
			set.Decide(&q)
			q.Now = q.Now.Add(step)
		}
		if n := len(set.decisions.answers); n != want {
			t.Errorf("%s: %d questions, want %d", fact, n, want)
		}
	}
	f("minute", time.Second, 1)
	f("minute", time.Minute, 10)
	f("hour", time.Minute, 1)
	f("hour", time.Hour, 10)
	f("weekday", time.Hour, 1)
	f("weekday", 24*time.Hour, 7)
	f("date", time.Hour, 1)
	f("date", 24*time.Hour, 10)
}

// valueOf reads JSON as a policy's answer; big numbers stay as they are written.
func valueOf(text string) (ast.Value, bool) {
	v, err := ast.ValueFromReader(strings.NewReader(text))
	return v, err == nil
}
