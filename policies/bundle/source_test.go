package bundle_test

import (
	"bytes"
	"context"
	"crypto/elliptic"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/policies"
	"github.com/fourgate-dev/fourgate/policies/bundle"
)

// compiles is the gate of a proxy: the bundle as a policy, with all its rules.
func compiles(ctx context.Context, b bundle.Bundle) error {
	_, err := policies.Load(ctx, policies.Options{Modules: b.Modules, Data: b.Data})
	return err
}

func TestAGoodBundleComesIntoForce(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	first := stop("one").with("limits/data.json", `{"max":3}`).with("gates/mine.rego", "package mine\n\nlimit := data.limits.max\n").
		with("decision_test.rego", "package fourgate_test\n\ntest_it if http.send({}).status == 200\n")
	at := newServer(t, key.bundle(t, first))
	m, said := bundle.NewMetrics(), &log{}
	s := open(t, bundle.Options{URL: at.URL + "/b.tar.gz", Key: bundle.Key{PEM: key.public}, Accept: compiles, Metrics: m, Logger: said.logger()})
	inForce(t, s, "one")
	b := s.Current()
	want := map[string]string{"decision.rego": first["decision.rego"], "gates/mine.rego": first["gates/mine.rego"]}
	if diff := cmp.Diff(want, b.Modules); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	if got := fmt.Sprint(b.Data); got != "map[limits:map[max:3]]" {
		t.Errorf("data %s", got)
	}
	if status := s.Status(); status.Origin != bundle.FromURL || status.Digest != b.Digest || status.Since.IsZero() || len(b.Digest) != 71 {
		t.Errorf("status %+v", status)
	}
	counted(t, m, "activated=1")

	poll(t, s, bundle.Unchanged, "")
	if _, sent := at.counts(); sent != 1 {
		t.Errorf("an unchanged bundle was sent %d times", sent)
	}
	at.offer(key.bundle(t, stop("two")))
	poll(t, s, bundle.Activated, "")
	inForce(t, s, "two")
	counted(t, m, "activated=2 unchanged=1")
	if n := strings.Count(said.String(), "\n"); n != 2 {
		t.Errorf("want a line for each of two changes:\n%s", said)
	}
}

func TestTheLastGoodBundleStays(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	good := key.bundle(t, stop("good"))
	at := newServer(t, good)
	m, said := bundle.NewMetrics(), &log{}
	s := open(t, bundle.Options{URL: at.URL, Key: bundle.Key{PEM: key.public}, Accept: compiles, Metrics: m, Logger: said.logger()})

	bad := stop("bad").with("decision.rego", "package fourgate\n\ndecision := http.send({\"url\": input.request.id})\n")
	at.offer(key.bundle(t, bad))
	poll(t, s, bundle.Refused, "decision.rego:3:13: cannot use builtin http.send")
	at.offer(archive(t, stop("unsigned")))
	poll(t, s, bundle.Refused, "it isn't signed; build it with --signing-key")
	at.set(nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	poll(t, s, bundle.Unreachable, "its server replied with 502 Bad Gateway")
	poll(t, s, bundle.Unreachable, "502")
	inForce(t, s, "good")
	counted(t, m, "activated=1 refused=2 unreachable=2")

	at.offer(good)
	poll(t, s, bundle.Unchanged, "")
	at.offer(key.bundle(t, stop("better")))
	poll(t, s, bundle.Activated, "")
	inForce(t, s, "better")
	for _, words := range []string{
		"http.send", "revision=bad in_force=good", "it isn't signed",
		"502 Bad Gateway", "in_force=good error=\"cannot fetch", "offered again", "revision=better",
	} {
		if strings.Count(said.String(), words) != 1 {
			t.Errorf("want %q to be logged once:\n%s", words, said)
		}
	}
}

// A bad bundle is looked at once, not at each question, but it stays refused; and it is
// tried again for whoever asks, since the reason may have gone.
func TestARefusedBundleIsNotFetchedAgain(t *testing.T) {
	t.Parallel()
	key, other := newPair(t, elliptic.P256()), newPair(t, elliptic.P256())
	for name, bad := range map[string][]byte{"signature": other.bundle(t, stop("bad")), "compiler": key.bundle(t, stop("bad"))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := newServer(t, key.bundle(t, stop("good")))
			answers := make(chan bundle.Bundle, 100)
			m, said := bundle.NewMetrics(), &log{}
			s := open(t, bundle.Options{URL: at.URL, Key: bundle.Key{PEM: key.public}, Poll: time.Millisecond, Metrics: m, Logger: said.logger(),
				Accept: func(_ context.Context, b bundle.Bundle) error {
					answers <- b
					if b.Revision == "bad" {
						return errors.New("not this one")
					}
					return nil
				}})
			at.offer(bad)
			waitFor(t, func() bool { return s.Status().Last == bundle.Refused })
			before, sent := at.counts()
			waitFor(t, func() bool { asked, _ := at.counts(); return asked > before+2 })
			if _, again := at.counts(); again != sent || sent != 2 {
				t.Errorf("sent %d bodies, then %d", sent, again)
			}
			if n := strings.Count(said.String(), "refused"); n != 1 {
				t.Errorf("want the refusal to be logged once:\n%s", said)
			}
			if _, err := s.Poll(t.Context()); err == nil {
				t.Error("a bad bundle is no longer refused")
			}
			if _, again := at.counts(); again != sent+1 {
				t.Errorf("whoever asks got the old answer")
			}
			inForce(t, s, "good")
		})
	}
}

