package engine_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// whyUnserved is what the record of a request without an attempt tells, and comes back
// with from its public form.
func whyUnserved(t *testing.T, r *engine.Record) string {
	t.Helper()
	text := r.AppendJSON(nil)
	again, err := engine.ParseRecord(text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.AppendJSON(nil), text) {
		t.Errorf("the record doesn't survive: %s", text)
	}
	u := again.Unserved()
	if u == nil {
		return ""
	}
	outs, more := u.Outs()
	story := u.Why().String()
	for _, o := range outs {
		story += fmt.Sprintf(" %s/%s(%s)", o.Group, o.Channel, o.Why)
		if !o.Until.IsZero() {
			story += "+" + o.Until.Sub(start).String()
		}
	}
	if more > 0 {
		story += fmt.Sprintf(" and %d more", more)
	}
	return story
}

func TestRecordsSayWhyNoAttemptWasMade(t *testing.T) {
	t.Parallel()
	f := func(name string, n int, change func(*engine.Spec), before func(*engine.Catalog, *engine.Standing), want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := spec(n)
			if change != nil {
				change(&sp)
			}
			c, s := catalog(t, sp), engine.NewStanding()
			s.Adopt(c)
			before(c, s)
			req := asks(c)
			req.Arrived = start
			_, refusal := c.Route(start, s, req, half{})
			if refusal == nil {
				t.Fatal("the request is admitted")
			}
			if got := whyUnserved(t, engine.RecordRefusal(start, req, refusal, 503)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
	disable := func(until time.Time) func(*engine.Catalog, *engine.Standing) {
		return func(c *engine.Catalog, s *engine.Standing) {
			for _, ch := range c.Groups()[0].Channels() {
				s.Disable(ch, until)
			}
		}
	}
	f("disabled by hand", 2, nil, disable(time.Time{}), "no_channel g/a(disabled by hand) g/b(disabled by hand)")
	f("disabled for an hour", 1, nil, disable(start.Add(time.Hour)), "no_channel g/a(disabled by hand)+1h0m0s")
	f("told by others, too", 2, nil, func(c *engine.Catalog, s *engine.Standing) {
		for _, ch := range []string{"a", "b"} {
			s.Learn(start, engine.Fact{Kind: engine.FactBreakerOpen, Group: "g", Channel: ch, Until: start.Add(time.Minute)})
		}
		disable(start.Add(time.Hour))(c, s)
	}, "no_channel g/a(disabled by hand)+1h0m0s g/b(disabled by hand)+1h0m0s")
	many, all := func(sp *engine.Spec) {
		for i := range 9 {
			sp.Groups[0].Channels = append(sp.Groups[0].Channels, engine.ChannelSpec{Name: fmt.Sprint(i), Provider: "pa"})
		}
	}, "no_channel g/a(disabled by hand)"
	for i := range 7 {
		all += fmt.Sprintf(" g/%d(disabled by hand)", i)
	}
	f("more than are kept", 1, many, disable(time.Time{}), all+" and 2 more")
	spend := func(c *engine.Catalog, s *engine.Standing) {
		if _, ok := admitted(c, s, start); !ok {
			t.Error("the first request isn't admitted")
		}
	}
	f("a group's rate", 1, func(sp *engine.Spec) { sp.Groups[0].RPM = 1 }, spend, "group_rates")
}

// TestRecordsOfOlderVersionsDoNotSayWhy there was no attempt.
func TestRecordsOfOlderVersionsDoNotSayWhy(t *testing.T) {
	t.Parallel()
	r, err := engine.ParseRecord([]byte(`{"request_id":"r","attempts":[],"terminal":"exhausted"}`))
	if err != nil || r.Unserved() != nil {
		t.Errorf("%+v, %v", r.Unserved(), err)
	}
	r, err = engine.ParseRecord([]byte(`{"request_id":"r","unserved":{"why":"by a later version","out":[{"why":"moon"}]}}`))
	if err != nil || whyUnserved(t, r) != " /()" {
		t.Errorf("%q, %v", whyUnserved(t, r), err)
	}
}
