package probe_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
	"github.com/fourgate-dev/fourgate/proxy/probe"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
)

// half is chance that is always in the middle: every interval is as long as written.
type half struct{}

func (half) Float64() float64 { return 0.5 }

const (
	interval = 10 * time.Second
	timeout  = 2 * time.Second
	openFor  = 10 * time.Minute
)

// world is a standing over one group whose channels each have a provider of their own.
type world struct {
	t        *testing.T
	catalog  atomic.Pointer[engine.Catalog]
	standing *engine.Standing
	registry *prometheus.Registry
}

// newWorld has a channel for each provider, by name; spec may change the group.
func newWorld(t *testing.T, providers []engine.ProviderSpec, spec func(g *engine.GroupSpec)) *world {
	t.Helper()
	w := &world{t: t, standing: engine.NewStanding(), registry: prometheus.NewRegistry()}
	w.load(providers, spec)
	return w
}

func (w *world) load(providers []engine.ProviderSpec, spec func(g *engine.GroupSpec)) {
	w.t.Helper()
	g := engine.GroupSpec{
		Name: "g", Models: []string{"m"}, Endpoints: []engine.Endpoint{engine.OpenAIChat},
		Budget:      engine.BudgetSpec{Attempts: 1, PerRoute: 1, Deadline: time.Minute},
		Breaker:     engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: openFor, HalfOpenProbes: 1},
		HealthCheck: engine.HealthCheckSpec{Interval: interval, Timeout: timeout},
	}
	for i := range providers {
		p := &providers[i]
		p.Auth, p.Classifier = engine.AuthBearer, "c"
		p.Keys = []engine.KeySpec{{Name: "main", Secret: engine.NewSecret("hush-hush")}}
		p.Limits = engine.Limits{Connect: time.Second, Headers: time.Second, Gate: time.Second, Idle: time.Second}
		g.Channels = append(g.Channels, engine.ChannelSpec{Name: p.Name, Provider: p.Name})
	}
	if spec != nil {
		spec(&g)
	}
	catalog, problems := engine.NewCatalog(engine.Spec{Providers: providers, Groups: []engine.GroupSpec{g}})
	for _, p := range problems {
		if !p.Warning {
			w.t.Fatalf("%v: %s %s", p.Path, p.Summary, p.Detail)
		}
	}
	w.catalog.Store(catalog)
	w.standing.Adopt(catalog)
}

// failAll opens the breaker of each channel, one failed request after the other.
func (w *world) failAll() {
	w.t.Helper()
	for range w.catalog.Load().Groups()[0].Channels() {
		now := time.Now()
		around := enginetest.World{
			Now: now, Catalog: w.catalog.Load(), Standing: w.standing, Rand: half{}, LeavesAfter: -1,
			Upstream: func(*engine.Send) enginetest.Outcome {
				return enginetest.Outcome{Failure: &engine.Evidence{Transport: engine.TransportNetwork, NetKind: engine.NetConnRefused, NetOp: engine.OpDial, NotStarted: true}}
			},
			Classify: func(*engine.Evidence) engine.Verdict {
				return engine.Verdict{Class: engine.ClassProviderTransient, Scope: engine.ScopeChannel}
			},
			Decide: func(*engine.Question) engine.Decision {
				return engine.Decision{Action: engine.Abort, Effects: []engine.Effect{{Kind: engine.EffectCountFailure}}}
			},
		}
		req := &engine.Request{ID: "r", Caller: w.catalog.Load().Callers()[0], Contract: engine.Contract{Model: "m", Endpoint: engine.OpenAIChat}}
		if _, err := around.Run(req); err != nil {
			w.t.Fatal(err)
		}
	}
}

// run starts a prober that is stopped, and waited for, when the test calls stop.
func (w *world) run(dial func(ctx context.Context, network, addr string) (net.Conn, error)) (stop func()) {
	w.t.Helper()
	client := upstream.New(upstream.Options{Dial: dial})
	p, err := probe.New(probe.Options{
		Standing: w.standing, Catalog: w.catalog.Load, Client: client, Clock: time.Now, Rand: half{}, Registry: w.registry,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
		client.Close()
	}
}

func (w *world) state(channel string) engine.BreakerState {
	for _, ch := range w.catalog.Load().Groups()[0].Channels() {
		if ch.Name() == channel {
			return w.standing.Report(time.Now(), ch).Breaker
		}
	}
	w.t.Fatalf("there is no channel %q", channel)
	return 0
}

// counted are the probes by channel and outcome.
func (w *world) counted() map[string]int {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			got[labels["channel"]+" "+labels["outcome"]] = int(m.GetCounter().GetValue())
		}
	}
	return got
}

// dials counts connections by address and answers as a test says.
type dials struct {
	mu     sync.Mutex
	counts map[string]int
	answer func(addr string) (net.Conn, error)
}

func (d *dials) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	d.mu.Lock()
	if d.counts == nil {
		d.counts = map[string]int{}
	}
	d.counts[addr]++
	d.mu.Unlock()
	if d.answer == nil {
		<-ctx.Done() // nobody is there
		return nil, ctx.Err()
	}
	return d.answer(addr)
}

func (d *dials) of(addr string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[addr]
}

func accepts(string) (net.Conn, error) {
	here, there := net.Pipe()
	go func() {
		_, _ = there.Read(make([]byte, 1)) // until it is closed
		_ = there.Close()
	}()
	return here, nil
}

func one(name, url string) engine.ProviderSpec {
	return engine.ProviderSpec{Name: name, BaseURL: url}
}
