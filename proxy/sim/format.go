package sim

import (
	"strconv"
	"strings"
	"time"
)

// String gives the fault in the form that [ParseFault] reads, with its words in a
// fixed order.
func (f Fault) String() string {
	var w []string
	add := func(name, value string) {
		if value != "" {
			w = append(w, name+"="+quote(value))
		}
	}
	addInt := func(name string, n int) {
		if n != 0 {
			w = append(w, name+"="+strconv.Itoa(n))
		}
	}
	addTime := func(name string, d time.Duration) {
		if d != 0 {
			w = append(w, name+"="+d.String())
		}
	}
	switch f.Kind {
	case Error: // status= says it
	case Body:
		w = append(w, "body="+quote(f.Body))
	default:
		if f.Kind != Text || f.Break == Whole {
			w = append(w, f.Kind.String())
		}
	}
	addInt("status", f.Status)
	if f.Break != Whole {
		w = append(w, f.Break.String())
	}
	if f.Break != Whole && f.Break != Truncated {
		if f.At == AfterContent {
			addInt("after", f.After)
		} else {
			w = append(w, f.At.String())
		}
	}
	add("retry-after", f.RetryAfter)
	add("retry-after-ms", f.RetryAfterMS)
	addTime("retry-after-date", f.RetryAfterDate)
	add("code", f.Code)
	add("type", f.Type)
	add("message", f.Message)
	for _, h := range f.Header {
		add("header", h.Name+": "+h.Value)
	}
	add("model", f.Model)
	addInt("chunks", f.Chunks)
	addInt("bytes", f.Bytes)
	addInt("split", f.Split)
	addTime("headers", f.Headers)
	addTime("first", f.First)
	addTime("gap", f.Gap)
	for _, flag := range []struct {
		on   bool
		name string
	}{{f.Burst, "burst"}, {f.Close, "close"}, {f.Hangup, "hangup"}} {
		if flag.on {
			w = append(w, flag.name)
		}
	}
	addInt("times", f.Times)
	if f.Again {
		w = append(w, "again")
	}
	return strings.Join(w, " ")
}

// quote leaves a plain value as it is.
func quote(s string) string {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == ',' || c == '"' || c == '`' || c == '=' {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}
