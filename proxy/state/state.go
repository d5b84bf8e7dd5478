package state

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
)

// Options are what [Open] needs. All but RootCAs, Instance, Breakers and Outage must be set.
type Options struct {
	// URL is redis://, rediss://, valkey://, valkeys:// or unix://, with the user and the
	// password in it.
	URL     engine.Secret
	RootCAs *x509.CertPool // trusted for rediss; nil for the system's
	// Prefix begins the name of each key, such as "fg:".
	Prefix string
	// Instance names this process to a reader of the keys, such as by its host. Something
	// random is added to it.
	Instance string
	// Breakers has open breakers shared, too.
	Breakers bool
	// Outage says in the log what it means for requests that the backend is down; empty if
	// the instance goes on with what it knows itself.
	Outage string

	Standing *engine.Standing
	Clock    func() time.Time // the one that the standing's other users have
	Logger   *slog.Logger
	Registry prometheus.Registerer
}

// The times of a connection's life.
const (
	// callTimeout bounds each exchange with the backend. Nobody waits for it; what it
	// bounds is how long a hung backend is taken for a living one.
	callTimeout = time.Second
	// The waits before the first and the later attempts to connect again, with jitter.
	minReconnect = 100 * time.Millisecond
	maxReconnect = 2 * time.Second
	// forgetAfter is how long what others told is believed after they can't be heard any
	// more: it may have been lifted meanwhile. A restart of the backend is shorter.
	forgetAfter = time.Minute
)

// Shared is the state that instances share. It is safe for many goroutines.
type Shared struct {
	options  Options
	address  address
	keys     keyspace
	instance string
	box      *outbox
	metrics  *metrics
	heard    heard // owned by the goroutine of run
	limits   atomic.Pointer[map[string]int]
	adopted  atomic.Bool                    // names may be known by now that weren't when they were heard
	told     atomic.Pointer[map[string]int] // what the standing was told of others' rates

	mu     sync.Mutex
	health health

	stop context.CancelFunc
	done chan struct{}
}

// health is whether the backend can be used.
type health struct {
	up    bool
	since time.Time
	why   string // it is down
	told  bool   // somebody has read a line about it in the log
}

// Open begins to share. A backend that can't be reached is no error: it is tried again
// and again in the background. An error is about the options alone.
func Open(o Options) (*Shared, error) {
	a, err := parseAddress(o.URL.Reveal())
	if err != nil {
		return nil, err
	}
	if err := checkPrefix(o.Prefix); err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Registry)
	if err != nil {
		return nil, err
	}
	a.roots = o.RootCAs
	ctx, stop := context.WithCancel(context.Background())
	s := &Shared{
		options: o, address: a, keys: newKeyspace(o.Prefix), instance: newInstance(o.Instance),
		metrics: m, heard: newHeard(), stop: stop, done: make(chan struct{}),
		health: health{since: o.Clock(), why: "not connected yet"},
	}
	s.box = newOutbox(func() { m.facts.WithLabelValues("dropped", "any").Inc() })
	go s.run(ctx)
	return s, nil
}

// newInstance makes the name of this process, which no other one has.
func newInstance(name string) string {
	const longest = 40
	clean := strings.Map(func(r rune) rune {
		if isNameByte(r) {
			return r
		}
		return '-'
	}, name)
	var random [4]byte
	_, _ = cryptorand.Read(random[:]) // never fails
	return cmp.Or(clean[:min(len(clean), longest)], "fourgate") + "-" + hex.EncodeToString(random[:])
}

// Close ends the connection and waits for its goroutine. What was told stays where it is
// and ends there by itself.
func (s *Shared) Close() {
	s.stop()
	<-s.done
}

// Adopted says that the standing knows the names of another configuration from now on, in
// which each rate admits so many requests a minute, under the names of
// [engine.Standing.Spent]. What was told of those names is learned again. No instance can
// have admitted more than the limit, so what says so is not believed. The map isn't copied.
func (s *Shared) Adopted(rpm map[string]int) {
	s.limits.Store(&rpm)
	s.adopted.Store(true)
}

// Up says whether the backend can be used at the moment.
func (s *Shared) Up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health.up
}

// Health says in a line for people whether the backend can be used, and why not.
func (s *Shared) Health() (up bool, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := s.options.Clock().Sub(s.health.since).Round(time.Second)
	if s.health.up {
		return true, fmt.Sprintf("%s is up for %v", s.address, age)
	}
	return false, fmt.Sprintf("%s is down for %v: %s", s.address, age, s.health.why)
}

// turn notes a change of health, with one line in the log.
func (s *Shared) turn(up bool, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.health
	changed := h.up != up || !h.told
	if h.up != up {
		h.since = s.options.Clock()
	}
	h.up, h.told, h.why = up, true, ""
	if up {
		s.metrics.up.Set(1)
	} else {
		h.why = s.address.clean(why)
		s.metrics.up.Set(0)
	}
	switch {
	case !changed:
	case up:
		s.options.Logger.Info("shared state is up", "backend", s.address.String(), "prefix", s.options.Prefix, "instance", s.instance)
	default:
		s.options.Logger.Warn("shared state is down: "+cmp.Or(s.options.Outage, "this instance goes on with what it knows itself"), "backend", s.address.String(), "error", h.why)
	}
}

// run keeps a connection until ctx is done.
func (s *Shared) run(ctx context.Context) {
	defer close(s.done)
	wait, forgotten := minReconnect, false
	lost := s.options.Clock()
	for {
		served, err := s.session(ctx)
		if ctx.Err() != nil {
			return
		}
		s.metrics.errors.WithLabelValues("connection").Inc()
		s.turn(false, err)
		now := s.options.Clock()
		if served {
			wait, forgotten, lost = minReconnect, false, now
		}
		if !forgotten && now.Sub(lost) > forgetAfter {
			s.options.Standing.Forget()
			s.heard, forgotten = newHeard(), true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait/2 + rand.N(wait/2)):
		}
		wait = min(2*wait, maxReconnect)
	}
}
