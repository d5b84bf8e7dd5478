package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// TestACallersPriceCeilingLeavesDearChannelsOut has four channels at 1 to 4 USD per million
// tokens, a request of 1000 tokens in and 1000 out, and several ceilings.
func TestACallersPriceCeilingLeavesDearChannelsOut(t *testing.T) {
	t.Parallel()
	f := func(ceiling float64, routing engine.Routing, disabled, want string) {
		t.Helper()
		s := smart(engine.StrategyFailover)
		for g := range s.Groups {
			for i := range s.Groups[g].Channels {
				price := float64(1 + 2*g + i)
				s.Groups[g].Channels[i].Cost = engine.Cost{Given: true, Input: price, Output: price}
			}
		}
		s.Callers[0].Routing, s.Callers[0].Budget.MaxCostUSD = routing, ceiling
		c, st := catalog(t, s), engine.NewStanding()
		if disabled != "" {
			disable(c, st, disabled)
		}
		req := asks(c)
		req.Estimate = engine.Estimate{InputTokens: 1000, OutputTokens: 1000}
		chain, outs, _ := c.Explain(start, st, req, half{})
		got := walked(chain.Channels()) + " |"
		for _, o := range outs {
			got += fmt.Sprintf(" %s %s", o.Channel.Name(), o.Why)
		}
		if routed, refusal := c.Route(start, st, req, half{}); refusal != nil {
			got += fmt.Sprintf(" | refused %d", refusal.Kind)
		} else if walked(routed.Channels()) != walked(chain.Channels()) {
			t.Errorf("Route gives %s, Explain %s", walked(routed.Channels()), walked(chain.Channels()))
		}
		if got != want {
			t.Errorf("at most %g USD:\ngot  %s\nwant %s", ceiling, got, want)
		}
	}
	const dear = " above the caller's max_cost_usd"
	for _, routing := range []engine.Routing{engine.RoutingOrdered, engine.RoutingSmart} {
		f(0, routing, "", "abcd |")
		f(0.008, routing, "", "abcd |")
		f(0.005, routing, "", "ab | c"+dear+" d"+dear)
		f(0.001, routing, "", " | a"+dear+" b"+dear+" c"+dear+" d"+dear+fmt.Sprintf(" | refused %d", engine.RefusalNotAllowed))
		f(0.003, routing, "a", " | a disabled by hand b"+dear+" c"+dear+" d"+dear+fmt.Sprintf(" | refused %d", engine.RefusalNoChannel))
	}
}

func TestAPriceCeilingNeedsPrices(t *testing.T) {
	t.Parallel()
	s := smart(engine.StrategyFailover)
	s.Callers[0].Budget.MaxCostUSD = 1
	_, problems := engine.NewCatalog(s)
	if len(problems) != 1 || problems[0].Warning || strings.Join(problems[0].Path, ".") != "caller.t.budget" {
		t.Errorf("without prices: %+v", problems)
	}
}

// TestOnlyPricesCompareRequests has a caller whose channels all have prices.
func TestOnlyPricesCompareRequests(t *testing.T) {
	t.Parallel()
	f := func(what string, change func(*engine.Spec), want bool) {
		t.Helper()
		s := smart(engine.StrategyFailover)
		for g := range s.Groups {
			for i := range s.Groups[g].Channels {
				s.Groups[g].Channels[i].Cost = engine.Cost{Given: true, Input: 1, Output: 1}
			}
		}
		change(&s)
		if got := catalog(t, s).Callers()[0].Compares(); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	f("prices alone", func(*engine.Spec) {}, false)
	f("a ceiling", func(s *engine.Spec) { s.Callers[0].Budget.MaxCostUSD = 1 }, true)
	f("a group by price", func(s *engine.Spec) { s.Groups[0].Strategy = engine.StrategyCost }, true)
	f("a fallback group by price", func(s *engine.Spec) { s.Groups[len(s.Groups)-1].Strategy = engine.StrategyCost }, true)
	f("nobody's key", func(s *engine.Spec) { s.Callers = nil; s.Groups[0].Strategy = engine.StrategyCost }, true)
}
