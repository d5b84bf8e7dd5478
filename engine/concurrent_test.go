package engine_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// nobody takes facts from many goroutines and keeps none.
type nobody struct{}

func (nobody) Share(engine.Fact) {}

// TestAStandingIsSharedByMany has requests of two catalogs, a sharer, a prober and an
// administrator at work at once; the race detector is the judge, and nothing may be lost
// for good.
func TestAStandingIsSharedByMany(t *testing.T) {
	t.Parallel()
	spec := smart(engine.StrategyWeighted)
	for i := range spec.Groups {
		spec.Groups[i].RPM = 1_000_000
		spec.Groups[i].Breaker = engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Second, HalfOpenProbes: 1}
		spec.Groups[i].HealthCheck.Interval = time.Second
	}
	catalogs := []*engine.Catalog{catalog(t, spec), catalog(t, spec)}
	s := engine.NewStanding()
	s.ShareWith(nobody{})
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 26))
			for i := range 300 {
				c := catalogs[r.IntN(2)]
				now := start.Add(time.Duration(i) * 100 * time.Millisecond)
				ch := c.Groups()[r.IntN(2)].Channels()[r.IntN(2)]
				switch worker {
				case 0:
					s.Learn(now, lies(r, []string{c.Providers()[0].Keys()[0].Print()}))
					s.LearnRate("group g", r.IntN(10), now.Add(time.Second))
					s.Spent(now, func(string, int) {})
					if r.IntN(20) == 0 {
						s.Forget()
					}
				case 1:
					s.Disable(ch, now.Add(50*time.Millisecond))
					s.List(now)
					s.Reset(now, engine.Fact{Channel: ch.Name()})
				case 2:
					for _, open := range s.OpenChannels(now, c) {
						s.ProbePassed(now, open)
					}
					c.Available(now, s, c.Callers()[0])
					s.Report(now, ch)
				default:
					req := &engine.Request{ID: "r", Contract: chat, Caller: c.Callers()[0], Arrived: now}
					req.BodyHash[0] = byte(1 + r.IntN(5))
					chain, refusal := c.Route(now, s, req, r)
					if refusal != nil {
						continue
					}
					call, ins := engine.Begin(now, req, chain, s, r)
					if _, ok := ins.(*engine.Send); !ok {
						continue
					}
					if r.IntN(2) == 0 {
						call.Step(now, &engine.Held{Attempt: 1, Status: 200, Model: "m"})
						call.Step(now, &engine.Ended{Attempt: 1})
						continue
					}
					call.Step(now, &engine.Failed{Attempt: 1, Evidence: &engine.Evidence{Transport: engine.TransportHTTP, Status: 503}})
					call.Step(now, &engine.Classified{Attempt: 1, Verdict: engine.Verdict{Class: engine.ClassProviderTransient}})
					call.Step(now, &engine.Decided{Attempt: 1, Decision: engine.Decision{Effects: []engine.Effect{
						{Kind: engine.EffectKind(1 + r.IntN(4)), For: time.Second},
					}}})
				}
			}
		})
	}
	wg.Wait()
	later := start.Add(60 * 24 * time.Hour)
	if _, refusal := catalogs[1].Route(later, s, asks(catalogs[1]), half{}); refusal != nil {
		t.Errorf("long after all of it: %s; %s", refusal.Message, fmt.Sprint(s.List(later)))
	}
}
