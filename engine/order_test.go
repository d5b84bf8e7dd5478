package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

var chat = engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}

// asks gives a request of the catalog's first caller for the model m.
func asks(c *engine.Catalog) *engine.Request {
	return &engine.Request{ID: "r", Caller: c.Callers()[0], Contract: chat, Arrived: start}
}

// walked lists a chain's channels.
func walked(channels []*engine.Channel) string {
	list := make([]string, len(channels))
	for i, ch := range channels {
		list[i] = ch.Name()
	}
	return strings.Join(list, "")
}

// routed gives the next request's chain.
func routed(t *testing.T, c *engine.Catalog, s *engine.Standing, req *engine.Request) string {
	t.Helper()
	chain, refusal := c.Route(start, s, req, half{})
	if refusal != nil {
		t.Fatalf("refused: %s", refusal.Message)
	}
	return walked(chain.Channels())
}

func disable(c *engine.Catalog, s *engine.Standing, name string) {
	for _, g := range c.Groups() {
		for _, ch := range g.Channels() {
			if ch.Name() == name {
				s.Disable(ch, time.Time{})
			}
		}
	}
}

func TestTurnsAreEven(t *testing.T) {
	t.Parallel()
	f := func(name string, strategy engine.Strategy, weights []int, out string, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := spec(len(weights))
			spec.Groups[0].Strategy, spec.Groups[0].MaxHops = strategy, 2
			for i, w := range weights {
				spec.Groups[0].Channels[i].Weight = w
			}
			c, s := catalog(t, spec), engine.NewStanding()
			var got []string
			for i := range strings.Count(want, " ") + 1 {
				if i == 3 && out != "" {
					disable(c, s, out)
				}
				if i == 6 {
					s.Reset(start, engine.Fact{})
				}
				got = append(got, routed(t, c, s, asks(c)))
			}
			if g := strings.Join(got, " "); g != want {
				t.Errorf("got  %s\nwant %s", g, want)
			}
		})
	}
	f("weights of nginx' example", engine.StrategyWeighted, []int{5, 1, 1}, "", "ab ab bc ac ca ab ab ab")
	f("round robin", engine.StrategyRoundRobin, []int{1, 1, 1}, "", "ab bc ca ab bc ca ab")
	f("weights are nothing to round robin", engine.StrategyRoundRobin, []int{9, 0, 1}, "", "ab bc ca ab bc")
	f("who is left out disturbs nobody's turn", engine.StrategyRoundRobin, []int{1, 1, 1}, "b", "ab bc ca ac ca ac cb")
}

// TestSharesFollowWeights counts over whole rounds, also with channels that come and go.
func TestSharesFollowWeights(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 20))
		n := 2 + r.IntN(5)
		s := spec(n)
		s.Groups[0].Strategy, s.Groups[0].MaxHops = engine.StrategyWeighted, 1
		sum := 0
		for i := range n {
			w := 1 + r.IntN(9)
			s.Groups[0].Channels[i].Weight = w
			sum += w
		}
		c, st := catalog(t, s), engine.NewStanding()
		count := func(requests int) map[string]int {
			got := map[string]int{}
			for range requests {
				got[routed(t, c, st, asks(c))]++
			}
			return got
		}
		out := s.Groups[0].Channels[r.IntN(n)]
		disable(c, st, out.Name)
		rest := sum - out.Weight
		count(r.IntN(50)) // a start at any place
		got := count(3 * rest)
		st.Reset(start, engine.Fact{})
		count(sum) // what is saved meets again
		again := count(3 * sum)
		for _, ch := range s.Groups[0].Channels {
			if want := 3 * ch.Weight; ch.Name != out.Name && (got[ch.Name] < want-1 || got[ch.Name] > want+1) {
				t.Errorf("seed %d: %s of weight %d began %d of %d requests while %s was out", seed, ch.Name, ch.Weight, got[ch.Name], 3*rest, out.Name)
			}
			if want := 3 * ch.Weight; again[ch.Name] < want-1 || again[ch.Name] > want+1 {
				t.Errorf("seed %d: %s of weight %d began %d of %d requests", seed, ch.Name, ch.Weight, again[ch.Name], 3*sum)
			}
		}
	}
}

