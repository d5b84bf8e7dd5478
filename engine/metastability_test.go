package engine_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// The simulation takes the production engine through a brown-out in virtual time: SDKs
// that make three requests of each failed one and number none of them, a gateway that may
// make three attempts of each, and an upstream with a queue. At 80 % load such a tower
// never comes back by itself once the queue is as long as the time limits: everything
// that is served has been given up already, and is asked for up to nine times.
const (
	simCapacity = 30  // attempts a second
	simLoad     = 0.8 // of it
	simSlots    = 30  // attempts served at once, each for a second
	brownFrom   = 3 * time.Minute
	brownFor    = time.Minute
	simEnd      = 20 * time.Minute
	simHeaders  = 10 * time.Second // the gateway's time limit of an attempt
)

// happening is something that will happen.
type happening struct {
	at  time.Duration
	seq int
	do  func()
}

type agenda []happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// attempt is an upstream call in the simulated upstream.
type attempt struct {
	over   bool // answered or given up
	answer func()
}

// tower is the simulated world.
type tower struct {
	*rand.Rand
	catalog  *engine.Catalog
	standing *engine.Standing
	now      time.Duration
	agenda   agenda
	seq      int

	nameless bool    // the gateway hashes no bodies, so it knows no replay
	slots    int     // that work: simSlots, fewer in a brown-out, none in an outage
	brown    float64 // the share of capacity that is left in the brown-out
	serving  int
	queue    []*attempt
	attempts []int // by second
	offered  []int // requests that applications meant, by second
	served   []int // of them served well at last, by the second in which they were meant
}

func newTower(t *testing.T, brown float64, budget engine.RetryBudgetSpec, b engine.BreakerSpec) *tower {
	t.Helper()
	s := spec(1)
	s.RetryBudget = budget
	s.Providers[0].Limits.Headers = simHeaders
	s.Groups[0].Breaker = b
	s.Groups[0].Budget.PerRoute = 3
	seconds := int(simEnd/time.Second) + 1
	return &tower{
		Rand: rand.New(rand.NewPCG(7, 25)), catalog: catalog(t, s), standing: engine.NewStanding(), slots: simSlots, brown: brown,
		attempts: make([]int, seconds), offered: make([]int, seconds), served: make([]int, seconds),
	}
}

func (w *tower) in(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.agenda, happening{w.now + d, w.seq, do})
}

// run lets the time pass until then.
func (w *tower) run(until time.Duration) {
	w.in(brownFrom, func() { w.slots = int(simSlots * w.brown) })
	w.in(brownFrom+brownFor, func() {
		w.slots = simSlots
		w.serve()
	})
	w.arrive(0)
	for len(w.agenda) > 0 {
		h := heap.Pop(&w.agenda).(happening)
		if h.at >= until {
			return
		}
		w.now = h.at
		h.do()
	}
}

// arrive has applications ask at random times, one request after the other.
func (w *tower) arrive(n uint64) {
	w.in(time.Duration(-math.Log(1-w.Float64())/(simLoad*simCapacity)*float64(time.Second)), func() {
		second := int(w.now / time.Second)
		w.offered[second]++
		w.ask(n, 2, 2*time.Second, func() { w.served[second]++ })
		w.arrive(n + 1)
	})
}

// ask sends a request as an SDK that numbers nothing: it repeats what fails twice, after
// two and four seconds, and believes no header.
func (w *tower) ask(n uint64, again int, wait time.Duration, served func()) {
	req := &engine.Request{
		ID: "r", Caller: w.catalog.Callers()[0], Contract: chat, Arrived: w.clock(),
		Idempotency: engine.Idempotency{ReplaySafe: true, Effects: engine.EffectsNone},
	}
	for i := range 8 {
		req.BodyHash[i] = byte(n >> (8 * i))
	}
	req.BodyHash[31] = 1
	if w.nameless {
		req.BodyHash = [32]byte{}
	}
	w.gateway(req, func(good bool) {
		if good {
			served()
		} else if again > 0 {
			w.in(wait, func() { w.ask(n, again-1, 2*wait, served) })
		}
	})
}

func (w *tower) clock() time.Time { return start.Add(w.now) }

// gateway drives one call.
func (w *tower) gateway(req *engine.Request, done func(good bool)) {
	chain, refusal := w.catalog.Route(w.clock(), w.standing, req, w)
	if refusal != nil {
		done(false)
		return
	}
	call, ins := engine.Begin(w.clock(), req, chain, w.standing, w)
	w.follow(call, ins, done)
}

func (w *tower) follow(call *engine.Call, ins engine.Instruction, done func(good bool)) {
	for {
		var ev engine.Event
		switch i := ins.(type) {
		case *engine.Send:
			n := i.Attempt
			w.upstream(min(simHeaders, i.Deadline.Sub(w.clock())), func(failure *engine.Evidence) {
				ev := engine.Event(&engine.Held{Attempt: n, Status: 200, Model: "m"})
				if failure != nil {
					ev = &engine.Failed{Attempt: n, Evidence: failure}
				}
				w.follow(call, call.Step(w.clock(), ev), done)
			})
			return
		case *engine.WaitUntil:
			w.in(i.At.Sub(w.clock()), func() { w.follow(call, call.Step(w.clock(), &engine.Woke{}), done) })
			return
		case *engine.Finish:
			done(i.Terminal == engine.TerminalSuccess)
			return
		case *engine.Classify:
			ev = &engine.Classified{Attempt: i.Attempt, Verdict: engine.Verdict{Class: engine.ClassProviderTransient, Scope: engine.ScopeChannel}}
		case *engine.Ask:
			d := engine.Decision{Action: engine.Retry, Effects: counted.Effects}
			if !i.Question.Same || !i.Question.RetryBudget || !i.Question.Time {
				d.Action = engine.Abort
			}
			ev = &engine.Decided{Attempt: i.Attempt, Decision: d}
		case *engine.Relay:
			ev = &engine.Ended{Attempt: i.Attempt}
		}
		ins = call.Step(w.clock(), ev)
	}
}

