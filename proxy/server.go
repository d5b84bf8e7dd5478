package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
	"github.com/fourgate-dev/fourgate/proxy/watch"
)

// Settings are what a reload doesn't change.
type Settings struct {
	// MaxBody bounds a request's body in bytes; 0 means [DefaultMaxBody].
	MaxBody int
	// DebugHeaders adds X-Fourgate-Channel, -Strategy, -Attempts, -Chain and -Out to answers.
	DebugHeaders bool
	// ReadTimeout bounds the reading of one request, head and body, from its first
	// byte; 0 means [DefaultReadTimeout].
	ReadTimeout time.Duration
	// IdleTimeout closes a caller's connection that waits for its next request; 0
	// means [DefaultIdleTimeout].
	IdleTimeout time.Duration
	// CallerStall drops a caller that takes none of the bytes that are written to it for
	// so long; 0 means [DefaultCallerStall]. Until then its stream pushes back on the
	// upstream's, which is read no further.
	CallerStall time.Duration
	// TLS is spoken with callers; nil means plain HTTP.
	TLS *tls.Config
}

const (
	// DefaultMaxBody holds the largest body that OpenAI and Anthropic take with
	// images in it.
	DefaultMaxBody = 32 << 20
	// DefaultReadTimeout lets a body of 32 MiB in over a line of 2.5 Mbit/s.
	DefaultReadTimeout = 120 * time.Second
	// DefaultIdleTimeout is above the pool timeouts of the SDKs' HTTP clients, so that
	// the client closes first and no request meets a closing connection.
	DefaultIdleTimeout = 180 * time.Second
	// DefaultCallerStall is far longer than a client that lives needs to take 64 kB, and
	// short enough that an upstream which bills by the minute isn't held for nobody.
	DefaultCallerStall = 60 * time.Second

	// headBuffer bounds a caller's head, as Node.js does. It is held for as long as the
	// connection, so it is most of what a silent stream costs.
	headBuffer = 16 << 10
)

// Parts are what a reload replaces: one snapshot. A request sees one from start to end.
type Parts struct {
	Catalog *engine.Catalog
	// Policy decides for all groups without one of their own. A policy that has a method
	// HasRoute or Revision is asked by it whether it has an entry point before the first
	// attempt, and how it is told from others.
	Policy engine.Policy
	// GroupPolicies are groups' own policies, by the group's name. That of the primary
	// group decides for a whole request.
	GroupPolicies map[string]engine.Policy
	// Classifiers by their name in the configuration. A provider whose classifier is
	// missing gets verdicts of the class unknown.
	Classifiers map[string]engine.Classifier
}

// Observer sees the record of a request after each step of its call and at its end,
// from the goroutine that serves it. It must be fast and must not keep the record.
type Observer interface {
	Observe(r *engine.Record)
}

// Around is what a server works with for its whole life. All of it must be safe for
// concurrent use.
type Around struct {
	Standing *engine.Standing
	Ledger   engine.Ledger
	Client   *upstream.Client
	Clock    func() time.Time // nil means [time.Now]
	Rand     engine.Rand
	Logger   *slog.Logger
	Registry prometheus.Registerer
	Observer Observer // may be nil
	// StateDown says that requests are refused because a state that instances share can't
	// be used. It is asked once a request and must not block; nil means never.
	StateDown func() bool
}

// Server is the proxy. Make one with [New].
type Server struct {
	settings  Settings
	around    Around
	metrics   *metrics
	snapshot  atomic.Pointer[snapshot]
	running   running
	draining  atomic.Bool
	policyLog faultLog
	http      fasthttp.Server
	watch     *watch.Set
	// exchanges are those of requests that were answered whole. A stream's is left to
	// the garbage collector.
	exchanges sync.Pool
	buffers   buffers
}

// New makes a server that is ready to serve parts.
func New(settings Settings, parts Parts, around Around) (*Server, error) {
	if settings.MaxBody == 0 {
		settings.MaxBody = DefaultMaxBody
	}
	if settings.ReadTimeout == 0 {
		settings.ReadTimeout = DefaultReadTimeout
	}
	if settings.IdleTimeout == 0 {
		settings.IdleTimeout = DefaultIdleTimeout
	}
	if settings.CallerStall == 0 {
		settings.CallerStall = DefaultCallerStall
	}
	if around.Clock == nil {
		around.Clock = time.Now
	}
	s := &Server{settings: settings, around: around}
	s.exchanges.New = func() any { return new(exchange) }
	var err error
	if s.metrics, err = newMetrics(around.Registry); err != nil {
		return nil, fmt.Errorf("cannot register the proxy's metrics: %w; give each server its own registry", err)
	}
	if err := s.Swap(parts); err != nil {
		return nil, err
	}
	if err := around.Registry.Register(standing{s}); err != nil {
		return nil, fmt.Errorf("cannot register the proxy's metrics: %w; give each server its own registry", err)
	}
	if s.watch, err = watch.New(around.Logger); err != nil {
		return nil, fmt.Errorf("cannot watch callers' connections: %w", err)
	}
	s.http = fasthttp.Server{
		Handler:           s.serve,
		ErrorHandler:      s.refuseUnread,
		ExpectHandler:     s.expect,
		Logger:            quietLog{around.Logger},
		ReadBufferSize:    headBuffer,
		ReadTimeout:       settings.ReadTimeout,
		IdleTimeout:       settings.IdleTimeout,
		StreamRequestBody: true,
		// fasthttp reads up to this much of a body before the handler runs, and forgets
		// the head if that fails. The handler has a limit of its own.
		MaxRequestBodySize:           1,
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		LazyRequestTime:              true,
	}
	return s, nil
}

