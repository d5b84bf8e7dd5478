package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/policies"
	"github.com/fourgate-dev/fourgate/policies/bundle"
	"github.com/fourgate-dev/fourgate/proxy"
	"github.com/fourgate-dev/fourgate/proxy/admin"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
	"github.com/fourgate-dev/fourgate/proxy/probe"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
)

const (
	// maxIdleUpstream is how many idle connections to one upstream are kept: enough
	// for a burst to find them open, few enough for a default limit of 1024 files.
	maxIdleUpstream = 256
	// idleUpstreamFor is below the idle limits of the providers' edges, 60 s and more.
	idleUpstreamFor = 50 * time.Second
	// closeWait bounds what closing the ledger may take.
	closeWait = 5 * time.Second
)

// app is the running proxy with what belongs to it.
type app struct {
	config   *hcl.Config
	server   *proxy.Server
	client   *upstream.Client
	store    *ledger.Store // nil without a ledger
	registry *prometheus.Registry
	logger   *slog.Logger
	now      func() time.Time
	prober   *probe.Prober
	probing  *upstream.Client // the prober's
	inForce  atomic.Pointer[inForce]
	// certificate is shown to callers; nil without TLS. A reload may renew it.
	certificate atomic.Pointer[tls.Certificate]
	compiler    *compiler
	standing    *engine.Standing
	shared      *sharedState // nil unless instances share what they know
	shadows     *policies.Shadows

	turn    sync.Mutex // of whoever replaces what serves: a reload, or a new bundle
	serving *loaded
	source  *bundleSource // of the bundle; nil without one
	bundle  bundle.Bundle // in force, if there is a source
}

// chance is the process's source of random numbers; it is safe for many goroutines.
type chance struct{}

func (chance) Float64() float64 { return rand.Float64() }

// noLedger keeps nothing.
type noLedger struct{}

func (noLedger) Opened(*engine.Record) {}
func (noLedger) Closed(*engine.Record) {}

// newApp opens the ledger and makes the proxy. Whoever gets it calls run or close.
func newApp(c *compiler, l *loaded, now func() time.Time, logger *slog.Logger, observer proxy.Observer) (*app, error) {
	if now == nil {
		now = time.Now
	}
	a := &app{config: l.config, registry: prometheus.NewRegistry(), logger: logger, now: now, compiler: c}
	a.put(l, "start")
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var keeper engine.Ledger = noLedger{}
	var sink policies.Sink // nil only counts
	if c := l.config.Ledger; c.Store == "sqlite" {
		durability, err := ledger.ParseDurability(c.Durability)
		if err != nil {
			return nil, err
		}
		a.store, err = ledger.Open(ledger.Options{
			Path: c.Path, Durability: durability, Retention: c.Retention, Logger: logger, Registry: a.registry,
		})
		if err != nil {
			return nil, err
		}
		keeper, sink = a.store, a.store
	}
	a.standing = engine.NewStanding()
	a.standing.ShareWith(&standingLog{logger: logger, now: now})
	a.shadows = policies.NewShadows(sink)
	a.registry.MustRegister(a.shadows)
	a.client = upstream.New(upstream.Options{MaxIdle: maxIdleUpstream, IdleFor: idleUpstreamFor})
	settings := proxy.Settings{MaxBody: int(l.config.Server.MaxBody), DebugHeaders: l.config.Server.DebugHeaders}
	if c := l.config.Server.Certificate; c != nil {
		a.certificate.Store(c)
		settings.TLS = a.callersTLS()
	}
	var err error
	a.server, err = proxy.New(
		settings,
		a.partsOf(l),
		proxy.Around{
			Standing: a.standing, StateDown: a.stateDown, Ledger: keeper, Client: a.client, Clock: now, Rand: chance{},
			Logger: logger, Registry: a.registry, Observer: observer,
		},
	)
	if err == nil {
		err = a.newProber()
	}
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// partsOf are the parts of a configuration with its candidates beside the policies that
// decide.
func (a *app) partsOf(l *loaded) proxy.Parts {
	parts := l.parts
	parts.GroupPolicies = maps.Clone(parts.GroupPolicies)
	for group, candidate := range l.candidates {
		if group == "" {
			parts.Policy = a.shadows.Beside(parts.Policy, candidate)
		} else {
			parts.GroupPolicies[group] = a.shadows.Beside(parts.GroupPolicies[group], candidate)
		}
	}
	return parts
}

// callersTLS is how TLS is spoken with callers.
func (a *app) callersTLS() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.certificate.Load(), nil },
	}
}

// scheme is that of the callers' listener.
func (a *app) scheme() string {
	if a.certificate.Load() != nil {
		return "https"
	}
	return "http"
}

// renew shows another certificate to callers from the next handshake on.
func (a *app) renew(c *tls.Certificate) {
	if (c == nil) != (a.certificate.Load() == nil) {
		a.logger.Warn("server.tls comes and goes at a restart only: the listener goes on as it was")
		return
	}
	a.certificate.Store(c)
}

// listen opens an address with an error that says what to do.
func listen(address, attribute string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; free the address or change %s", address, err, attribute)
	}
	return ln, nil
}

// run serves until ctx is done, then lets requests end within the drain timeout. It
// closes everything.
func (a *app) run(ctx context.Context, ln, adminLn net.Listener) error {
	failed := make(chan error, 2)
	go func() { failed <- a.server.Serve(ln) }()
	var adminServer *http.Server
	if adminLn != nil {
		adminServer = admin.New(a.adminParts())
		go func() {
			if err := adminServer.Serve(adminLn); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("cannot serve the admin listener: %w", err)
			}
		}()
	}
	looking, stopLooking := context.WithCancel(ctx)
	looked := a.probeOpen(looking)
	var err error
	select {
	case <-ctx.Done():
		a.logger.Info("draining", "timeout", a.config.Server.DrainTimeout)
	case err = <-failed:
	}
	stopLooking()
	looked()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.config.Server.DrainTimeout)
	defer cancel()
	err = errors.Join(err, a.server.Shutdown(drain))
	if adminServer != nil {
		err = errors.Join(err, adminServer.Close())
	}
	// Records that a sick disk has cost were logged and counted; they don't make a drain a
	// failure.
	if closing := a.close(); closing != nil {
		a.logger.Error("ledger not closed in order", "error", closing)
	}
	return err
}

// close frees what newApp opened. The proxy must have ended.
func (a *app) close() error {
	a.unshare()
	a.client.Close()
	if a.probing != nil {
		a.probing.Close()
	}
	a.shadows.Close()
	if a.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	return a.store.Close(ctx)
}
