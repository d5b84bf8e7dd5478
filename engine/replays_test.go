package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

// client sends bodies over a channel that works or doesn't.
type client struct {
	*crew
	status int // 0: works
	broken bool
	leaves time.Duration
}

func newClient(t *testing.T, tokens float64) *client {
	t.Helper()
	s := spec(1)
	s.RetryBudget = engine.RetryBudgetSpec{Cap: tokens}
	s.Groups[0].Budget.Attempts, s.Groups[0].Budget.PerRoute = 1, 1
	return &client{crew: &crew{t: t, catalog: catalog(t, s), s: engine.NewStanding(), now: start}, leaves: -1}
}

// send tells how a request with the body ended, how many attempts it had, and which
// number of retries a policy saw.
func (c *client) send(body byte, header int) string {
	c.t.Helper()
	w := &enginetest.World{
		Now: c.now, Catalog: c.catalog, Standing: c.s, Rand: half{}, LeavesAfter: c.leaves,
		Upstream: func(*engine.Send) enginetest.Outcome {
			o := enginetest.Outcome{Takes: time.Second, Status: 200, Model: "m"}
			if c.broken {
				o.Broken = &engine.Evidence{NetKind: engine.NetConnReset}
			} else if c.status != 0 {
				o.Failure = &engine.Evidence{Transport: engine.TransportHTTP, Status: c.status, Phase: engine.BeforeOutput}
			}
			return o
		},
		Classify: func(*engine.Evidence) engine.Verdict {
			if c.status == 422 {
				return engine.Verdict{Class: engine.ClassBadRequest, Scope: engine.ScopeRequest}
			}
			return engine.Verdict{Class: engine.ClassProviderTransient}
		},
		Decide: func(*engine.Question) engine.Decision { return engine.Decision{} },
	}
	req := &engine.Request{ID: "r", Contract: chat, Caller: c.catalog.Callers()[0], SDKRetry: header}
	req.BodyHash[0] = body
	tr, err := w.Run(req)
	if err != nil || tr.Refusal != nil {
		c.t.Fatalf("%v, %+v", err, tr.Refusal)
	}
	c.now = w.Now
	n, source := tr.Record.SDKRetry()
	return fmt.Sprintf("%d:%s %d %s%d", tr.Record.Status(), tr.Finish.Terminal, len(tr.Sent), source, n)
}

func TestReplaysPayAndAreServedWhileTheyCan(t *testing.T) {
	t.Parallel()
	c := newClient(t, 2)
	step := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	c.status = 529
	step("a first failure", c.send(1, 0), "529:policy_stop 1 0")
	step("its replay", c.send(1, 0), "529:policy_stop 1 inferred1")
	step("another body", c.send(2, 0), "529:policy_stop 1 0")
	step("the second replay", c.send(1, 0), "529:policy_stop 1 inferred2")
	step("with no token left", c.send(1, 0), "529:exhausted 0 inferred3")
	step("a new request needs none", c.send(3, 0), "529:policy_stop 1 0")
	step("what an SDK says costs attempts and no token", c.send(4, 5), "529:policy_stop 1 header5")
	c.status = 0
	step("after a recovery, still without a token", c.send(1, 0), "529:exhausted 0 inferred3")
	c.now = c.now.Add(time.Minute)
	step("after the old deadline", c.send(1, 0), "200:success 1 0")
	step("and after that success", c.send(1, 0), "200:success 1 0")
}

func TestADeliberateSecondTryIsServed(t *testing.T) {
	t.Parallel()
	c := newClient(t, 100)
	c.status = 503
	c.send(1, 0)
	c.status = 0
	if got, want := c.send(1, 0), "200:success 1 inferred1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := c.send(1, 0), "200:success 1 0"; got != want {
		t.Errorf("after its success: got %s, want %s", got, want)
	}
}