// Swap replaces the snapshot. Requests in flight end under the one they began with.
// On an error the old one stays.
func (s *Server) Swap(parts Parts) error {
	next, err := newSnapshot(parts)
	if err != nil {
		return err
	}
	s.snapshot.Store(next)
	s.around.Standing.Adopt(parts.Catalog)
	return nil
}

// Catalog returns the catalog that serves new requests now.
func (s *Server) Catalog() *engine.Catalog { return s.snapshot.Load().Catalog }

// Serve accepts callers from ln until [Server.Shutdown]. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	var callers net.Listener = &stallListener{s.watch.Listener(ln), s.settings.CallerStall}
	if s.settings.TLS != nil {
		callers = &secureListener{callers, s.settings.TLS} // above the watch, which needs the socket
	}
	err := s.http.Serve(callers)
	if err != nil && !s.draining.Load() {
		return fmt.Errorf("cannot serve on %s: %w", ln.Addr(), err)
	}
	return nil
}

// Ready says whether the server should be sent requests.
func (s *Server) Ready() bool { return !s.draining.Load() && !s.stateDown() }

// Draining says whether the server is being stopped and refuses new requests.
func (s *Server) Draining() bool { return s.draining.Load() }

// stateDown says that requests are refused for want of a shared state.
func (s *Server) stateDown() bool { return s.around.StateDown != nil && s.around.StateDown() }

// Shutdown stops accepting and lets running requests end until ctx is done; then it
// cancels them, as if their callers had gone, with an error of ours to those callers.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	err := s.http.ShutdownWithContext(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		cut := s.running.cancelAll()
		s.around.Logger.Warn("drain time is over: running requests were cancelled; a longer server.drain_timeout lets them end", "requests", cut)
		s.awaitConnections()
		err = nil
	}
	s.watch.Close()
	return err
}

// cancelGrace is what cancelled requests get to write their last error and their record.
// Nearly all need some milliseconds; on a starved machine the evidence is worth the wait.
// fasthttp has stopped waiting by then, so the connections are counted down here.
const (
	cancelGrace = 5 * time.Second
	cancelPoll  = 2 * time.Millisecond
)

func (s *Server) awaitConnections() {
	tick := time.NewTicker(cancelPoll)
	defer tick.Stop()
	for range cancelGrace / cancelPoll {
		// fasthttp leaves one connection out of the count that it takes for its listener,
		// which is closed: none is open at -1.
		if s.running.empty() && s.http.GetOpenConnectionsCount() < 0 {
			return
		}
		<-tick.C
	}
}

// serve is one request from its head to the last byte that is not streamed.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	x := s.begin(ctx)
	defer x.recoverPanic()
	x.run()
	if x.ctx != nil {
		x.recycle()
	}
}

// run goes from the head to the answer.
func (x *exchange) run() {
	if p := x.frame(); p != nil {
		x.refuse(p)
		return
	}
	if x.endpoint = x.route.endpoint; x.route.place != placeEndpoint {
		x.serveOther(x.route.place)
		return
	}
	if p := x.admit(); p != nil {
		x.refuse(p)
		return
	}
	x.drive()
}

// snapshot is the parts with what is worth computing once.
type snapshot struct {
	Parts
	providers map[*engine.Provider]*provider
	policies  map[*engine.Group]*deciding
	routed    bool // some policy has an entry point before the first attempt
}

// credential is the header field that shows secret in an auth style.
func credential(style engine.Auth, secret engine.Secret) engine.Header {
	switch style {
	case engine.AuthBearer:
		return engine.Header{Name: "Authorization", Value: "Bearer " + secret.Reveal()}
	case engine.AuthXAPIKey:
		return engine.Header{Name: "x-api-key", Value: secret.Reveal()}
	case engine.AuthAPIKey:
		return engine.Header{Name: "api-key", Value: secret.Reveal()}
	case engine.AuthXGoogAPIKey:
		return engine.Header{Name: "x-goog-api-key", Value: secret.Reveal()}
	}
	return engine.Header{}
}

// provider is how a snapshot's provider is reached and its failures are read.
type provider struct {
	target     *upstream.Target
	versioned  bool // its base URL ends in an API version
	classifier engine.Classifier
}

func newSnapshot(parts Parts) (*snapshot, error) {
	next := &snapshot{Parts: parts, providers: make(map[*engine.Provider]*provider)}
	next.policies, next.routed = policiesOf(parts)
	for _, p := range parts.Catalog.Providers() {
		target, err := upstream.NewTarget(p.BaseURL(), p.TLS())
		if err != nil {
			return nil, fmt.Errorf("cannot use provider %q: %w", p.Name(), err)
		}
		next.providers[p] = &provider{
			target:     target,
			versioned:  versioned(p.BaseURL()),
			classifier: parts.Classifiers[p.Classifier()],
		}
	}
	return next, nil
}
