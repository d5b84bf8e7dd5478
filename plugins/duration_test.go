package plugins

import (
	"strings"
	"testing"
	"time"
)

func TestReadWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 31, 22, 0, 0, 0, time.UTC)
	const none = -1
	f := func(text string, want time.Duration) {
		t.Helper()
		got, ok := readWait(text, now)
		if !ok {
			got = none
		}
		if got != want {
			t.Errorf("%q: %v; want %v", text, got, want)
		}
	}
	f("7", 7*time.Second)
	f(" 1.5 ", 1500*time.Millisecond)
	f("0", 0)
	f("174ms", 174*time.Millisecond)
	f("3.89s", 3890*time.Millisecond)
	f("7m12s", 432*time.Second)
	f("9m38.016s", 578016*time.Millisecond)
	f("34.074824224s", 34074824224)
	f("1h0m0s", time.Hour)
	f("45 seconds", 45*time.Second)
	f("1 minute 30 seconds", 90*time.Second)
	f("2d", 48*time.Hour)
	f("Tue, 31 Mar 2026 22:02:00 GMT", 2*time.Minute)
	f("Tue, 31 Mar 2026 21:00:00 GMT", 0)
	f("2026-03-31T22:00:32Z", 32*time.Second)
	f("1775001600", 2*time.Hour)
	f("1775001600000", 2*time.Hour)
	f("", none)
	f("-1", none)
	f("soon", none)
	f("7 requests", none)
	f("7s later", none)
	f("1e3", none)
	f("999d", none)
	f("99999999999999999999", none)
	f("99999999999999999999d", none)

	if d, ok := readWait("Tue, 31 Mar 2026 22:02:00 GMT", time.Time{}); ok {
		t.Errorf("a date was read as %v without a date to read it against", d)
	}
}

func TestTextWait(t *testing.T) {
	t.Parallel()
	const none = -1
	f := func(text string, want time.Duration) {
		t.Helper()
		got, ok := textWait([]byte(text))
		if !ok {
			got = none
		}
		if got != want {
			t.Errorf("%q: %v; want %v", text, got, want)
		}
	}
	f("please try again in 3.89s.", 3890*time.Millisecond)
	f("please retry after 7 seconds.", 7*time.Second)
	f("please wait 41032 seconds before retrying", 41032*time.Second)
	f("rate limit of 50 per 86400s exceeded. please wait 12 seconds", 12*time.Second)
	f("try again in 9m38.016s", 578016*time.Millisecond)
	f("try again in 174ms", 174*time.Millisecond)
	f("please try again after 1 seconds", time.Second)
	f("if it was created within the last 5 minutes, wait a moment", none)
	f("please try again later", none)
	f("at most 30 requests in 5 parallel calls", none)
	f("begin 5 seconds", none)
	f("in ", none)
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"7m12s", "1775001600000", "in 99999999999999999d", "Tue, 31 Mar 2026 22:02:00 GMT", "0.9999999999999s"} {
		f.Add(s)
	}
	now := time.Date(2026, 3, 31, 22, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		if d, ok := readWait(text, now); ok && (d < 0 || d > maxWait) {
			t.Errorf("%q is %v", text, d)
		}
		if d, ok := textWait([]byte(strings.ToLower(text))); ok && (d < 0 || d > maxWait) {
			t.Errorf("%q holds %v", text, d)
		}
	})
}
