package engine_test

import (
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// BenchmarkCall takes a request through route, one good attempt and its end: what the
// engine adds to every request.
func BenchmarkCall(b *testing.B) {
	c, _ := engine.NewCatalog(spec(3))
	s := engine.NewStanding()
	caller, _ := c.Caller("")
	want := engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}
	now := start
	req := &engine.Request{ID: "r", Caller: caller, Contract: want, Arrived: now}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		req.Arrived = now
		chain, refusal := c.Route(now, s, req, half{})
		if refusal != nil {
			b.Fatal(refusal.Message)
		}
		call, _ := engine.Begin(now, req, chain, s, half{})
		call.Step(now, &engine.Held{Attempt: 1, Status: 200, Model: "m"})
		if _, ok := call.Step(now, &engine.Ended{Attempt: 1}).(*engine.Finish); !ok {
			b.Fatal("the call goes on")
		}
	}
}

// BenchmarkRecordJSON writes the record of a request with one failed attempt.
func BenchmarkRecordJSON(b *testing.B) {
	c, _ := engine.NewCatalog(spec(3))
	s := engine.NewStanding()
	caller, _ := c.Caller("")
	want := engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}
	req := &engine.Request{ID: "r", Caller: caller, Contract: want, Arrived: start}
	chain, _ := c.Route(start, s, req, half{})
	call, _ := engine.Begin(start, req, chain, s, half{})
	call.Step(start, &engine.Failed{Attempt: 1, Evidence: &engine.Evidence{Transport: engine.TransportHTTP, Status: 503, Phase: engine.BeforeOutput}})
	call.Step(start, &engine.Classified{Attempt: 1, Verdict: engine.Verdict{Class: engine.ClassProviderTransient}})
	call.Step(start, &engine.Decided{Attempt: 1, Decision: fallback})
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = call.Record().AppendJSON(buf[:0])
	}
}

// BenchmarkNarrow asks about a chain of three channels, and drops one, reorders the
// others and tightens the budget.
func BenchmarkNarrow(b *testing.B) {
	c, _ := engine.NewCatalog(spec(3))
	caller, _ := c.Caller("")
	req := &engine.Request{ID: "r", Caller: caller, Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}, Arrived: start}
	chain, _ := c.Route(start, engine.NewStanding(), req, half{})
	a := engine.RouteAnswer{Picked: true, Channels: []string{"c", "a"}, Attempts: 2}
	b.Run("question", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if q := chain.RouteQuestion(req, start); len(q.Channels) != 3 {
				b.Fatal(q)
			}
		}
	})
	b.Run("answer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, refusal := chain.Narrow(a); refusal != nil {
				b.Fatal(refusal.Message)
			}
		}
	})
}
