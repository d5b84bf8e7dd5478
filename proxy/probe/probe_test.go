package probe_test

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestOpenChannelComesBackEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, []engine.ProviderSpec{one("a", "http://192.0.2.1/v1")}, nil)
		d := &dials{answer: func(string) (net.Conn, error) { return nil, errors.New("connection refused") }}
		stop := w.run(d.dial)
		defer stop()

		time.Sleep(time.Minute)
		if n := d.of("192.0.2.1:80"); n != 0 {
			t.Fatalf("a channel in use was looked at %d times", n)
		}
		w.failAll()
		time.Sleep(interval - time.Second)
		if n := d.of("192.0.2.1:80"); n != 0 {
			t.Fatalf("it was looked at %d times before the interval was over", n)
		}
		time.Sleep(2*interval + 2*time.Second)
		if n, state := d.of("192.0.2.1:80"), w.state("a"); n != 3 || state != engine.BreakerOpen {
			t.Fatalf("after three intervals: %d looks, breaker %v, want 3 and open", n, state)
		}
		d.mu.Lock()
		d.answer = accepts
		d.mu.Unlock()
		time.Sleep(interval + time.Second)
		if state := w.state("a"); state != engine.BreakerHalfOpen {
			t.Fatalf("after a good look the breaker is %v, want half_open", state)
		}
		time.Sleep(time.Minute)
		if n := d.of("192.0.2.1:80"); n != 4 {
			t.Errorf("a channel that isn't open any more was looked at: %d looks in all, want 4", n)
		}
		if diff := cmp.Diff(map[string]int{"a failed": 3, "a passed": 1}, w.counted()); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
	})
}

func TestBreakerWithoutProbesCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, []engine.ProviderSpec{one("a", "http://192.0.2.1")}, func(g *engine.GroupSpec) { g.Breaker.HalfOpenProbes = 0 })
		w.failAll()
		stop := w.run((&dials{answer: accepts}).dial)
		defer stop()
		time.Sleep(interval + time.Second)
		if state := w.state("a"); state != engine.BreakerClosed {
			t.Errorf("after a good look the breaker is %v, want closed", state)
		}
	})
}

func TestGroupWithoutHealthCheckIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, []engine.ProviderSpec{one("a", "http://192.0.2.1")}, func(g *engine.GroupSpec) { g.HealthCheck = engine.HealthCheckSpec{} })
		w.failAll()
		d := &dials{answer: accepts}
		stop := w.run(d.dial)
		defer stop()
		time.Sleep(openFor / 2)
		if n := d.of("192.0.2.1:80"); n != 0 {
			t.Errorf("it was looked at %d times", n)
		}
	})
}

func TestSilentHostsHoldNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const channels = 100
		var providers []engine.ProviderSpec
		for i := range channels {
			providers = append(providers, one(fmt.Sprintf("p%d", i), fmt.Sprintf("http://192.0.2.%d", i)))
		}
		w := newWorld(t, providers, nil)
		w.failAll()
		var now, most atomic.Int64
		stop := w.run(func(ctx context.Context, _, _ string) (net.Conn, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		time.Sleep(5 * interval)
		if n := most.Load(); n < 2 || n > 16 {
			t.Errorf("%d looks ran at a time, want some and at most 16", n)
		}
		seen := 0
		for range w.counted() {
			seen++
		}
		if seen != channels {
			t.Errorf("%d of %d channels were looked at", seen, channels)
		}
		stop() // and returns although looks are under way
		if n := now.Load(); n != 0 {
			t.Errorf("%d looks outlive the prober", n)
		}
	})
}

func TestReloadIsFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, []engine.ProviderSpec{one("a", "http://192.0.2.1")}, nil)
		w.failAll()
		d := &dials{answer: func(string) (net.Conn, error) { return nil, errors.New("connection refused") }}
		stop := w.run(d.dial)
		defer stop()
		time.Sleep(interval + time.Second)
		w.load([]engine.ProviderSpec{one("a", "http://192.0.2.2")}, nil)
		before := d.of("192.0.2.1:80")
		time.Sleep(3 * interval)
		if d.of("192.0.2.1:80") != before || d.of("192.0.2.2:80") == 0 {
			t.Errorf("looks at the old host %d (were %d), at the new one %d", d.of("192.0.2.1:80"), before, d.of("192.0.2.2:80"))
		}
	})
}

// TestOnTheWire looks at real listeners: what a look sends, and what counts as good.
func TestOnTheWire(t *testing.T) {
	t.Parallel()
	var asked atomic.Pointer[http.Request]
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Store(r)
		if r.URL.Path == "/sick" {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		rw.WriteHeader(http.StatusUnauthorized) // a look shows no key
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	f := func(t *testing.T, name, url, path, roots string, want engine.BreakerState) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := one("a", url)
			provider.TLS.CertificatesPEM = roots
			w := newWorld(t, []engine.ProviderSpec{provider}, func(g *engine.GroupSpec) {
				g.HealthCheck = engine.HealthCheckSpec{Interval: time.Millisecond, Timeout: 5 * time.Second, Path: path}
			})
			w.failAll()
			defer w.run(nil)()
			for len(w.counted()) == 0 {
				time.Sleep(time.Millisecond)
			}
			if got := w.state("a"); got != want {
				t.Errorf("breaker %v, want %v", got, want)
			}
		})
	}
	t.Run("all", func(t *testing.T) { // and wait for them
		f(t, "a connection", plain.URL+"/v1", "", "", engine.BreakerHalfOpen)
		f(t, "a connection with TLS", secure.URL+"/v1", "", authority, engine.BreakerHalfOpen)
		f(t, "TLS that nobody vouches for", secure.URL, "", "", engine.BreakerOpen)
		f(t, "an answer, refusing as it is", plain.URL+"/v1", "/v1/models", "", engine.BreakerHalfOpen)
		f(t, "an answer over TLS", secure.URL+"/v1", "/v1/models", authority, engine.BreakerHalfOpen)
		f(t, "a provider in trouble", plain.URL+"/v1", "/sick", "", engine.BreakerOpen)
		f(t, "nobody there", "http://"+closedAddress(t), "", "", engine.BreakerOpen)
	})
	r := asked.Load()
	if r == nil || r.Method != "GET" || r.ContentLength != 0 || !strings.HasPrefix(r.UserAgent(), "fourgate") {
		t.Fatalf("a look asked for %+v", r)
	}
	for name, values := range r.Header {
		if strings.Contains(strings.Join(values, ""), "hush") {
			t.Errorf("a look shows a key in %s", name)
		}
	}
}

func closedAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// TestHostThatAnswersSlowly is a look that ends at its own limit.
func TestHostThatAnswersSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, []engine.ProviderSpec{one("a", "http://192.0.2.1")}, func(g *engine.GroupSpec) { g.HealthCheck.Path = "/up" })
		w.failAll()
		stop := w.run(func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				defer there.Close()
				// It takes the request and says nothing.
				for r := bufio.NewReader(there); ; {
					if _, err := r.ReadString('\n'); err != nil {
						return
					}
				}
			}()
			return here, nil
		})
		defer stop()
		time.Sleep(interval + timeout + time.Second)
		if diff := cmp.Diff(map[string]int{"a failed": 1}, w.counted()); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
	})
}
