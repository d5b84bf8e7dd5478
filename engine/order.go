package engine

import (
	"math"
	"time"
)

// ranked is a channel that waits for its place in a chain, by its place in the list that
// it comes from. The lowest rank is next, and of equal ranks the one that came first.
type ranked struct {
	rank float64
	at   int
}

func (r ranked) before(o ranked) bool { return r.rank < o.rank || r.rank == o.rank && r.at < o.at }

// walk is a chain in the making.
type walk struct {
	view
	now      time.Time
	estimate Estimate
	rnd      Rand
	hops     int  // how many channels the chain may have
	explain  bool // nothing is counted, and what is left out is named
	chain    []*Channel
	outs     []Out
}

func (w *walk) full() bool { return len(w.chain) >= w.hops }

// done says that nothing more can come of the walk.
func (w *walk) done() bool { return w.full() && !w.explain }

// take puts a channel that isn't barred into the chain.
func (w *walk) take(ch *Channel) {
	if !w.full() {
		w.chain = append(w.chain, ch)
	} else if w.explain {
		w.outs = append(w.outs, Out{Channel: ch, Why: BarHops})
	}
}

// bars says whether the channel is barred, and notes why where that is asked for.
func (s *Standing) bars(w *walk, ch *Channel) bool {
	if w.dear(ch) {
		if w.explain {
			w.outs = append(w.outs, Out{Channel: ch, Why: BarCost})
		}
		return true
	}
	if s.free(w.now, ch, w.admitted) {
		return false
	}
	why, until := s.bar(w.now, ch, w.view)
	if why == BarNone {
		s.channel(ch).settle()
		return false
	}
	if w.explain {
		here := w.view
		here.abroad = false
		known, _ := s.bar(w.now, ch, here)
		w.outs = append(w.outs, Out{Channel: ch, Why: why, Until: until, Abroad: known == BarNone})
	}
	return true
}

// dear says whether one attempt on the channel would probably cost more than the caller
// may spend on it.
func (w *walk) dear(ch *Channel) bool {
	limit := w.caller.spec.Budget.MaxCostUSD
	return limit > 0 && w.estimate.cost(&ch.spec.Cost) > limit*1e6
}

// free says at a glance that a channel isn't barred for anybody, as most aren't most of
// the time. Where it can't say so, [Standing.bar] looks closer.
func (s *Standing) free(now time.Time, ch *Channel, admitted *Group) bool {
	return (ch.group == admitted || ch.group.spec.RPM <= 0) && s.channel(ch).quiet(now) &&
		(len(ch.provider.keys) == 0 || !now.Before(s.provider(ch.provider).restless))
}

// walk makes the chain of a request. It needs no memory but the chain's own, and for
// choosing a few among n channels about n steps. s.mu is held.
func (s *Standing) walk(w *walk, l *lane, groups []*Group) {
	if l.all != nil {
		s.arrange(w, l.all, groups[0].spec.Strategy, 1)
		return
	}
	for _, g := range groups {
		if w.done() {
			return
		}
		s.arrange(w, g.ordered, g.spec.Strategy, 0)
	}
}

// arrange adds channels to the chain in the order of a strategy. Table says whose turns
// are meant: those within a group or those of smart routing.
func (s *Standing) arrange(w *walk, channels []*Channel, strategy Strategy, table int) {
	switch strategy {
	case StrategyCost:
		s.byPrice(w, channels)
	case StrategyRoundRobin:
		s.inTurn(w, channels, false, table)
	case StrategyWeighted:
		s.inTurn(w, channels, true, table)
	case StrategyShuffle:
		s.atRandom(w, channels)
	default:
		for _, ch := range channels {
			if w.done() {
				return
			}
			if !s.bars(w, ch) {
				w.take(ch)
			}
		}
	}
}

// byPrice puts the channel first on which this request will cost least. Equals stay in
// the fixed order.
func (s *Standing) byPrice(w *walk, channels []*Channel) {
	q := s.scratch[:0]
	for i, ch := range channels {
		q = append(q, ranked{w.estimate.cost(&ch.spec.Cost), i})
	}
	s.scratch = q
	heapify(q)
	for len(q) > 0 && !w.done() {
		ch := channels[q[0].at]
		q = pop(q)
		if !s.bars(w, ch) {
			w.take(ch)
		}
	}
}