// upstream serves an attempt, or queues it. It learns that a queued one was given up when
// it comes to it, and not at all of one that it has begun. Where nothing works it refuses.
func (w *tower) upstream(limit time.Duration, answer func(*engine.Evidence)) {
	w.attempts[int(w.now/time.Second)]++
	if w.slots == 0 {
		w.in(50*time.Millisecond, func() {
			answer(&engine.Evidence{Transport: engine.TransportHTTP, Status: 503, Phase: engine.BeforeOutput})
		})
		return
	}
	a := &attempt{}
	a.answer = func() {
		if !a.over {
			a.over = true
			answer(nil)
		}
	}
	w.in(limit, func() {
		if !a.over {
			a.over = true
			answer(&engine.Evidence{NetKind: engine.NetHeaderTimeout, NetOp: engine.OpReadHeaders})
		}
	})
	w.queue = append(w.queue, a)
	w.serve()
}

func (w *tower) serve() {
	for w.serving < w.slots && len(w.queue) > 0 {
		a := w.queue[0]
		w.queue = w.queue[1:]
		if a.over {
			continue
		}
		w.serving++
		w.in(time.Duration(float64(simSlots)/simCapacity*float64(time.Second)*(0.5+w.Float64())), func() {
			w.serving--
			a.answer()
			w.serve()
		})
	}
}

// share is how much of what applications asked for between two times was served.
func (w *tower) share(from, to time.Duration) float64 {
	return float64(sum(w.served, from, to)) / float64(max(sum(w.offered, from, to), 1))
}

// amplification is how many attempts were made of a request between two times.
func (w *tower) amplification(from, to time.Duration) float64 {
	return float64(sum(w.attempts, from, to)) / float64(max(sum(w.offered, from, to), 1))
}

func sum(counts []int, from, to time.Duration) int {
	n := 0
	for _, c := range counts[int(from/time.Second):int(to/time.Second)] {
		n += c
	}
	return n
}

// recovers and amplifiesLittle are the two promises; they say what of one is broken.
func recovers(w *tower) string {
	if got := w.share(brownFrom+brownFor+time.Minute, simEnd-time.Minute); got < 0.99 {
		return fmt.Sprintf("from a minute after the brown-out on only %.1f%% is served", 100*got)
	}
	return ""
}

func amplifiesLittle(w *tower) string {
	if got := w.amplification(brownFrom, brownFrom+brownFor); got > 1.1 {
		return fmt.Sprintf("an outage is amplified by %.2f", got)
	}
	return ""
}

func TestTheRetryBudgetKeepsATowerStable(t *testing.T) {
	t.Parallel()
	production := engine.RetryBudgetSpec{Ratio: 0.1, Floor: 0.1, Cap: 100} // the defaults
	off := engine.RetryBudgetSpec{Ratio: 1, Floor: 1e6, Cap: 1e9}
	window := engine.BreakerSpec{Mode: engine.BreakerWindow, Failures: 20, Window: 10 * time.Second, OpenFor: 5 * time.Second, HalfOpenProbes: 1}
	const brown, outage = 0.2, 0
	nameless := false
	f := func(name string, left float64, budget engine.RetryBudgetSpec, b engine.BreakerSpec, promise func(*tower) string, kept bool) {
		t.Helper()
		nameless := nameless
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, left, budget, b)
			w.nameless = nameless
			until := simEnd
			if left == outage {
				until = brownFrom + brownFor + 10*time.Second // what is promised of it is over
			}
			w.run(until)
			if got := w.share(0, brownFrom); got < 0.99 {
				t.Errorf("before anything happened only %.1f%% was served", 100*got)
			}
			if left != outage {
				t.Logf("from a minute after the brown-out on %.1f%% is served", 100*w.share(brownFrom+brownFor+time.Minute, simEnd-time.Minute))
			}
			t.Logf("while it lasts %.2f attempts are made of a request", w.amplification(brownFrom, brownFrom+brownFor))
			if broken := promise(w); (broken == "") != kept {
				t.Errorf("kept: %v, want %v: %s", broken == "", kept, broken)
			}
		})
	}
	none := engine.BreakerSpec{}
	f("recovers from a brown-out", brown, production, none, recovers, true)
	f("recovers with a breaker, too", brown, production, window, recovers, true)
	f("amplifies an outage little", outage, production, none, amplifiesLittle, true)
	f("without it a brown-out lasts", brown, off, none, recovers, false)
	f("without it an outage is amplified", outage, off, none, amplifiesLittle, false)
	nameless = true
	f("so it is where replays aren't known", outage, production, none, amplifiesLittle, false)
}
