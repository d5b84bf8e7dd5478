package state

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/state/redistest"
)

var (
	cool       = engine.Effect{Kind: engine.EffectCoolKey, For: time.Hour}
	quarantine = engine.Effect{Kind: engine.EffectQuarantineChannel, For: time.Hour}
	evict      = engine.Effect{Kind: engine.EffectEvictModel, For: time.Hour}
	count      = engine.Effect{Kind: engine.EffectCountFailure}
)

// TestWhatOneInstanceLearnsAllKnow, by the backend's pushes, whatever it is.
func TestWhatOneInstanceLearnsAllKnow(t *testing.T) {
	t.Parallel()
	f := func(name string, effect engine.Effect, here string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			a, b := newInstanceOfTests(t, server.URL()).up(), newInstanceOfTests(t, server.URL()).up()
			begun := time.Now()
			a.fails(effect)
			a.has(here)
			b.has(here + "*")
			t.Logf("known elsewhere after %v", time.Since(begun))
			// Whoever comes later knows it, too.
			newInstanceOfTests(t, server.URL()).up().has(here + "*")
			a.standing.Reset(time.Now(), engine.Fact{})
			b.has("")
		})
	}
	f("a key cools", cool, "key_cooled pamain")
	f("a channel is quarantined", quarantine, "channel_quarantined ga")
	f("a model is evicted", evict, "model_evicted ga")
	f("a breaker opens", count, "breaker_open ga")
}

// TestAllShareARate with what each has admitted, also one that has ended since.
func TestAllShareARate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := newInstanceOfTests(t, server.URL()).up(), newInstanceOfTests(t, server.URL()).up()
	if got := a.admits(600); got != 600 {
		t.Fatalf("the first instance admits %d of 600 requests", got)
	}
	b.admits(1) // so that the rate is in use there
	eventually(t, "the second instance knows of 600 requests", func() bool { return b.counted("fourgate_state_backend_up") == 1 && b.heardRate("group g") == 600 })
	if got := b.admits(1000); got != 399 {
		t.Errorf("the second instance admits %d more requests, want 399", got)
	}
	a.shared.Close()
	c := newInstanceOfTests(t, server.URL()).up()
	eventually(t, "a third instance admits no more", func() bool { return c.admits(1) == 0 })
}

// heardRate reads the sum as run's goroutine has told it last.
func (i *instance) heardRate(rate string) int {
	sums := i.shared.told.Load()
	if sums == nil {
		return 0
	}
	return (*sums)[rate]
}

// TestABackendThatComesLate is no reason to wait at the start.
func TestABackendThatComesLate(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	a := newInstanceOfTests(t, server.URL())
	a.fails(cool)
	eventually(t, "the log says so", func() bool { return strings.Contains(a.log.String(), "shared state is down") })
	server.Start()
	a.up()
	newInstanceOfTests(t, server.URL()).up().has("key_cooled pamain*")
	if n := strings.Count(a.log.String(), "\n"); n != 2 {
		t.Errorf("%d lines in the log, want one for each change:\n%s", n, a.log)
	}
}

// TestAFlushedOrRestartedBackendIsToldAgain what each instance has seen itself.
func TestAFlushedOrRestartedBackendIsToldAgain(t *testing.T) {
	t.Parallel()
	f := func(name string, lose func(*redistest.Server)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			a, b := newInstanceOfTests(t, server.URL()).up(), newInstanceOfTests(t, server.URL()).up()
			a.fails(cool)
			b.has("key_cooled pamain*")
			lose(server)
			eventually(t, "the fact is told again", func() bool { return strings.Contains(server.Do("KEYS", "*fact*"), "key_cooled") })
			newInstanceOfTests(t, server.URL()).up().has("key_cooled pamain*")
			b.up().has("key_cooled pamain*")
		})
	}
	f("flushed", func(s *redistest.Server) { s.Do("FLUSHALL") })
	f("killed and started anew", func(s *redistest.Server) { s.Kill(); s.Start() })
}

// TestWhatWasLiftedDuringAnOutageEnds at the return, and what came is known then.
func TestWhatWasLiftedDuringAnOutageEnds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	link := redistest.Slow(t, server, 0)
	a, b := newInstanceOfTests(t, server.URL()).up(), newInstanceOfTests(t, link.URL()).up()
	a.fails(cool)
	b.has("key_cooled pamain*")
	link.Delay(3 * time.Second) // b's calls take longer than it waits
	b.down()
	b.has("key_cooled pamain*") // for a while it believes what it was told
	a.standing.Reset(time.Now(), engine.Fact{})
	a.fails(quarantine)
	link.Delay(0)
	b.up().has("channel_quarantined ga*")
}

