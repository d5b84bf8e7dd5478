package plugins

import (
	"bytes"
	"math/bits"
	"strings"
	"time"
)

// maxWait is the longest wait that is believed. What lies beyond is a mistake or a date
// in another calendar.
const maxWait = 366 * 24 * time.Hour

// readWait reads a text that is a duration as a whole: a number of seconds ("7",
// "1.5"), a number with units ("174ms", "7m12s", "45 seconds"), an HTTP date, an RFC
// 3339 time or a Unix time in seconds or milliseconds. Points in time are read against
// now, the response's own date; a zero now makes them unreadable. A past time is 0.
func readWait(text string, now time.Time) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	if d, rest, ok := units([]byte(text)); ok && len(rest) == 0 {
		return believe(d)
	}
	whole, billionths, rest, ok := decimal([]byte(text))
	if ok && len(rest) == 0 {
		switch {
		case whole >= 1e12: // Unix milliseconds
			return until(time.UnixMilli(whole), now)
		case whole >= 1e9: // Unix seconds
			return until(time.Unix(whole, 0), now)
		}
		return believe(time.Duration(whole)*time.Second + time.Duration(billionths))
	}
	for _, layout := range [...]string{time.RFC1123, time.RFC3339, time.RFC850, time.ANSIC} {
		if at, err := time.Parse(layout, text); err == nil {
			return until(at, now)
		}
	}
	return 0, false
}

// textWait finds a duration that a sentence tells the reader to wait: "try again in
// 3.89s", "retry after 45 seconds", "please wait 41032 seconds". A number without a unit
// is none, and neither is "per 86400s". The text must be in lower case.
func textWait(text []byte) (time.Duration, bool) {
	for i := 0; i < len(text); i++ {
		if i > 0 && isLetter(text[i-1]) {
			continue
		}
		for _, anchor := range [...]string{"in ", "after ", "wait "} {
			if !bytes.HasPrefix(text[i:], []byte(anchor)) {
				continue
			}
			rest := bytes.TrimLeft(text[i+len(anchor):], " ")
			if d, _, ok := units(rest); ok {
				return believe(d)
			}
		}
	}
	return 0, false
}

func isLetter(b byte) bool { return b >= 'a' && b <= 'z' }

func believe(d time.Duration) (time.Duration, bool) { return d, d >= 0 && d <= maxWait }

func until(at, now time.Time) (time.Duration, bool) {
	if now.IsZero() {
		return 0, false
	}
	return believe(max(at.Sub(now), 0))
}

// unitWords are the names of units, longer ones before their own beginnings.
var unitWords = [...]struct {
	word string
	unit time.Duration
}{
	{"milliseconds", time.Millisecond}, {"millisecond", time.Millisecond}, {"ms", time.Millisecond},
	{"minutes", time.Minute}, {"minute", time.Minute}, {"mins", time.Minute}, {"min", time.Minute}, {"m", time.Minute},
	{"seconds", time.Second}, {"second", time.Second}, {"secs", time.Second}, {"sec", time.Second}, {"s", time.Second},
	{"hours", time.Hour}, {"hour", time.Hour}, {"hrs", time.Hour}, {"hr", time.Hour}, {"h", time.Hour},
	{"days", 24 * time.Hour}, {"day", 24 * time.Hour}, {"d", 24 * time.Hour},
}

// units reads numbers with units for as long as there are any: "7m12s", "1 minute 30
// seconds". It needs at least one.
func units(text []byte) (sum time.Duration, rest []byte, ok bool) {
	rest = text
	for {
		whole, billionths, after, found := decimal(bytes.TrimLeft(rest, " "))
		if !found {
			return sum, rest, ok
		}
		after = bytes.TrimPrefix(after, []byte(" "))
		unit, length := unitAt(after)
		if length == 0 {
			return sum, rest, ok
		}
		if whole > int64(maxWait/unit) {
			return maxWait + 1, nil, true // believe refuses it
		}
		hi, lo := bits.Mul64(uint64(billionths), uint64(unit))
		part, left := bits.Div64(hi, lo, 1e9)
		if left > 0 {
			part++
		}
		sum += time.Duration(whole)*unit + time.Duration(part)
		if sum > maxWait {
			return sum, nil, true
		}
		rest, ok = after[length:], true
	}
}

func unitAt(text []byte) (unit time.Duration, length int) {
	for _, u := range unitWords {
		if bytes.HasPrefix(text, []byte(u.word)) {
			if n := len(u.word); len(text) == n || !isLetter(text[n]) {
				return u.unit, n
			}
		}
	}
	return 0, 0
}

// maxWhole bounds the whole part of a number; Unix milliseconds are far below.
const maxWhole = 1e15

// decimal reads an unsigned decimal number as its whole part and billionths, the latter
// rounded up.
func decimal(text []byte) (whole, billionths int64, rest []byte, ok bool) {
	i := 0
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		whole = whole*10 + int64(text[i]-'0')
		if whole > maxWhole {
			return 0, 0, text, false
		}
	}
	if i == 0 {
		return 0, 0, text, false
	}
	if i+1 < len(text) && text[i] == '.' && text[i+1] >= '0' && text[i+1] <= '9' {
		scale, more := int64(1e8), int64(0)
		for i++; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
			if scale == 0 && text[i] != '0' {
				more = 1
			}
			billionths += int64(text[i]-'0') * scale
			scale /= 10
		}
		billionths += more
	}
	return whole, billionths, text[i:], true
}
