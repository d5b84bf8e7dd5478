package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

func TestCallsEndAsTheirStorySays(t *testing.T) {
	t.Parallel()
	overloaded := engine.Verdict{Class: engine.ClassProviderTransient}
	limited := func(d time.Duration) engine.Verdict {
		return engine.Verdict{Class: engine.ClassRateLimited, RetryAfter: engine.WaitOf(d)}
	}
	exhausting := engine.Decision{Gates: engine.Gates{
		FailureClass: engine.GatePass, ResponsePhase: engine.GatePass, Idempotency: engine.GatePass, AttemptBudget: engine.GateStop,
	}}
	cool := func(d engine.Decision, k engine.EffectKind) engine.Decision {
		d.Effects = []engine.Effect{{Kind: k, For: time.Minute}}
		return d
	}
	delayed := func(d engine.Decision, by time.Duration) engine.Decision {
		d.Delay = engine.WaitOf(by)
		return d
	}
	unsafe := engine.Request{Idempotency: engine.Idempotency{Effects: engine.EffectsPossible}}
	for _, c := range []struct {
		name string
		play play
		want string
	}{
		{"success", play{outcomes: []enginetest.Outcome{good}}, "a@0s success"},
		{"fallback", play{outcomes: []enginetest.Outcome{failing(503), good}, decisions: []engine.Decision{fallback}, verdict: overloaded}, "a@0s b@1s success"},
		{"retry with half of the base", play{outcomes: []enginetest.Outcome{failing(503), good}, decisions: []engine.Decision{retry}, verdict: overloaded}, "a@0s a/spare@1.1s success"},
		{"retry waits for Retry-After", play{outcomes: []enginetest.Outcome{failing(429), good}, decisions: []engine.Decision{retry}, verdict: limited(7 * time.Second)}, "a@0s a/spare@8s success"},
		{"a policy can't retry before Retry-After", play{outcomes: []enginetest.Outcome{failing(429), good}, decisions: []engine.Decision{delayed(retry, time.Second)}, verdict: limited(7 * time.Second)}, "a@0s a/spare@8s success [retry_after]"},
		{"Retry-After beyond the deadline", play{outcomes: []enginetest.Outcome{failing(429), good}, decisions: []engine.Decision{retry}, verdict: limited(time.Hour)}, "a@0s exhausted 429 fourgate_exhausted [retry_after]"},
		{"fallback needs no Retry-After", play{outcomes: []enginetest.Outcome{failing(429), good}, decisions: []engine.Decision{fallback}, verdict: limited(time.Hour)}, "a@0s b@1s success"},
		{"policy stops", play{outcomes: []enginetest.Outcome{failing(400)}, decisions: []engine.Decision{{}}}, "a@0s policy_stop"},
		{"only the budget gate stops", play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{exhausting}, verdict: overloaded}, "a@0s exhausted 503 fourgate_exhausted"},
		{"attempts are hard", play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{fallback, delayed(retry, 0)}, verdict: overloaded}, "a@0s b@1s b/spare!@2s exhausted 503 fourgate_exhausted [budget]"},
		{"per_route is hard", play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{delayed(retry, 0)}, verdict: overloaded}, "a@0s a/spare@1s exhausted 503 fourgate_exhausted [budget]"},
		{"no useful time is left", play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{delayed(fallback, 58*time.Second)}, verdict: overloaded}, "a@0s exhausted 503 fourgate_exhausted [budget]"},
		{"the deadline ends a silent upstream", play{outcomes: []enginetest.Outcome{silent}, decisions: []engine.Decision{fallback}}, "a@0s exhausted 504 fourgate_deadline [budget]"},
		{"a caller's hint shortens the deadline", play{outcomes: []enginetest.Outcome{silent}, decisions: []engine.Decision{exhausting}, request: engine.Request{TimeLimit: engine.WaitOf(5 * time.Second)}}, "a@0s exhausted 504 fourgate_deadline"},
		{"a hint below the useful time", play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{fallback}, verdict: overloaded, request: engine.Request{TimeLimit: engine.WaitOf(time.Second)}}, "a@0s exhausted 504 fourgate_deadline [budget]"},
		{"an SDK's retries count", play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{fallback}, verdict: overloaded, request: engine.Request{SDKRetry: 2}}, "a!@0s exhausted 503 fourgate_exhausted [budget]"},
		{"the policy picks a channel", play{outcomes: []enginetest.Outcome{failing(503), good}, decisions: []engine.Decision{{Action: engine.Fallback, Channel: "c"}}, verdict: overloaded}, "a@0s c@1s success"},
		{"a channel outside the chain", play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{{Action: engine.Fallback, Channel: "z"}}, verdict: overloaded}, "a@0s exhausted 503 fourgate_exhausted [eligible]"},
		{"substitution was not declared", play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{{Action: engine.Substitute}}, verdict: overloaded}, "a@0s policy_stop [contract]"},
		{"another model is never passed on", play{outcomes: []enginetest.Outcome{{Status: 200, Model: "other"}, good}, decisions: []engine.Decision{fallback}}, "a@0s b@0s success"},
		{"another model, and the policy stops", play{outcomes: []enginetest.Outcome{{Status: 200, Model: "other"}}, decisions: []engine.Decision{{}}}, "a@0s policy_stop 502 contract_violation"},
		{"a refused connection may be replayed unsafe or not", play{outcomes: []enginetest.Outcome{refused, good}, decisions: []engine.Decision{fallback}, request: unsafe}, "a@0s b@0s success"},
		{"a cut may not", play{outcomes: []enginetest.Outcome{{Failure: &engine.Evidence{NetKind: engine.NetConnReset, NetOp: engine.OpReadHeaders}}}, decisions: []engine.Decision{fallback}, request: unsafe}, "a@0s policy_stop 502 upstream_network [effects]"},
		{"a cooled key gives way to the spare one", play{outcomes: []enginetest.Outcome{failing(401), good}, decisions: []engine.Decision{cool(delayed(retry, 0), engine.EffectCoolKey)}, verdict: engine.Verdict{Class: engine.ClassKeyFault}}, "a@0s a/spare@1s success"},
		{"a quarantined channel is not retried", play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{cool(retry, engine.EffectQuarantineChannel)}, verdict: overloaded}, "a@0s exhausted 503 fourgate_exhausted [eligible]"},
		{"an evicted model is not retried", play{outcomes: []enginetest.Outcome{failing(404)}, decisions: []engine.Decision{cool(retry, engine.EffectEvictModel)}}, "a@0s exhausted 503 fourgate_exhausted [eligible]"},
		{"the caller goes before headers", play{outcomes: []enginetest.Outcome{silent}, leaves: 3 * time.Second}, "a@0s cancelled"},
		{"the caller goes in backoff", play{outcomes: []enginetest.Outcome{failing(429)}, decisions: []engine.Decision{retry}, verdict: limited(9 * time.Second), leaves: 3 * time.Second}, "a@0s cancelled [cancelled]"},
		{"the caller goes mid-stream", play{outcomes: []enginetest.Outcome{{Status: 200, Relays: time.Minute}}, leaves: 3 * time.Second}, "a@0s cancelled"},
		{"a cut after output is never replayed", play{outcomes: []enginetest.Outcome{{Status: 200, Broken: &engine.Evidence{NetKind: engine.NetUnexpectedEOF}}}, decisions: []engine.Decision{fallback}}, "a@0s partial [committed]"},
		{"an error event after output keeps its cause", play{outcomes: []enginetest.Outcome{{Status: 200, Broken: &engine.Evidence{Transport: engine.TransportSSE, Frames: [][]byte{[]byte("data: {}\n\n")}}}}, decisions: []engine.Decision{fallback}, verdict: overloaded}, "a@0s partial [committed]"},
		{"a redirect is not passed on", play{outcomes: []enginetest.Outcome{failing(307)}, decisions: []engine.Decision{{}}}, "a@0s policy_stop 502 upstream_redirect"},
		{"a refusal is a success", play{outcomes: []enginetest.Outcome{failing(200)}, decisions: []engine.Decision{{}}, verdict: engine.Verdict{Class: engine.ClassRefusal}}, "a@0s success"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := story(c.play.run(t, catalog(t, spec(3)))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestRetryBudgetEndsAnOutage(t *testing.T) {
	t.Parallel()
	s := spec(2)
	s.RetryBudget = engine.RetryBudgetSpec{Ratio: 0.1, Cap: 3}
	p := play{
		outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{fallback, {}},
		verdict: engine.Verdict{Class: engine.ClassProviderTransient}, standing: engine.NewStanding(),
	}
	c, extra := catalog(t, s), 0
	for range 10 {
		extra += len(p.run(t, c).Sent) - 1
	}
	if extra != 3 {
		t.Errorf("ten failing requests made %d extra attempts; the budget holds 3", extra)
	}
}

func TestBreakers(t *testing.T) {
	t.Parallel()
	counted := engine.Decision{Action: engine.Fallback, Effects: []engine.Effect{{Kind: engine.EffectCountFailure}}}
	bad := []enginetest.Outcome{failing(503), good}
	f := func(t *testing.T, b engine.BreakerSpec, steps []string) {
		t.Helper()
		s := spec(2)
		s.Groups[0].Breaker = b
		c := catalog(t, s)
		p := play{decisions: []engine.Decision{counted}, verdict: engine.Verdict{Class: engine.ClassProviderTransient}, standing: engine.NewStanding()}
		for i, step := range steps {
			var do, want string
			if _, err := fmt.Sscan(step, &do, &want); err != nil {
				t.Fatal(err)
			}
			if d, err := time.ParseDuration(do); err == nil {
				p.now = p.now.Add(d)
				do = want
				want = step[len(step)-1:]
			}
			p.outcomes = []enginetest.Outcome{good}
			if do == "bad" {
				p.outcomes = bad
			}
			if tr := p.run(t, c); tr.Sent[0].Send.Channel.Name() != want {
				t.Fatalf("step %d %q: the request began on channel %s", i+1, step, tr.Sent[0].Send.Channel.Name())
			}
		}
	}
	t.Run("window", func(t *testing.T) {
		t.Parallel()
		f(t, engine.BreakerSpec{Mode: engine.BreakerWindow, Failures: 3, Window: 5 * time.Minute, OpenFor: time.Minute},
			[]string{"bad a", "ok a", "bad a", "bad a", "ok b", "57s ok b", "2s ok a", "bad a", "bad a", "ok a", "6m bad a", "bad a", "ok a"})
	})
	t.Run("consecutive", func(t *testing.T) {
		t.Parallel()
		f(t, engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 2, OpenFor: 30 * time.Second, HalfOpenProbes: 2},
			[]string{"bad a", "ok a", "bad a", "bad a", "ok b", "40s bad a", "ok b", "40s ok a", "ok a", "bad a", "ok a"})
	})
}

func TestAnswersFromTheContractsModel(t *testing.T) {
	t.Parallel()
	s := spec(1)
	s.Groups[0].Models = []string{"gpt-4o", "claude-3-5-sonnet"}
	s.Groups[0].Channels[0].SendAs = map[string]string{"gpt-4o": "prod-4o"}
	s.Groups[0].Channels[0].Serves = "gpt-4o"
	s.Groups[0].Channels[0].AnswersAs = []string{"gpt-4o-eu"}
	if c := catalog(t, s).Groups()[0].Channels()[0]; c.Accepts("claude-3-5-sonnet", "gpt-4o-eu") {
		t.Error("answers_as counts for a model that serves doesn't name")
	}
	ch := catalog(t, s).Groups()[0].Channels()[0]
	for answered, want := range map[string]bool{
		"": true, "gpt-4o": true, "gpt-4o-2024-08-06": true, "gpt-4o-20240806": true, "prod-4o": true, "gpt-4o-eu": true,
		"gpt-4o-mini": false, "gpt-4o-mini-2024-07-18": false, "gpt-4": false, "gpt-4o-2024-13-06": false, "gpt-4o-20240806x": false,
		"gpt-4o-1234": false, "GPT-4o": false, "claude-3-5-sonnet": false, "gpt-4o-2024-08-6": false, "gpt-4o-202-40806": false,
	} {
		if got := ch.Accepts("gpt-4o", answered); got != want {
			t.Errorf("an answer from %q: accepted is %v, want %v", answered, got, want)
		}
	}
}

// probing is a catalog whose breakers open at the first failure and close after one good
// probe, with channel a's open time over.
func probing(t *testing.T, change func(*engine.Spec)) (*engine.Catalog, *play) {
	t.Helper()
	s := spec(2)
	s.Groups[0].Breaker = engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Minute, HalfOpenProbes: 1}
	if change != nil {
		change(&s)
	}
	c := catalog(t, s)
	p := &play{
		outcomes: []enginetest.Outcome{failing(503), good}, verdict: engine.Verdict{Class: engine.ClassProviderTransient}, standing: engine.NewStanding(),
		decisions: []engine.Decision{{Action: engine.Fallback, Effects: []engine.Effect{{Kind: engine.EffectCountFailure}}}},
	}
	p.run(t, c)
	p.now = p.now.Add(2 * time.Minute)
	return c, p
}