func TestReplaysAreOfWhatAnSDKRepeats(t *testing.T) {
	t.Parallel()
	f := func(what string, set func(c *client), want string) {
		t.Helper()
		c := newClient(t, 10)
		set(c)
		c.send(1, 0)
		c.status, c.broken, c.leaves = 0, false, -1
		if got := c.send(1, 0); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	const replay, fresh = "200:success 1 inferred1", "200:success 1 0"
	for status, want := range map[int]string{400: fresh, 401: fresh, 404: fresh, 413: fresh, 408: replay, 409: replay, 422: fresh, 429: replay, 500: replay, 503: replay, 529: replay} {
		f(fmt.Sprint(status), func(c *client) { c.status = status }, want)
	}
	f("a cut after output", func(c *client) { c.broken = true }, replay)
	f("a caller that gave up waiting", func(c *client) { c.leaves = time.Millisecond }, replay)
}

func TestReplaysOfOthersAreNone(t *testing.T) {
	t.Parallel()
	s := spec(1)
	s.Groups[0].Endpoints = append(s.Groups[0].Endpoints, engine.OpenAIResponses)
	w := newCrew(t, 2, engine.BreakerSpec{})
	req := &engine.Request{ID: "r", Contract: chat, Caller: w.catalog.Callers()[0], Arrived: start}
	req.BodyHash[31] = 1
	chain, _ := w.catalog.Route(start, w.s, req, half{})
	call, _ := engine.Begin(start, req, chain, w.s, half{})
	if w.s.Replays(start) {
		t.Error("a request that hasn't failed is remembered")
	}
	call.Step(start, &engine.Gone{})
	if !w.s.Replays(start) || w.s.Replays(start.Add(time.Hour)) {
		t.Error("a failure is remembered for its deadline and no longer")
	}
	seen := func(change func(r *engine.Request)) int {
		r := &engine.Request{ID: "r", Contract: chat, Caller: req.Caller, BodyHash: req.BodyHash}
		change(r)
		w.s.Recognise(start, r)
		return r.SDKRetry
	}
	if n := seen(func(*engine.Request) {}); n != 1 {
		t.Errorf("the same request counts as %d", n)
	}
	for what, change := range map[string]func(r *engine.Request){
		"caller":   func(r *engine.Request) { r.Caller = w.catalog.Callers()[1] },
		"endpoint": func(r *engine.Request) { r.Contract.Endpoint = engine.OpenAIResponses },
		"body":     func(r *engine.Request) { r.BodyHash[0]++ },
		"no hash":  func(r *engine.Request) { r.BodyHash = [32]byte{} },
	} {
		if n := seen(change); n != 0 {
			t.Errorf("another %s counts as %d", what, n)
		}
	}
}

// TestReplaysStayWithinTheBudget sends any mix of bodies over a dead and a living channel,
// and compares with a twin that remembers everything.
func TestReplaysStayWithinTheBudget(t *testing.T) {
	t.Parallel()
	type memory struct {
		until time.Time
		count int
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 24))
		tokens := float64(r.IntN(6))
		c := newClient(t, tokens)
		twin := map[byte]memory{}
		for step := range 60 {
			c.status = []int{0, 503}[r.IntN(2)]
			body := byte(1 + r.IntN(4))
			was, attempts := twin[body], 1
			replay := c.now.Before(was.until)
			retries := "0"
			if replay {
				retries = fmt.Sprintf("inferred%d", was.count)
				if tokens < 1 {
					attempts = 0
				} else {
					tokens--
				}
			}
			want := fmt.Sprintf("503:exhausted 0 %s", retries)
			arrived := c.now
			switch {
			case attempts == 0:
			case c.status == 0:
				want = fmt.Sprintf("200:success 1 %s", retries)
				delete(twin, body)
			default:
				want = fmt.Sprintf("503:policy_stop 1 %s", retries)
				if !replay {
					was.count = 0
				}
				twin[body] = memory{arrived.Add(time.Minute), was.count + 1}
			}
			if got := c.send(body, 0); got != want {
				t.Fatalf("seed %d step %d: got %s, want %s", seed, step, got, want)
			}
			c.now = c.now.Add(time.Duration(r.IntN(20)) * time.Second)
		}
	}
}