// inTurn is smooth weighted round robin, as nginx does it for upstream servers (weights
// of 5, 1, 1 give a a b a c a a): every channel that can be used saves its weight, the one that has
// saved most starts the request and pays the sum of all weights. So each starts as many
// requests as its weight says, and evenly spread. What is barred saves nothing and
// disturbs nobody's turn. The rest of the chain are those who would have been next. With
// equal weights this is round robin.
//
// Only a request that begins in the channels counts: where they are a fallback behind
// others, nobody's turn is used up. A saving is never more than the sum of the weights,
// so that one which is left from other weights, or from a time when a heavy channel was
// there, evens out at once.
func (s *Standing) inTurn(w *walk, channels []*Channel, weighted bool, table int) {
	q := s.scratch[:0]
	sum := 0
	for i, ch := range channels {
		if s.bars(w, ch) {
			continue
		}
		weight := 1
		if weighted {
			weight = max(ch.spec.Weight, 1)
		}
		sum += weight
		q = append(q, ranked{float64(weight), i})
	}
	s.scratch = q
	count := !w.explain && len(w.chain) == 0
	for i := range q {
		saved := &s.channel(channels[q[i].at]).turns[table]
		now := min(max(*saved, -sum), sum) + int(q[i].rank)
		if count {
			*saved = now
		}
		q[i].rank = float64(-now)
	}
	heapify(q)
	if count && len(q) > 0 {
		s.channel(channels[q[0].at]).turns[table] -= sum
	}
	for len(q) > 0 && !w.done() {
		w.take(channels[q[0].at])
		q = pop(q)
	}
}

// atRandom draws channels evenly, as far as they are needed (Fisher and Yates).
func (s *Standing) atRandom(w *walk, channels []*Channel) {
	q := s.scratch[:0]
	for i := range channels {
		q = append(q, ranked{at: i})
	}
	s.scratch = q
	for len(q) > 0 && !w.done() {
		i := min(int(w.rnd.Float64()*float64(len(q))), len(q)-1)
		ch := channels[q[i].at]
		q[i] = q[0]
		q = q[1:]
		if !s.bars(w, ch) {
			w.take(ch)
		}
	}
}

// heapify puts the next one to the front, in time in proportion to the length.
func heapify(q []ranked) {
	for i := len(q)/2 - 1; i >= 0; i-- {
		sink(q, i)
	}
}

// pop takes the front away and puts the next one there.
func pop(q []ranked) []ranked {
	last := len(q) - 1
	q[0] = q[last]
	q = q[:last]
	sink(q, 0)
	return q
}

func sink(q []ranked, i int) {
	for {
		least := 2*i + 1
		if least >= len(q) {
			return
		}
		if r := least + 1; r < len(q) && q[r].before(q[least]) {
			least = r
		}
		if !q[least].before(q[i]) {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}

// Estimate is what a request will probably use. It chooses between prices and bills
// nobody, so it may be rough.
type Estimate struct {
	InputTokens int64 // 0: unknown, as for a form
	// OutputTokens are what the request allows, such as max_tokens; 0: it names nothing.
	OutputTokens int64
	// CachedShare of the input, 0 to 1, will probably come out of a prompt cache.
	CachedShare float64
}

// What a request counts as that doesn't say it: a short question, and an answer of a
// page.
const (
	usualInput  = 1000
	usualOutput = 500
)

// Rules of thumb for bodies: vendors' tokenizers make a token of about four bytes of
// English or JSON; of a conversation that marks a prefix for a cache, or goes on, most is
// the prefix.
const (
	bytesOfToken      = 4
	likelyCachedShare = 0.75
)

// EstimateOf estimates from a body's length in bytes, the output tokens that it allows
// (0: it names nothing), and whether a prompt cache probably holds its beginning.
func EstimateOf(body int, output int64, cached bool) Estimate {
	e := Estimate{InputTokens: int64(body / bytesOfToken), OutputTokens: max(output, 0)}
	if cached {
		e.CachedShare = likelyCachedShare
	}
	return e
}

// cost is the price of the estimate in millionths of a dollar. A channel without a price
// costs more than any that has one.
func (e *Estimate) cost(c *Cost) float64 {
	if !c.Given {
		return math.Inf(1)
	}
	in, out := e.InputTokens, e.OutputTokens
	if in <= 0 {
		in = usualInput
	}
	if out <= 0 {
		out = usualOutput
	}
	input := c.Input
	if c.CachedInputGiven {
		input += min(max(e.CachedShare, 0), 1) * (c.CachedInput - c.Input)
	}
	return float64(in)*input + float64(out)*c.Output
}