func TestProbesAreGivenBack(t *testing.T) {
	t.Parallel()
	first := func(t *testing.T, c *engine.Catalog, p *play) string {
		t.Helper()
		p.outcomes = []enginetest.Outcome{good}
		return p.run(t, c).Sent[0].Send.Channel.Name()
	}
	t.Run("by a caller that leaves", func(t *testing.T) {
		t.Parallel()
		c, p := probing(t, nil)
		p.outcomes, p.leaves = []enginetest.Outcome{silent}, time.Second
		p.run(t, c)
		p.leaves = -1
		if got := first(t, c, p); got != "a" {
			t.Errorf("the next request began on %s: the probe was lost with its caller", got)
		}
	})
	t.Run("by a failure that counts for nothing", func(t *testing.T) {
		t.Parallel()
		c, p := probing(t, nil)
		p.outcomes, p.decisions = []enginetest.Outcome{failing(400)}, []engine.Decision{{}}
		p.run(t, c)
		if got := first(t, c, p); got != "a" {
			t.Errorf("the next request began on %s", got)
		}
	})
	t.Run("by an attempt that can't be paid", func(t *testing.T) {
		t.Parallel()
		s := spec(2)
		s.RetryBudget = engine.RetryBudgetSpec{Cap: 1}
		s.Groups[0].Breaker = engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Minute, HalfOpenProbes: 1}
		c := catalog(t, s)
		counted := engine.Decision{Effects: []engine.Effect{{Kind: engine.EffectCountFailure}}}
		p := &play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{fallback, counted}, standing: engine.NewStanding()}
		p.run(t, c) // the one token is spent, and b is open
		p.now = p.now.Add(2 * time.Minute)
		p.decisions = []engine.Decision{fallback}
		tr := p.run(t, c)
		if got := story(tr); got != "a/spare@0s exhausted 503 fourgate_exhausted [retry_budget]" {
			t.Fatal(got)
		}
		if got := tr.Finish.Reply.Message; got != `the retry budget has no token left for model "m" after 1 failed attempt` {
			t.Error(got)
		}
		caller, _ := c.Caller("")
		_, outs, _ := c.Explain(p.now, p.standing, &engine.Request{Caller: caller, Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}}, half{})
		if len(outs) != 0 {
			t.Errorf("channel %s is out: %s", outs[0].Channel.Name(), outs[0].Why)
		}
	})
	t.Run("at commit, not at the end of a long stream", func(t *testing.T) {
		t.Parallel()
		c, p := probing(t, nil)
		now, req := p.now, &engine.Request{ID: "long", Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}, Arrived: p.now}
		req.Caller, _ = c.Caller("")
		chain, _ := c.Route(now, p.standing, req, half{})
		call, _ := engine.Begin(now, req, chain, p.standing, half{})
		call.Step(now, &engine.Held{Attempt: 1, Status: 200, Model: "m"})
		if got := first(t, c, p); got != "a" {
			t.Errorf("while the stream runs, the next request began on %s", got)
		}
	})
}