// TestReloadedWeightsCountAtOnce takes a weight of a million away.
func TestReloadedWeightsCountAtOnce(t *testing.T) {
	t.Parallel()
	s := spec(2)
	s.Groups[0].Strategy, s.Groups[0].MaxHops = engine.StrategyWeighted, 1
	s.Groups[0].Channels[0].Weight, s.Groups[0].Channels[1].Weight = 1_000_000, 1_000_000
	c, st := catalog(t, s), engine.NewStanding()
	routed(t, c, st, asks(c))
	s = spec(2)
	s.Groups[0].Strategy, s.Groups[0].MaxHops = engine.StrategyWeighted, 1
	c = catalog(t, s)
	got := ""
	for range 8 {
		got += routed(t, c, st, asks(c))
	}
	if a := strings.Count(got, "a"); a < 3 || a > 5 {
		t.Errorf("with equal weights requests began on %s", got)
	}
}

func TestCostIsOfTheRequest(t *testing.T) {
	t.Parallel()
	s := spec(3)
	g := &s.Groups[0]
	g.Strategy = engine.StrategyCost
	g.Channels[0].Cost = engine.Cost{Given: true, Input: 10, Output: 1}                                           // for long answers
	g.Channels[1].Cost = engine.Cost{Given: true, Input: 1, Output: 20}                                           // for long questions
	g.Channels[2].Cost = engine.Cost{Given: true, Input: 4, Output: 12, CachedInput: 0.1, CachedInputGiven: true} // for long conversations
	c := catalog(t, s)
	f := func(what string, e engine.Estimate, want string) {
		t.Helper()
		req := asks(c)
		req.Estimate = e
		if got := routed(t, c, engine.NewStanding(), req); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	f("a long answer", engine.EstimateOf(400, 4000, false), "acb")
	f("a long question", engine.EstimateOf(400_000, 100, false), "bca")
	f("a long conversation", engine.Estimate{InputTokens: 100_000, OutputTokens: 4000, CachedShare: 0.9}, "cba")
	f("nothing known", engine.Estimate{}, "cab")
	f("a share beyond all", engine.Estimate{InputTokens: 100_000, OutputTokens: 4000, CachedShare: 7}, "cba")
}

func TestEqualPricesGoByPriority(t *testing.T) {
	t.Parallel()
	s := spec(3)
	s.Groups[0].Strategy = engine.StrategyCost
	for i := range s.Groups[0].Channels {
		s.Groups[0].Channels[i].Cost = engine.Cost{Given: true, Input: 1, Output: 1}
	}
	s.Groups[0].Channels[2].Priority = 1
	c := catalog(t, s)
	if got := routed(t, c, engine.NewStanding(), asks(c)); got != "cab" {
		t.Errorf("got %s", got)
	}
}

func TestShuffleIsEven(t *testing.T) {
	t.Parallel()
	s := spec(3)
	s.Groups[0].Strategy = engine.StrategyShuffle
	c, st := catalog(t, s), engine.NewStanding()
	r := rand.New(rand.NewPCG(1, 21))
	got := map[string]int{}
	const n = 6000
	for range n {
		chain, _ := c.Route(start, st, asks(c), r)
		got[walked(chain.Channels())]++
	}
	for _, order := range []string{"abc", "acb", "bac", "bca", "cab", "cba"} {
		if k := got[order]; k < n/6-150 || k > n/6+150 {
			t.Errorf("%s came %d times of %d", order, k, n)
		}
	}
}

// smart is two groups for one model, walked together.
func smart(strategy engine.Strategy) engine.Spec {
	s := spec(2)
	second := s.Groups[0]
	second.Name = "h"
	second.Channels = []engine.ChannelSpec{{Name: "c", Provider: "pa"}, {Name: "d", Provider: "pb"}}
	s.Groups = append(s.Groups, second)
	for i := range s.Groups {
		s.Groups[i].Strategy = strategy
	}
	s.Callers = []engine.CallerSpec{{Name: "t", KeySHA256: strings.Repeat("ab", 32), Groups: []string{"g", "h"}, Routing: engine.RoutingSmart}}
	return s
}

func TestSmartRoutingTakesAllGroupsTogether(t *testing.T) {
	t.Parallel()
	t.Run("by price", func(t *testing.T) {
		t.Parallel()
		s := smart(engine.StrategyCost)
		for i, price := range []float64{3, 1} {
			s.Groups[0].Channels[i].Cost = engine.Cost{Given: true, Input: price, Output: price}
			s.Groups[1].Channels[i].Cost = engine.Cost{Given: true, Input: price + 1, Output: price + 1}
		}
		c := catalog(t, s)
		if got := routed(t, c, engine.NewStanding(), asks(c)); got != "bdac" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("in turn", func(t *testing.T) {
		t.Parallel()
		s := smart(engine.StrategyRoundRobin)
		s.Groups[0].MaxHops = 1
		c, st := catalog(t, s), engine.NewStanding()
		got := ""
		for range 8 {
			got += routed(t, c, st, asks(c))
		}
		if got != "abcdabcd" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("a spent group stands back", func(t *testing.T) {
		t.Parallel()
		s := smart(engine.StrategyFailover)
		s.Groups[0].RPM, s.Groups[1].RPM = 1, 1
		c, st := catalog(t, s), engine.NewStanding()
		got := ""
		for range 3 {
			req := asks(c)
			chain, refusal := c.Route(start, st, req, half{})
			if refusal != nil {
				wait, _ := refusal.RetryAfter.Get()
				got += fmt.Sprintf("%d %v", refusal.Kind, wait)
				continue
			}
			got += walked(chain.Channels()) + " "
			engine.Begin(start, req, chain, st, half{})
		}
		if want := fmt.Sprintf("abcd cd %d 1m0s", engine.RefusalRate); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestCallersOwnCeilingsTighten(t *testing.T) {
	t.Parallel()
	f := func(own engine.CallerBudget, attempts, perRoute int, deadline time.Duration) {
		t.Helper()
		s := smart(engine.StrategyFailover)
		s.Callers[0].Budget = own
		c := catalog(t, s)
		chain, refusal := c.Route(start, engine.NewStanding(), asks(c), half{})
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		if b := chain.Budget(); b.Attempts != attempts || b.PerRoute != perRoute || b.Deadline != deadline {
			t.Errorf("%+v: got %d attempts, %d on one channel, %v", own, b.Attempts, b.PerRoute, b.Deadline)
		}
		_, ins := engine.Begin(start, asks(c), chain, engine.NewStanding(), half{})
		if send := ins.(*engine.Send); !send.Deadline.Equal(start.Add(deadline)) || send.Last != (attempts == 1) {
			t.Errorf("%+v: the attempt has until %v, last %v", own, send.Deadline.Sub(start), send.Last)
		}
	}
	f(engine.CallerBudget{}, 3, 2, time.Minute)
	f(engine.CallerBudget{Attempts: 1, Deadline: 10 * time.Second}, 1, 1, 10*time.Second)
	f(engine.CallerBudget{Attempts: 9, Deadline: time.Hour}, 3, 2, time.Minute)
}

func TestFallbackGroupsDoNotUseTurnsUp(t *testing.T) {
	t.Parallel()
	s := smart(engine.StrategyRoundRobin)
	s.Callers[0].Routing = engine.RoutingOrdered
	c, st := catalog(t, s), engine.NewStanding()
	got := []string{routed(t, c, st, asks(c)), routed(t, c, st, asks(c)), routed(t, c, st, asks(c))}
	disable(c, st, "a")
	disable(c, st, "b")
	got = append(got, routed(t, c, st, asks(c)), routed(t, c, st, asks(c)))
	if g, want := strings.Join(got, " "), "abcd bacd abcd cd dc"; g != want {
		t.Errorf("got %s, want %s", g, want)
	}
}

func TestExplainTellsOrderAndAbsences(t *testing.T) {
	t.Parallel()
	s := spec(6)
	s.Groups[0].Strategy, s.Groups[0].MaxHops = engine.StrategyRoundRobin, 2
	s.Groups[0].Breaker = engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Minute}
	c, st := catalog(t, s), engine.NewStanding()
	st.Adopt(c)
	until := start.Add(time.Hour)
	disable(c, st, "b")
	for _, f := range []engine.Fact{
		{Kind: engine.FactChannelQuarantined, Group: "g", Channel: "c", Until: until},
		{Kind: engine.FactModelEvicted, Group: "g", Channel: "d", Model: "m", Until: until},
		{Kind: engine.FactBreakerOpen, Group: "g", Channel: "e", Until: until},
	} {
		if !st.Learn(start, f) {
			t.Errorf("not learned: %+v", f)
		}
	}
	for range 2 { // it changes nothing, so it says the same twice
		chain, outs, _ := c.Explain(start, st, asks(c), half{})
		var got []string
		for _, o := range outs {
			when := "?"
			if !o.Until.IsZero() {
				when = o.Until.Sub(start).String()
			}
			got = append(got, fmt.Sprintf("%s: %s %s %v", o.Channel.Name(), o.Why, when, o.Abroad))
		}
		want := "b: disabled by hand ? false, c: quarantined 1h0m0s true, d: model evicted 1h0m0s true, e: breaker open 1h0m0s true"
		if g := strings.Join(got, ", "); walked(chain.Channels()) != "af" || g != want {
			t.Errorf("chain %s, out %s\nwant out %s", walked(chain.Channels()), g, want)
		}
	}
	if got := routed(t, c, st, asks(c)) + " " + routed(t, c, st, asks(c)); got != "af fa" {
		t.Errorf("requests after the explanation got %s", got)
	}
}

// crowd is a group of n channels with prices, weights, and a few that are out.
func crowd(n int, strategy engine.Strategy) engine.Spec {
	s := spec(1)
	provider, g := s.Providers[0], s.Groups[0]
	s.Providers, g.Channels = nil, nil
	for i := range n {
		provider.Name = fmt.Sprintf("p%d", i)
		s.Providers = append(s.Providers, provider)
		g.Channels = append(g.Channels, engine.ChannelSpec{
			Name: fmt.Sprintf("c%d", i), Provider: provider.Name, Weight: 1 + i%7,
			Cost: engine.Cost{Given: true, Input: float64(1 + i*7%11), Output: float64(2 + i*5%13)},
		})
	}
	g.Strategy, g.MaxHops = strategy, 3
	g.Breaker = engine.BreakerSpec{Mode: engine.BreakerWindow, Failures: 3, Window: time.Minute, OpenFor: time.Minute}
	s.Groups = []engine.GroupSpec{g}
	return s
}

var strategies = []engine.Strategy{
	engine.StrategyFailover, engine.StrategyCost, engine.StrategyRoundRobin, engine.StrategyWeighted, engine.StrategyShuffle,
}

func TestChoosingAChainAllocatesNothing(t *testing.T) {
	for _, strategy := range strategies {
		c, problems := engine.NewCatalog(crowd(50, strategy))
		if c == nil {
			t.Fatal(problems)
		}
		s, req := engine.NewStanding(), asks(c)
		disable(c, s, "c0")
		req.Room = make([]*engine.Channel, 0, 3)
		if n := testing.AllocsPerRun(100, func() {
			if _, refusal := c.Route(start, s, req, half{}); refusal != nil {
				t.Fatal(refusal.Message)
			}
		}); n != 0 {
			t.Errorf("%s: choosing a chain takes %v allocations", strategy, n)
		}
	}
}

// BenchmarkChain chooses a chain of three among fifty channels.
func BenchmarkChain(b *testing.B) {
	for _, strategy := range strategies {
		b.Run(strategy.String(), func(b *testing.B) {
			c, _ := engine.NewCatalog(crowd(50, strategy))
			s, req := engine.NewStanding(), asks(c)
			disable(c, s, "c0")
			req.Room = make([]*engine.Channel, 0, 3)
			req.Estimate = engine.EstimateOf(4000, 800, true)
			r := rand.New(rand.NewPCG(1, 1))
			b.ReportAllocs()
			for b.Loop() {
				if _, refusal := c.Route(start, s, req, r); refusal != nil {
					b.Fatal(refusal.Message)
				}
			}
		})
	}
}
