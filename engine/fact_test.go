package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

// relay hands what one standing learns to another.
type relay struct {
	to  *engine.Standing
	log []engine.Fact
}

func (r *relay) Share(f engine.Fact) {
	r.log = append(r.log, f)
	if r.to != nil {
		r.to.Learn(start, f)
	}
}

// shared runs one failing request on a first instance and returns what a second one,
// which is told of it, would do, and what it was told.
func shared(t *testing.T, s engine.Spec, effects ...engine.Effect) (*engine.Catalog, *engine.Standing, *engine.Standing, *relay) {
	t.Helper()
	c := catalog(t, s)
	here, there := engine.NewStanding(), engine.NewStanding()
	there.Adopt(c)
	r := &relay{to: there}
	here.ShareWith(r)
	p := play{
		outcomes: []enginetest.Outcome{failing(401)}, verdict: engine.Verdict{Class: engine.ClassKeyFault, Scope: engine.ScopeKey}, standing: here,
		decisions: []engine.Decision{{Effects: effects}},
	}
	p.run(t, c)
	return c, here, there, r
}

func TestWhatOneInstanceLearnsShapesTheChainsOfOthers(t *testing.T) {
	t.Parallel()
	f := func(kind engine.EffectKind, want string) {
		t.Helper()
		s := spec(2)
		s.Groups[0].Breaker = engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Minute}
		for i := range s.Providers {
			s.Providers[i].Keys = s.Providers[i].Keys[:1]
		}
		c, here, there, r := shared(t, s, engine.Effect{Kind: kind, For: time.Hour})
		_, outs, _ := c.Explain(start, there, asks(c), half{})
		got := ""
		for _, o := range outs {
			got += fmt.Sprintf("%s: %s %v", o.Channel.Name(), o.Why, o.Abroad)
		}
		if got != want || len(r.log) != 1 {
			t.Errorf("%s: the other instance has out %q, want %q; told %+v", kind, got, want, r.log)
		}
		if strings.Contains(fmt.Sprintf("%+v", r.log), "secret") {
			t.Errorf("told a secret: %+v", r.log)
		}
		if lifted := here.Reset(start, engine.Fact{}); len(lifted) != 1 || lifted[0].Abroad {
			t.Errorf("%s: reset lifted %+v", kind, lifted)
		}
		if list := there.List(start); len(list) != 0 {
			t.Errorf("%s: after a reset here the other instance still has %+v", kind, list)
		}
	}
	f(engine.EffectCoolKey, "a: no usable key true")
	f(engine.EffectQuarantineChannel, "a: quarantined true")
	f(engine.EffectEvictModel, "a: model evicted true")
	f(engine.EffectCountFailure, "a: breaker open true")
}

func TestAnotherSecretIsAnotherKey(t *testing.T) {
	t.Parallel()
	s := spec(1)
	s.Providers[0].Keys = s.Providers[0].Keys[:1]
	_, _, _, r := shared(t, s, engine.Effect{Kind: engine.EffectCoolKey, For: time.Hour})
	s.Providers[0].Keys = []engine.KeySpec{{Name: "main", Secret: engine.NewSecret("another")}}
	third := engine.NewStanding()
	third.Adopt(catalog(t, s))
	if third.Learn(start, r.log[0]) {
		t.Error("a key cools for what was told of another secret")
	}
}

func TestBreakersTellThatTheyHaveClosed(t *testing.T) {
	t.Parallel()
	w := newCrew(t, 1, engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Minute, HalfOpenProbes: 1})
	r := &relay{}
	w.s.ShareWith(r)
	w.sends(0, false)
	w.now = w.now.Add(time.Minute)
	w.sends(0, true)
	if len(r.log) != 2 || r.log[0].Lifted || !r.log[1].Lifted || r.log[1].Kind != engine.FactBreakerOpen || r.log[1].Channel != "a" {
		t.Errorf("told %+v", r.log)
	}
}