func TestTimeoutsCostTwice(t *testing.T) {
	t.Parallel()
	s := spec(2)
	s.RetryBudget = engine.RetryBudgetSpec{Cap: 3}
	late := enginetest.Outcome{Failure: &engine.Evidence{NetKind: engine.NetHeaderTimeout, NetOp: engine.OpReadHeaders}}
	p := play{
		outcomes: []enginetest.Outcome{late}, decisions: []engine.Decision{fallback, {}}, verdict: engine.Verdict{Class: engine.ClassProviderTransient},
		standing: engine.NewStanding(),
	}
	c, extra := catalog(t, s), 0
	for range 5 {
		extra += len(p.run(t, c).Sent) - 1
	}
	if extra != 1 {
		t.Errorf("three tokens paid %d extra attempts after timeouts, want 1", extra)
	}
}

func TestOnlyFirstAttemptsEarn(t *testing.T) {
	t.Parallel()
	s := spec(2)
	s.RetryBudget = engine.RetryBudgetSpec{Ratio: 1, Cap: 2}
	c := catalog(t, s)
	p := play{
		outcomes: []enginetest.Outcome{failing(503), good}, decisions: []engine.Decision{fallback},
		verdict: engine.Verdict{Class: engine.ClassProviderTransient}, standing: engine.NewStanding(),
	}
	extra := 0
	for range 6 { // each that is paid succeeds on its second attempt
		extra += len(p.run(t, c).Sent) - 1
	}
	p.request.SDKRetry = 1 // a replay earns nothing either
	p.outcomes = []enginetest.Outcome{good}
	p.run(t, c)
	p.request.SDKRetry = 0
	p.outcomes = []enginetest.Outcome{failing(503), good}
	if extra += len(p.run(t, c).Sent) - 1; extra != 2 {
		t.Errorf("two tokens paid %d extra attempts, so something earned that shouldn't", extra)
	}
}

