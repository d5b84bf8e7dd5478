package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
)

const (
	model     = "gpt-4o-2024-08-06"
	callerKey = "fg_the_callers_own_key"
	patience  = 10 * time.Second // how long a condition may take to come true
)

// seen is one request as an upstream read it from its socket.
type seen struct {
	method, target string
	header         http.Header
	body           string
}

// provider is a scripted upstream: it answers the n-th request with the n-th script,
// and the last script answers all further ones.
type provider struct {
	url     string
	mu      sync.Mutex
	got     []seen
	scripts []script
	left    chan struct{} // gets a value for each connection that the proxy closed
}

// script writes a response, byte by byte as it likes. Returning false closes the
// connection.
type script func(c net.Conn, n int) bool

func newProvider(t testing.TB, scripts ...script) *provider {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{url: "http://" + ln.Addr().String(), scripts: scripts, left: make(chan struct{}, 100)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() { ln.Close(); running.Wait() })
	return p
}

func (p *provider) serve(c net.Conn) {
	defer c.Close()
	br := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			p.left <- struct{}{}
			return
		}
		body, _ := io.ReadAll(req.Body)
		p.mu.Lock()
		p.got = append(p.got, seen{req.Method, req.RequestURI, req.Header, string(body)})
		n := len(p.got)
		s := p.scripts[min(n, len(p.scripts))-1]
		p.mu.Unlock()
		if !s(c, n) {
			return
		}
	}
}

func (p *provider) requests() []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]seen(nil), p.got...)
}

// setup is a proxy over channels, one for each provider.
type setup struct {
	providers []*provider
	auth      engine.Auth
	sendAs    string
	limits    engine.Limits
	fallback  bool // on_gate of the providers
	onGate    engine.GateChoice
	hold      engine.Hold
	budget    engine.BudgetSpec
	rpm       int
	callers   bool // one
	stranger  bool // and another
	settings  proxy.Settings
	policy    policyFunc
	route     routeFunc // nil has nothing to say before the first attempt
	basePath  string
	observer  proxy.Observer
}

type gateway struct {
	headed   chan struct{} // closed once the next answer's head has come; nil tells nobody
	addr     string
	server   *proxy.Server
	ledger   *ledger
	logs     *lockedBuffer
	registry *prometheus.Registry
	standing *engine.Standing
}

// parts are the snapshot that the setup describes.
func (s setup) parts(t testing.TB) proxy.Parts {
	t.Helper()
	if s.limits == (engine.Limits{}) {
		s.limits = engine.Limits{Connect: 5 * time.Second, Headers: 20 * time.Second, Gate: 20 * time.Second, Idle: 20 * time.Second}
	}
	if s.budget == (engine.BudgetSpec{}) {
		s.budget = engine.BudgetSpec{Attempts: 3, PerRoute: 2, Deadline: 30 * time.Second, MinUseful: time.Millisecond, BackoffBase: time.Millisecond, BackoffMax: time.Millisecond}
	}
	spec := engine.Spec{RetryBudget: engine.RetryBudgetSpec{Ratio: 0.1, Floor: 1e6, Cap: 1e6}}
	group := engine.GroupSpec{
		Name: "g", Models: []string{model}, Endpoints: allEndpoints,
		Budget: s.budget, RPM: s.rpm, Hold: s.hold, OnGate: s.onGate,
	}
	for i, p := range s.providers {
		name := fmt.Sprintf("p%d", i+1)
		ps := engine.ProviderSpec{Name: name, BaseURL: p.url + s.basePath, Classifier: "c", Auth: s.auth, Limits: s.limits, GateFallback: s.fallback}
		if s.auth != engine.AuthNone {
			ps.Keys = []engine.KeySpec{{Name: "main", Secret: engine.NewSecret("sk-upstream-secret")}}
		}
		spec.Providers = append(spec.Providers, ps)
		ch := engine.ChannelSpec{Name: fmt.Sprintf("ch%d", i+1), Provider: name}
		if s.sendAs != "" {
			ch.SendAs, ch.Serves = map[string]string{model: s.sendAs}, model
		}
		group.Channels = append(group.Channels, ch)
	}
	spec.Groups = []engine.GroupSpec{group}
	if s.callers {
		sum := sha256.Sum256([]byte(callerKey))
		spec.Callers = []engine.CallerSpec{{Name: "team-a", KeySHA256: hex.EncodeToString(sum[:]), Groups: []string{"g"}}}
	}
	if s.stranger {
		spec.Callers = append(spec.Callers, engine.CallerSpec{Name: "team-b", KeySHA256: strings.Repeat("b", 64), Groups: []string{"g"}})
	}
	catalog, problems := engine.NewCatalog(spec)
	if catalog == nil {
		t.Fatalf("catalog: %+v", problems)
	}
	if s.policy == nil {
		s.policy = plainPolicy
	}
	var policy engine.Policy = s.policy
	if s.route != nil {
		policy = routing{s.policy, s.route}
	}
	return proxy.Parts{Catalog: catalog, Policy: policy, Classifiers: map[string]engine.Classifier{"c": plainClassifier{}}}
}