// waitFor waits for what is certain to become true.
func waitFor(t *testing.T, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
	}
}

func TestTheLastOfQuickChangesWins(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	at := newServer(t, key.bundle(t, stop("0")))
	s := open(t, bundle.Options{URL: at.URL, Key: bundle.Key{PEM: key.public}, Poll: time.Millisecond})
	for i := range 20 {
		at.offer(key.bundle(t, stop(fmt.Sprint(i+1))))
		if i%3 == 0 {
			go func() { _, _ = s.Poll(t.Context()) }()
		}
	}
	waitFor(t, func() bool { return s.Current().Revision == "20" })
}

func TestStartWithoutTheServer(t *testing.T) {
	t.Parallel()
	key, other := newPair(t, elliptic.P256()), newPair(t, elliptic.P256())
	cache := filepath.Join(t.TempDir(), "cache")
	good := key.bundle(t, stop("good"))
	at := newServer(t, good)
	said := &log{}
	o := bundle.Options{URL: at.URL, Key: bundle.Key{PEM: key.public}, Cache: cache, Accept: compiles, Logger: said.logger()}
	open(t, o).Close()
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	at.set(nil, down)

	o.Metrics = bundle.NewMetrics()
	s := open(t, o)
	inForce(t, s, "good")
	if status := s.Status(); status.Origin != bundle.FromCache || status.Last != bundle.Unreachable || !strings.Contains(status.Problem, "503") {
		t.Errorf("status %+v", status)
	}
	counted(t, o.Metrics, "unreachable=1")
	if words := "The last good policy bundle is in force."; strings.Count(said.String(), words) != 1 || strings.Contains(said.String(), "stays") {
		t.Errorf("want a start with the last good bundle to be logged:\n%s", said)
	}
	at.offer(good)
	poll(t, s, bundle.Unchanged, "")
	at.offer(key.bundle(t, stop("new")))
	poll(t, s, bundle.Activated, "")
	if got := s.Status().Origin; got != bundle.FromURL {
		t.Errorf("origin %s", got)
	}
	at.offer(other.bundle(t, stop("foreign")))
	s.Close()
	s = open(t, o)
	inForce(t, s, "new")
	if got := s.Status().Last; got != bundle.Refused {
		t.Errorf("last %s", got)
	}
	s.Close()

	kept, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("the cache holds %v (%v)", kept, err)
	}
	if info, err := os.Stat(kept[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kept bundle has the mode %v (%v)", info.Mode(), err)
	}
	f := func(name string, content []byte, want string) {
		t.Helper()
		at.set(nil, down)
		if content == nil {
			err = os.Remove(kept[0])
		} else {
			err = os.WriteFile(kept[0], content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tryOpen(t, o); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want one with %q", name, err, want)
		}
	}
	tampered := archive(t, key.sign(t, stop("good"), "mine").with("decision.rego", stop("evil")["decision.rego"]))
	f("tampered with", tampered, "it was changed after it was signed")
	f("unsigned", archive(t, stop("evil")), "it isn't signed")
	f("half", tampered[:len(tampered)/2], "damaged or incomplete")
	f("no policy for this version", key.bundle(t, stop("x").with("decision.rego", "package fourgate\n\ndecision := nothing_like_it(1)\n")), "undefined function")
	f("gone", nil, "there is no last good one in")
	o.Cache = ""
	f("not wanted", tampered, "name a directory as cache")
}

func TestAnUnwritableCacheIsNoReasonToRefuse(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	blocked := filepath.Join(t.TempDir(), "cache")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at, said := newServer(t, key.bundle(t, stop("good"))), &log{}
	s := open(t, bundle.Options{URL: at.URL, Key: bundle.Key{PEM: key.public}, Cache: blocked, Logger: said.logger()})
	inForce(t, s, "good")
	if !strings.Contains(said.String(), "Cannot keep the policy bundle, which is in force.") {
		t.Errorf("nothing was said of the cache:\n%s", said)
	}
}

func TestCloseDuringADownload(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	good := key.bundle(t, stop("good"))
	at := newServer(t, good)
	s := open(t, bundle.Options{URL: at.URL, Key: bundle.Key{PEM: key.public}, Poll: time.Millisecond})
	halfway := make(chan struct{}, 1)
	at.set(nil, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(good[:len(good)/2])
		_ = http.NewResponseController(w).Flush()
		select {
		case halfway <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	})
	<-halfway
	polled := make(chan error, 1)
	go func() {
		_, err := s.Poll(t.Context())
		polled <- err
	}()
	s.Close()
	s.Close()
	if err := <-polled; err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a question under way ended with %v", err)
	}
	if _, err := s.Poll(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a question afterwards ended with %v", err)
	}
	inForce(t, s, "good")
}