// TestOthersWaitWhileABreakerIsProbed: their own ones are closed, so that all of them would
// send everything at once when the open time is over.
func TestOthersWaitWhileABreakerIsProbed(t *testing.T) {
	t.Parallel()
	f := func(name string, probes int, openFor, tried time.Duration, good bool, want map[time.Duration]bool) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCrew(t, 1, engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: openFor, HalfOpenProbes: probes})
			there := engine.NewStanding()
			there.Adopt(w.catalog)
			w.s.ShareWith(&relay{to: there})
			w.sends(0, false)
			if tried > 0 {
				w.now = start.Add(tried)
				w.sends(0, good)
			}
			for at, out := range want {
				late := engine.NewStanding() // has heard all of it again, as after a loss of the backend's memory
				late.Adopt(w.catalog)
				if at >= tried {
					for _, fact := range w.s.Told(start.Add(at)) {
						late.Learn(start.Add(at), fact)
					}
					if got := len(late.List(start.Add(at))) > 0; got != out && at < openFor {
						t.Errorf("after %v an instance that was told all is out: %v, want %v", at, got, out)
					}
				}
				if got := len(there.List(start.Add(at))) > 0; got != out {
					t.Errorf("after %v another instance leaves it out: %v, want %v", at, got, out)
				}
			}
		})
	}
	f("without probes", 0, time.Minute, 0, false, map[time.Duration]bool{59 * time.Second: true, time.Minute: false})
	f("nobody probes", 1, time.Minute, 0, false, map[time.Duration]bool{69 * time.Second: true, 70 * time.Second: false})
	f("nobody probes for a short time", 1, 2*time.Second, 0, false, map[time.Duration]bool{3 * time.Second: true, 4 * time.Second: false})
	f("a good probe", 1, time.Minute, 61*time.Second, true, map[time.Duration]bool{61 * time.Second: false})
	f("a bad probe", 1, time.Minute, 61*time.Second, false, map[time.Duration]bool{71 * time.Second: true, 130 * time.Second: true, 131 * time.Second: false})
}

// TestWhoHearsLateOfABreakerWaitsForItsProbes, too, though for no more than ten seconds.
func TestWhoHearsLateOfABreakerWaitsForItsProbes(t *testing.T) {
	t.Parallel()
	w := newCrew(t, 1, engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Minute, HalfOpenProbes: 1})
	w.sends(0, false)
	for _, at := range []time.Duration{time.Minute, time.Hour} {
		now := start.Add(at)
		told := w.s.Told(now)
		want := []engine.Fact{{Kind: engine.FactBreakerOpen, Group: "g", Channel: "a", Until: now.Add(10 * time.Second)}}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("after %v: %s", at, diff)
		}
	}
	w.now = start.Add(time.Hour)
	w.sends(0, true)
	if told := w.s.Told(w.now); len(told) > 0 {
		t.Errorf("after a good probe: %+v", told)
	}
}

// lies draws facts of any kind about names that are known or not.
func lies(r *rand.Rand, prints []string) engine.Fact {
	from := func(names ...string) string { return names[r.IntN(len(names))] }
	return engine.Fact{
		Kind: engine.FactKind(r.IntN(8)), Group: from("g", "g", "h", "nobody", ""), Channel: from("a", "b", "c", "d", "nobody"),
		Model: from("m", "m", "n", ""), Provider: from("pa", "pb", "nobody"), Key: from("main", "spare", "nobody"), KeyPrint: from(prints...),
		Until:  start.Add(time.Duration(r.Int64N(1 << 62))),
		Lifted: r.IntN(10) == 0,
	}
}

