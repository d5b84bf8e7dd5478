package state

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/engine/enginetest"
)

// waitLimit bounds every wait for a condition. Only a failing test reaches it.
const waitLimit = 20 * time.Second

// eventually waits for a condition that another process brings about.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(waitLimit); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it didn't come about within %v that %s", waitLimit, what)
		}
	}
}

// logged collects log lines.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

const channelsOfTests = 3

// specOfTests has one group g of channels a, b, c, each with a provider of two keys.
func specOfTests() engine.Spec {
	s := engine.Spec{RetryBudget: engine.RetryBudgetSpec{Ratio: 0.1, Floor: 0.1, Cap: 100}}
	g := engine.GroupSpec{
		Name: "g", Models: []string{"m:1/x y"}, Endpoints: []engine.Endpoint{engine.OpenAIChat}, RPM: 1000,
		Budget:  engine.BudgetSpec{Attempts: 3, PerRoute: 2, Deadline: time.Minute, MinUseful: 2 * time.Second, BackoffBase: 200 * time.Millisecond, BackoffMax: 5 * time.Second},
		Breaker: engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 1, OpenFor: time.Hour, HalfOpenProbes: 1},
	}
	for i := range channelsOfTests {
		name := string(rune('a' + i))
		s.Providers = append(s.Providers, engine.ProviderSpec{
			Name: "p" + name, BaseURL: "https://" + name + ".example/v1", Auth: engine.AuthBearer,
			Keys:   []engine.KeySpec{{Name: "main", Secret: engine.NewSecret("x" + name)}},
			Limits: engine.Limits{Connect: time.Second, Headers: 20 * time.Second, Gate: time.Second, Idle: time.Second},
		})
		g.Channels = append(g.Channels, engine.ChannelSpec{Name: name, Provider: "p" + name})
	}
	s.Groups = []engine.GroupSpec{g}
	return s
}

const modelOfTests = "m:1/x y"

// instance is one process as far as state is shared: a standing with its catalog.
type instance struct {
	t        testing.TB
	catalog  *engine.Catalog
	standing *engine.Standing
	shared   *Shared
	registry *prometheus.Registry
	log      *logged
	ahead    atomic.Int64 // of the machine's clock
}

func (i *instance) now() time.Time { return time.Now().Add(time.Duration(i.ahead.Load())) }

func newInstanceOfTests(t testing.TB, url string) *instance {
	t.Helper()
	return newTrustingInstance(t, url, nil)
}

func newTrustingInstance(t testing.TB, url string, roots *x509.CertPool) *instance {
	t.Helper()
	c, problems := engine.NewCatalog(specOfTests())
	if c == nil {
		t.Fatalf("the specification is refused: %+v", problems)
	}
	i := &instance{t: t, catalog: c, standing: engine.NewStanding(), registry: prometheus.NewRegistry(), log: new(logged)}
	i.standing.Adopt(c)
	shared, err := Open(Options{
		URL: engine.NewSecret(url), Prefix: "fg:", Instance: "test", Breakers: true, Standing: i.standing, Clock: i.now, RootCAs: roots,
		Logger: slog.New(slog.NewTextHandler(i.log, nil)), Registry: i.registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	shared.Adopted(map[string]int{"group g": 1000, "group other": 1000})
	i.shared = shared
	i.standing.ShareWith(shared)
	t.Cleanup(func() {
		shared.Close()
		if t.Failed() {
			_, line := shared.Health()
			t.Logf("%s\n%s", line, i.log)
		}
	})
	return i
}

// up waits until the instance shares.
func (i *instance) up() *instance {
	i.t.Helper()
	eventually(i.t, "the backend is up", i.shared.Up)
	return i
}

// down waits until the instance knows that it doesn't.
func (i *instance) down() *instance {
	i.t.Helper()
	eventually(i.t, "the backend is down", func() bool { return !i.shared.Up() })
	return i
}

// fails runs one request whose first attempt fails, with these effects.
func (i *instance) fails(effects ...engine.Effect) {
	i.t.Helper()
	w := &enginetest.World{
		Now: time.Now(), Catalog: i.catalog, Standing: i.standing, Rand: rand.New(rand.NewPCG(1, 2)), LeavesAfter: -1,
		Upstream: func(*engine.Send) enginetest.Outcome {
			return enginetest.Outcome{Failure: &engine.Evidence{Transport: engine.TransportHTTP, Status: 401, Phase: engine.BeforeOutput}}
		},
		Classify: func(*engine.Evidence) engine.Verdict {
			return engine.Verdict{Class: engine.ClassKeyFault, Scope: engine.ScopeKey}
		},
		Decide: func(*engine.Question) engine.Decision { return engine.Decision{Effects: effects} },
	}
	if _, err := w.Run(i.request()); err != nil {
		i.t.Fatal(err)
	}
}

// request asks for the model of tests.
func (i *instance) request() *engine.Request {
	caller, _ := i.catalog.Caller("")
	return &engine.Request{
		ID: "r", Caller: caller, Contract: engine.Contract{Model: modelOfTests, Endpoint: engine.OpenAIChat}, Arrived: time.Now(),
		Idempotency: engine.Idempotency{ReplaySafe: true, Effects: engine.EffectsNone},
	}
}

// admits routes n requests and says how many have got a chain.
func (i *instance) admits(n int) int {
	admitted := 0
	for range n {
		if _, refusal := i.catalog.Route(time.Now(), i.standing, i.request(), rand.New(rand.NewPCG(1, 2))); refusal == nil {
			admitted++
		}
	}
	return admitted
}

// aside lists what is set aside: "kind names", with a star for what others have told.
func (i *instance) aside() string {
	var list []string
	for _, a := range i.standing.List(time.Now()) {
		star := ""
		if a.Abroad {
			star = "*"
		}
		list = append(list, fmt.Sprintf("%s %s%s%s%s%s", a.Kind, a.Group, a.Provider, a.Channel, a.Key, star))
	}
	return strings.Join(list, ", ")
}

// has waits until just this is set aside.
func (i *instance) has(want string) {
	i.t.Helper()
	eventually(i.t, fmt.Sprintf("%q is set aside (it is %q)", want, i.aside()), func() bool { return i.aside() == want })
}

// counted is the value of a counter, summed over what the labels leave open.
func (i *instance) counted(name string, labels ...string) float64 {
	families, err := i.registry.Gather()
	if err != nil {
		i.t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			text := m.String()
			fits := true
			for _, l := range labels {
				fits = fits && strings.Contains(text, fmt.Sprintf("%q", l))
			}
			if fits {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