func (s setup) start(t testing.TB) *gateway {
	t.Helper()
	g := &gateway{ledger: &ledger{closed: make(chan string, 50)}, logs: &lockedBuffer{}, registry: prometheus.NewRegistry(), standing: engine.NewStanding()}
	client := upstream.New(upstream.Options{MaxIdle: 64, IdleFor: time.Minute})
	server, err := proxy.New(s.settings, s.parts(t), proxy.Around{
		Standing: g.standing, Ledger: g.ledger, Client: client, Rand: chance{},
		Logger: slog.New(slog.NewTextHandler(g.logs, nil)), Registry: g.registry, Observer: s.observer,
	})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.addr, g.server = ln.Addr().String(), server
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(ln); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_ = server.Shutdown(ctx)
		serving.Wait()
		client.Close()
		if logs := g.logs.String(); strings.Contains(logs, "sk-upstream-secret") || strings.Contains(logs, callerKey) {
			t.Error("a secret is in the logs")
		}
	})
	return g
}

// response is what a caller read from its socket.
type response struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

// post sends a request with a caller's usual headers.
func (g *gateway) post(t testing.TB, path, body string, headers ...string) response {
	t.Helper()
	req, err := http.NewRequest("POST", "http://"+g.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return g.do(t, req, headers...)
}

func (g *gateway) do(t testing.TB, req *http.Request, headers ...string) response {
	t.Helper()
	if g.headed != nil {
		defer func() { g.headed = nil }()
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if g.headed != nil {
		close(g.headed)
	}
	b, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(b), err}
}

// raw sends bytes and reads whatever comes until the connection ends.
func (g *gateway) raw(t testing.TB, request string) string {
	t.Helper()
	c := g.dial(t)
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("the connection was not closed: %v after %q", err, b)
	}
	return string(b)
}

func (g *gateway) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// rawPost is a whole request as bytes.
func rawPost(path, body string, headers ...string) string {
	h := ""
	for _, x := range headers {
		h += x + "\r\n"
	}
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", path, h, len(body), body)
}

// ledger keeps each finished record's summary.
type ledger struct {
	mu     sync.Mutex
	opened int
	closed chan string
}

func (l *ledger) Opened(*engine.Record) { l.mu.Lock(); l.opened++; l.mu.Unlock() }

func (l *ledger) Closed(r *engine.Record) {
	if len(l.closed) == cap(l.closed) {
		return // a benchmark, where nobody reads
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d", r.Terminal(), r.Status())
	for _, a := range r.Attempts() {
		fmt.Fprintf(&b, " | %s", a.Channel())
		if a.Failed() {
			fmt.Fprintf(&b, " %s %s", a.Class(), a.Phase())
		}
	}
	l.closed <- b.String()
}

// next waits for the next finished record.
func (l *ledger) next(t testing.TB) string {
	t.Helper()
	select {
	case s := <-l.closed:
		return s
	case <-time.After(patience):
		t.Fatal("no record was closed")
		return ""
	}
}

func await(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
	}
}

type policyFunc func(q *engine.Question) engine.Decision

func (f policyFunc) Decide(q *engine.Question) engine.Decision { return f(q) }

var passAll = engine.Gates{FailureClass: engine.GatePass, ResponsePhase: engine.GatePass, Idempotency: engine.GatePass, AttemptBudget: engine.GatePass}

// plainPolicy falls back while it can, but for what a caller has done itself.
func plainPolicy(q *engine.Question) engine.Decision {
	switch q.Failure.Class() {
	case engine.ClassBadRequest, engine.ClassPartial, engine.ClassUnknown, engine.ClassRefusal:
		return engine.Decision{Action: engine.Abort}
	}
	if len(q.Fallback) > 0 {
		return engine.Decision{Action: engine.Fallback, Gates: passAll}
	}
	g := passAll
	g.AttemptBudget = engine.GateStop
	return engine.Decision{Action: engine.Abort, Gates: g}
}

// plainClassifier goes by the status, or by the word overloaded.
type plainClassifier struct{}

func (plainClassifier) Classify(ev *engine.Evidence) engine.Verdict {
	text := string(ev.Body) + string(bytes.Join(ev.Frames, nil))
	switch {
	case ev.Transport == engine.TransportNetwork, ev.Status >= 500, strings.Contains(text, "overloaded"), ev.NetKind != engine.NetNone:
		return engine.Verdict{Class: engine.ClassProviderTransient, Scope: engine.ScopeChannel}
	case ev.Status == 429:
		return engine.Verdict{Class: engine.ClassRateLimited, Scope: engine.ScopeKey}
	case ev.Status == 401:
		return engine.Verdict{Class: engine.ClassKeyFault, Scope: engine.ScopeKey}
	case ev.Status >= 400:
		return engine.Verdict{Class: engine.ClassBadRequest, Scope: engine.ScopeRequest}
	}
	return engine.Verdict{}
}

type chance struct{}

func (chance) Float64() float64 { return rand.Float64() }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// allEndpoints are served by the group of every [setup]. Read only.
var allEndpoints = []engine.Endpoint{
	engine.OpenAIChat, engine.OpenAIResponses, engine.OpenAICompletions, engine.OpenAIEmbeddings,
	engine.OpenAIImages, engine.OpenAIAudio, engine.AnthropicMessages, engine.GeminiGenerate,
}
