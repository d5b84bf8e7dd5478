package engine_test

import (
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// TestDoubt gives back the channels that only other instances have taken out, in the
// place that they would have, and nothing that was seen here.
func TestDoubt(t *testing.T) {
	t.Parallel()
	s := spec(3)
	s.Groups[0].Strategy = engine.StrategyRoundRobin
	s.Groups[0].RPM = 3
	c, st := catalog(t, s), engine.NewStanding()
	st.Adopt(c)
	route := func() (*engine.Request, engine.Chain) {
		t.Helper()
		req := asks(c)
		chain, refusal := c.Route(start, st, req, half{})
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		return req, chain
	}
	doubts := func(want string, more bool) {
		t.Helper()
		req, chain := route()
		before := walked(chain.Channels())
		got, is := st.Doubt(start, req, chain, half{})
		if walked(got.Channels()) != want || is != more || walked(chain.Channels()) != before {
			t.Errorf("instead of %s: %s, another one: %v; want %s, %v", before, walked(got.Channels()), is, want, more)
		}
	}
	doubts("abc", false)
	st.Learn(start, engine.Fact{Kind: engine.FactChannelQuarantined, Group: "g", Channel: "b", Until: start.Add(time.Hour)})
	st.Disable(c.Groups()[0].Channels()[0], time.Time{})
	doubts("bc", true)
	doubts("bc", true) // the first doubt has used no turn up, and no rate
	if _, refusal := c.Route(start, st, asks(c), half{}); refusal == nil || refusal.Kind != engine.RefusalRate {
		t.Errorf("a fourth request within a rate of 3: %+v", refusal)
	}
}