func TestHopelessWaitsEndAtOnce(t *testing.T) {
	t.Parallel()
	evict := engine.Decision{
		Action: engine.Retry, Delay: engine.WaitOf(10 * time.Second),
		Effects: []engine.Effect{{Kind: engine.EffectEvictModel, For: time.Hour}},
	}
	p := play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{evict}, verdict: engine.Verdict{Class: engine.ClassProviderTransient}}
	tr := p.run(t, catalog(t, spec(1)))
	if took := tr.Ended.Sub(tr.Request.Arrived); took != time.Second {
		t.Errorf("the caller waited %v for an attempt that could never be made", took)
	}
}

// TestLateWakersStartNothing has a driver that sleeps past the last useful moment.
func TestLateWakersStartNothing(t *testing.T) {
	t.Parallel()
	c := catalog(t, spec(2))
	w := &enginetest.World{
		Now: start, Catalog: c, Standing: engine.NewStanding(), Rand: half{}, LeavesAfter: -1,
		Upstream: func(*engine.Send) enginetest.Outcome { return failing(503) },
		Classify: func(*engine.Evidence) engine.Verdict { return engine.Verdict{Class: engine.ClassProviderTransient} },
		Decide: func(*engine.Question) engine.Decision {
			return engine.Decision{Action: engine.Fallback, Delay: engine.WaitOf(time.Second)}
		},
		Oversleeps: func() time.Duration { return 57 * time.Second },
	}
	req := &engine.Request{ID: "r", Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}, Idempotency: engine.Idempotency{ReplaySafe: true, Effects: engine.EffectsNone}}
	req.Caller, _ = c.Caller("")
	tr, err := w.Run(req)
	if got := story(tr); err != nil || got != "a@0s exhausted 504 fourgate_deadline [budget]" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestLastAttemptKnowsTheChain(t *testing.T) {
	t.Parallel()
	s := spec(2)
	s.Groups[0].Budget.PerRoute = 1
	p := play{outcomes: []enginetest.Outcome{failing(503)}, decisions: []engine.Decision{fallback}, verdict: engine.Verdict{Class: engine.ClassProviderTransient}}
	if got, want := story(p.run(t, catalog(t, s))), "a@0s b!@1s exhausted 503 fourgate_exhausted [eligible]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCallersOwnDeadlineBlamesNobody(t *testing.T) {
	t.Parallel()
	s := spec(1)
	s.Groups[0].Breaker = engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Hour}
	c := catalog(t, s)
	p := play{
		outcomes: []enginetest.Outcome{silent}, verdict: engine.Verdict{Class: engine.ClassProviderTransient, Scope: engine.ScopeChannel}, standing: engine.NewStanding(),
		decisions: []engine.Decision{{Effects: []engine.Effect{{Kind: engine.EffectCountFailure}}}},
		request:   engine.Request{TimeLimit: engine.WaitOf(5 * time.Second)},
	}
	p.run(t, c)
	p.outcomes, p.request = []enginetest.Outcome{good}, engine.Request{}
	if got := story(p.run(t, c)); got != "a/spare@0s success" {
		t.Errorf("after a caller's own deadline: %s", got)
	}
}

func TestFallbackGroupsKeepTheirRate(t *testing.T) {
	t.Parallel()
	s := spec(1)
	second := s.Groups[0]
	second.Name, second.RPM = "h", 1
	s.Groups = append(s.Groups, second)
	p := play{
		outcomes: []enginetest.Outcome{failing(503), good}, decisions: []engine.Decision{fallback},
		verdict: engine.Verdict{Class: engine.ClassProviderTransient}, standing: engine.NewStanding(),
	}
	c := catalog(t, s)
	calls := 0
	for range 5 {
		p.now = start
		calls += len(p.run(t, c).Sent) - 1
	}
	if calls != 1 {
		t.Errorf("a fallback group of one request a minute was called %d times", calls)
	}
}