// TestLiesCannotEmptyAPool floods a standing with everything that others could say.
func TestLiesCannotEmptyAPool(t *testing.T) {
	t.Parallel()
	barred := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 23))
		s := smart(strategies[r.IntN(len(strategies))])
		s.Callers[0].Routing = engine.Routing(r.IntN(2))
		for g := range s.Groups {
			s.Groups[g].RPM = 1000
			for i := range s.Groups[g].Channels {
				s.Groups[g].Channels[i].Cost = engine.Cost{Given: true, Input: r.Float64(), Output: r.Float64()}
			}
		}
		c, st := catalog(t, s), engine.NewStanding()
		st.Adopt(c)
		prints := []string{"", "zz"}
		for _, p := range c.Providers() {
			for _, k := range p.Keys() {
				prints = append(prints, k.Print())
			}
		}
		for range 200 {
			st.Learn(start, lies(r, prints))
		}
		_, outs, _ := c.Explain(start, st, asks(c), r)
		barred += len(outs)
		req := asks(c)
		chain, refusal := c.Route(start, st, req, r)
		if refusal != nil {
			t.Fatalf("seed %d: what others say refuses a request: %s", seed, refusal.Message)
		}
		if _, ins := engine.Begin(start, req, chain, st, half{}); fmt.Sprintf("%T", ins) != "*engine.Send" {
			t.Fatalf("seed %d: what others say keeps an attempt from being made", seed)
		}
		if got := c.Available(start, st, c.Callers()[0]); len(got) != 1 {
			t.Fatalf("seed %d: what others say takes models off the list: %v", seed, got)
		}
		if n := len(st.List(start)); n > 4*3+4 {
			t.Fatalf("seed %d: %d facts are kept about four channels and four keys", seed, n)
		}
		for _, a := range st.List(start) {
			if !a.Abroad || a.Until.After(start.Add(31*24*time.Hour)) {
				t.Fatalf("seed %d: kept %+v", seed, a)
			}
		}
		st.Forget()
		if list := st.List(start); len(list) != 0 {
			t.Fatalf("seed %d: not forgotten: %+v", seed, list)
		}
	}
	if barred == 0 {
		t.Error("nothing was ever believed, so nothing was proved")
	}
}

// TestLocalKnowledgeStays has others lift and prolong what was seen here.
func TestLocalKnowledgeStays(t *testing.T) {
	t.Parallel()
	s := spec(1)
	c := catalog(t, s)
	st := engine.NewStanding()
	p := play{
		outcomes: []enginetest.Outcome{failing(503)}, standing: st,
		decisions: []engine.Decision{{Effects: []engine.Effect{{Kind: engine.EffectQuarantineChannel, For: time.Minute}}}},
	}
	p.run(t, c)
	f := engine.Fact{Kind: engine.FactChannelQuarantined, Group: "g", Channel: "a", Lifted: true}
	st.Learn(start, f)
	if _, refusal := c.Route(start, st, asks(c), half{}); refusal == nil {
		t.Error("another instance lifted what was seen here")
	}
	f.Lifted, f.Until = false, start.Add(time.Hour)
	st.Learn(start, f)
	if _, refusal := c.Route(start.Add(2*time.Minute), st, asks(c), half{}); refusal != nil {
		t.Errorf("another instance prolonged what was seen here: %s", refusal.Message)
	}
}

// TestForeignCoolingPrefersAnotherKey keeps a channel with a spare key in the chain.
func TestForeignCoolingPrefersAnotherKey(t *testing.T) {
	t.Parallel()
	s := spec(1)
	s.Providers[0].Keys[1].Secret = engine.NewSecret("spare")
	c, _, there, _ := shared(t, s, engine.Effect{Kind: engine.EffectCoolKey, For: time.Hour})
	for range 3 {
		req := asks(c)
		chain, refusal := c.Route(start, there, req, half{})
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		if _, ins := engine.Begin(start, req, chain, there, half{}); ins.(*engine.Send).Key.Name() != "spare" {
			t.Error("the key that cools elsewhere was taken while another is free")
		}
	}
}