func TestTheServerMayHoldItsAnswerBack(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	var current atomic.Value
	current.Store(key.bundle(t, stop("one")))
	changed := make(chan []byte)
	held := make(chan string, 10)
	at := newServer(t, nil)
	at.set(nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.openpolicyagent.bundles")
		if prefer := r.Header.Get("Prefer"); strings.Contains(prefer, "wait=") {
			held <- prefer
			select {
			case b := <-changed:
				_, _ = w.Write(b)
			case <-r.Context().Done():
			}
			return
		}
		_, _ = w.Write(current.Load().([]byte))
	})
	s := open(t, bundle.Options{URL: at.URL, Key: bundle.Key{PEM: key.public}, Poll: time.Millisecond, LongPoll: time.Hour})
	if prefer := <-held; prefer != "modes=snapshot;wait=3600" {
		t.Errorf("asked with %q", prefer)
	}
	changed <- key.bundle(t, stop("two"))
	waitFor(t, func() bool { return s.Current().Revision == "two" })
	<-held
	current.Store(key.bundle(t, stop("three")))
	poll(t, s, bundle.Activated, "") // doesn't wait for an hour
	inForce(t, s, "three")
}

// What was refused for the configuration's sake is in force once that is mended, though
// the server offers nothing new.
func TestPollTriesAfresh(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	at := newServer(t, key.bundle(t, stop("one")))
	var mended atomic.Bool
	s := open(t, bundle.Options{URL: at.URL, Key: bundle.Key{PEM: key.public}, Accept: func(_ context.Context, b bundle.Bundle) error {
		if b.Revision == "two" && !mended.Load() {
			return errors.New("a parameter is missing")
		}
		return nil
	}})
	at.offer(key.bundle(t, stop("two")))
	poll(t, s, bundle.Refused, "a parameter is missing")
	mended.Store(true)
	poll(t, s, bundle.Activated, "")
	inForce(t, s, "two")
}

func TestTheContextBoundsOpen(t *testing.T) {
	t.Parallel()
	at := newServer(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	at.set(nil, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := bundle.Open(ctx, bundle.Options{URL: at.URL, Key: bundle.Key{PEM: newPair(t, elliptic.P256()).public}}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	dir := t.TempDir()
	f := func(name string, content []byte, by *bundle.Key, want string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := bundle.ReadFile(file, by)
		switch {
		case want == "" && (err != nil || b.Revision != "good" || len(b.Modules) != 1):
			t.Errorf("%s: %+v (%v)", name, b, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v; want one with %q", name, err, want)
		}
	}
	f("signed", key.bundle(t, stop("good")), &bundle.Key{PEM: key.public}, "")
	f("not looked at", key.bundle(t, stop("good")), nil, "")
	f("unsigned", archive(t, stop("good")), nil, "")
	f("unsigned with key", archive(t, stop("good")), &bundle.Key{PEM: key.public}, "it isn't signed")
	f("large", bytes.Repeat([]byte{0}, bundle.DefaultMaxBytes+1), nil, "more than the 8388608 bytes")
	f("text", []byte("package fourgate"), nil, "it is no gzip archive")
	f("no key", nil, &bundle.Key{}, "it is not in PEM form")
	if _, err := bundle.ReadFile(filepath.Join(dir, "nothing"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