// TestAHungBackend is noticed, and it is rejoined when it goes on.
func TestAHungBackend(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := newInstanceOfTests(t, server.URL()).up(), newInstanceOfTests(t, server.URL()).up()
	server.Suspend()
	a.fails(cool)
	a.down()
	if up, line := a.shared.Health(); up || !strings.Contains(line, "is down for") {
		t.Errorf("health says %v, %q", up, line)
	}
	if a.counted("fourgate_state_backend_up") != 0 {
		t.Error("the metric says that the backend is up")
	}
	server.Resume()
	a.up()
	b.up().has("key_cooled pamain*")
}

// TestASlowBackend is no outage.
func TestASlowBackend(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	link := redistest.Slow(t, server, 100*time.Millisecond)
	a, b := newInstanceOfTests(t, link.URL()).up(), newInstanceOfTests(t, link.URL()).up()
	a.fails(cool)
	b.has("key_cooled pamain*")
}

// TestBreakersAreSharedOnRequestOnly: they are many, and each instance finds out soon.
func TestBreakersAreSharedOnRequestOnly(t *testing.T) {
	t.Parallel()
	s := &Shared{box: newOutbox(func() {})}
	s.Share(engine.Fact{Kind: engine.FactBreakerOpen, Group: "g", Channel: "a", Until: time.Now().Add(time.Hour)})
	s.Share(engine.Fact{Kind: engine.FactChannelDisabled, Group: "g", Channel: "a"})
	if n := s.box.len(); n != 0 {
		t.Errorf("%d facts wait to be told", n)
	}
}

// TestNoPasswordIsShown wherever the backend or the configuration fails.
func TestNoPasswordIsShown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("CONFIG", "SET", "requirepass", "right")
	const password = "hunter2-secret"
	a := newInstanceOfTests(t, "unix://user:"+password+"@"+server.Socket())
	eventually(t, "the log says so", func() bool { return strings.Contains(a.log.String(), "WRONGPASS") })
	_, line := a.shared.Health()
	if strings.Contains(a.log.String()+line, password) {
		t.Errorf("the password is shown: %s\n%s", line, a.log)
	}
}

// TestTheDocumentedRightsAreEnough for a user that may do nothing else.
func TestTheDocumentedRightsAreEnough(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do(documentedUser(t, "pw")...)
	url := "unix://fourgate:pw@" + server.Socket()
	a, b := newInstanceOfTests(t, url).up(), newInstanceOfTests(t, url).up()
	a.fails(cool)
	b.has("key_cooled pamain*")
	a.admits(5)
	eventually(t, "rates are heard", func() bool { return b.heardRate("group g") == 6 })
	a.standing.Reset(time.Now(), engine.Fact{})
	b.has("")
	server.Do("FLUSHALL")
	if log := server.Do("ACL", "LOG"); log != "" {
		t.Errorf("refused by the access list:\n%s", log)
	}
}

// TestWhatOthersToldIsForgotten when they haven't been heard for long: it may have been
// lifted meanwhile. What was seen here stays.
func TestWhatOthersToldIsForgotten(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := newInstanceOfTests(t, server.URL()).up(), newInstanceOfTests(t, server.URL()).up()
	a.fails(cool)
	b.has("key_cooled pamain*")
	b.fails(quarantine) // of the channel that is next
	b.has("key_cooled pamain*, channel_quarantined gb")
	server.Kill()
	b.down()
	b.ahead.Store(int64(forgetAfter) + int64(time.Second))
	b.has("channel_quarantined gb")
}

// TestNamesThatComeBack with a reload are known as they are by then.
func TestNamesThatComeBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := newInstanceOfTests(t, server.URL()).up(), newInstanceOfTests(t, server.URL()).up()
	a.fails(cool)
	b.has("key_cooled pamain*")
	b.standing.Forget()
	b.shared.Adopted(map[string]int{"group g": 1000})
	b.has("key_cooled pamain*")
}

// TestTLS is spoken where the URL says so, and only with whom the authorities know.
func TestTLS(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	url, roots := secureLink(t, server.Socket())
	a := newTrustingInstance(t, url, roots).up()
	a.fails(cool)
	newInstanceOfTests(t, server.URL()).up().has("key_cooled pamain*")
	stranger := newInstanceOfTests(t, url)
	eventually(t, "the log says why", func() bool { return strings.Contains(stranger.log.String(), "certificate signed by unknown authority") })
}

// secureLink speaks TLS before a server.
func secureLink(t *testing.T, socket string) (address string, roots *x509.CertPool) {
	t.Helper()
	// net/http's own certificate for 127.0.0.1 is as good as any.
	web := httptest.NewTLSServer(nil)
	certificate := web.TLS.Certificates[0]
	roots = x509.NewCertPool()
	roots.AddCert(web.Certificate())
	web.Close()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", socket)
			if err != nil {
				_ = near.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					_, _ = io.Copy(way[1], way[0])
					_, _ = near.Close(), far.Close()
				}()
			}
		}
	}()
	return "rediss://" + ln.Addr().String(), roots
}