func TestHandsListLiftAndDisable(t *testing.T) {
	t.Parallel()
	w := newCrew(t, 2, engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 2, OpenFor: time.Minute, HalfOpenProbes: 1})
	w.sends(0, false)
	w.sends(0, false) // open for x alone
	b := w.catalog.Groups()[0].Channels()[1]
	if a := w.s.Disable(b, start.Add(time.Hour)); a.Kind != engine.FactChannelDisabled || a.Channel != "b" {
		t.Errorf("disabled: %+v", a)
	}
	list := func(now time.Time) string {
		var got []string
		for _, a := range w.s.List(now) {
			got = append(got, fmt.Sprintf("%s %s/%s %s %v", a.Kind, a.Group, a.Channel, a.Caller, a.HalfOpen))
		}
		return strings.Join(got, ", ")
	}
	if got, want := list(start), "breaker_open g/a x false, channel_disabled g/b  false"; got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
	if got, want := list(start.Add(2*time.Minute)), "breaker_open g/a x true, channel_disabled g/b  false"; got != want {
		t.Errorf("later listed %s, want %s", got, want)
	}
	if got := w.sends(0, true); got != "nobody" {
		t.Errorf("with one channel open and one disabled a request began on %s", got)
	}
	if got := w.s.Reset(start, engine.Fact{Kind: engine.FactBreakerOpen, Channel: "b"}); len(got) != 0 {
		t.Errorf("lifted what wasn't asked for: %+v", got)
	}
	if got := w.s.Reset(start, engine.Fact{Kind: engine.FactBreakerOpen}); len(got) != 1 {
		t.Errorf("lifted %+v", got)
	}
	if got := w.sends(0, true); got != "a" {
		t.Errorf("after the reset a request began on %s", got)
	}
	if r := w.s.Report(start, b); r.Bar != engine.BarDisabled || r.Until.IsZero() {
		t.Errorf("the disabled channel: %+v", r)
	}
	if r := w.s.Report(start.Add(time.Hour), b); r.Bar != engine.BarNone {
		t.Errorf("an hour later: %+v", r)
	}
}

func TestEvictedModelsLeaveTheList(t *testing.T) {
	t.Parallel()
	s := spec(2)
	s.Groups[0].Models = []string{"m", "n"}
	s.Groups[0].Endpoints = append(s.Groups[0].Endpoints, engine.OpenAIResponses)
	c, st := catalog(t, s), engine.NewStanding()
	available := func() string {
		var got []string
		for _, w := range c.Available(start, st, c.Callers()[0]) {
			got = append(got, w.Model+" "+w.Endpoint.String())
		}
		return strings.Join(got, ", ")
	}
	const all = "m openai.chat, m openai.responses, n openai.chat, n openai.responses"
	if got := available(); got != all {
		t.Errorf("got %s", got)
	}
	p := play{
		outcomes: []enginetest.Outcome{failing(404)}, standing: st,
		decisions: []engine.Decision{{Action: engine.Fallback, Effects: []engine.Effect{{Kind: engine.EffectEvictModel, For: time.Hour}}}},
	}
	p.run(t, c)
	if got, want := available(), "n openai.chat, n openai.responses"; got != want {
		t.Errorf("with m gone from both channels: got %s, want %s", got, want)
	}
	gone := st.Evicted(start)
	if len(gone) != 2 || gone[0].Model != "m" || gone[0].Channel != "a" || gone[1].Channel != "b" {
		t.Errorf("evicted: %+v", gone)
	}
	st.Reset(start, engine.Fact{Kind: engine.FactModelEvicted, Channel: "b"})
	if got := available(); got != all {
		t.Errorf("with one back: got %s", got)
	}
}

// FuzzLearn takes any fact, as from a shared state that somebody else can write: nothing
// may make it panic, grow, or leave a request nobody.
func FuzzLearn(f *testing.F) {
	f.Add(uint8(engine.FactKeyCooled), "pa", "main", "00112233445566778899aabbccddeeff", int64(1)<<60, false)
	f.Add(uint8(engine.FactModelEvicted), "g", "a", "m", int64(time.Hour), false)
	f.Add(uint8(engine.FactBreakerOpen), "g", "a", "", int64(-1)<<62, true)
	f.Add(uint8(200), "", "", "zz", int64(0), false)
	spec := spec(1)
	f.Fuzz(func(t *testing.T, kind uint8, a, b, c string, until int64, lifted bool) {
		catalog, s := begin(t, spec)
		fact := engine.Fact{
			Kind: engine.FactKind(kind), Group: a, Provider: a, Channel: b, Key: b, Model: c, KeyPrint: c,
			Until: start.Add(time.Duration(until)), Lifted: lifted,
		}
		s.Learn(start, fact)
		s.Learn(start, fact)
		if list := s.List(start); len(list) > 1 {
			t.Errorf("one fact is kept as %+v", list)
		}
		if _, refusal := catalog.Route(start, s, asks(catalog), half{}); refusal != nil {
			t.Errorf("%+v refuses a request: %s", fact, refusal.Message)
		}
	})
}
