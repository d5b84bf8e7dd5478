package bundle_test

import (
	"crypto/elliptic"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/policies/bundle"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
	configType   = "application/vnd.oci.image.config.v1+json"
)

func sum(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// registry is an OCI registry with one repository, team/policy.
type registry struct {
	*httptest.Server
	mu        sync.Mutex
	manifests map[string][]byte // by tag and by digest
	blobs     map[string][]byte
	before    func(http.ResponseWriter, *http.Request) (answered bool) // nil for none
	asked     []string
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{manifests: map[string][]byte{}, blobs: map[string][]byte{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *registry) url(tag string) string {
	return "oci://" + strings.TrimPrefix(r.URL, "http://") + "/team/policy" + tag
}

// push stores a bundle under a tag and returns its manifest's digest.
func (r *registry) push(tag, mediaType string, layer []byte) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	config := []byte("{}")
	r.blobs[sum(config)], r.blobs[sum(layer)] = config, layer
	m := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":2},"layers":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
		manifestType, configType, sum(config), mediaType, sum(layer), len(layer))
	r.manifests[tag], r.manifests[sum(m)] = m, m
	return sum(m)
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q.Method+" "+q.URL.Path)
	if r.before != nil && r.before(w, q) {
		return
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/v2/team/policy/"), "/")
	body, known := r.blobs[name]
	if kind == "manifests" {
		body, known = r.manifests[name]
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", sum(body))
	}
	if !known {
		http.NotFound(w, q)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	if q.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

func (r *registry) set(before func(http.ResponseWriter, *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = before
}

func (r *registry) countOf(word string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(strings.Join(r.asked, "\n"), word)
}

func TestBundleFromARegistry(t *testing.T) {
	t.Parallel()
	key, other := newPair(t, elliptic.P256()), newPair(t, elliptic.P256())
	at := newRegistry(t)
	good := key.bundle(t, stop("good"))
	at.push("v1", layerType, good)
	o := bundle.Options{URL: at.url(":v1"), Key: bundle.Key{PEM: key.public}, Cache: t.TempDir(), Accept: compiles, Metrics: bundle.NewMetrics()}
	s := open(t, o)
	inForce(t, s, "good")
	if got := s.Current().Digest; got != sum(good) {
		t.Errorf("digest %s; want the layer's, %s", got, sum(good))
	}
	poll(t, s, bundle.Unchanged, "")
	if n := at.countOf("GET /v2/team/policy/blobs/" + sum(good)); n != 1 {
		t.Errorf("an unchanged layer was fetched %d times", n)
	}
	at.push("v1", layerType, other.bundle(t, stop("foreign")))
	poll(t, s, bundle.Refused, "it isn't signed with the key")
	at.push("v1", layerType, key.bundle(t, stop("wrong").with("decision.rego", "package fourgate\n\ndecision := nothing_like_it(1)\n")))
	poll(t, s, bundle.Refused, "undefined function")
	poll(t, s, bundle.Refused, "undefined function")
	inForce(t, s, "good")
	better := key.bundle(t, stop("better"))
	at.push("v1", layerType, better)
	poll(t, s, bundle.Activated, "")
	inForce(t, s, "better")
	counted(t, o.Metrics, "activated=2 refused=3 unchanged=1")
	s.Close()

	at.set(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	s = open(t, o)
	inForce(t, s, "better")
	at.set(nil)
	poll(t, s, bundle.Unchanged, "")
	at.push("v1", layerType, good) // back to the old one
	poll(t, s, bundle.Activated, "")
	inForce(t, s, "good")
}

func TestRegistriesAreNotBelieved(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	good, old := key.bundle(t, stop("good")), key.bundle(t, stop("old"))
	f := func(name, tag string, prepare func(*registry), want string) {
		t.Helper()
		at := newRegistry(t)
		digest := at.push("latest", layerType, good)
		prepare(at)
		tag = strings.Replace(tag, "DIGEST", digest, 1)
		s, err := tryOpen(t, bundle.Options{URL: at.url(tag), Key: bundle.Key{PEM: key.public}, MaxBytes: 64 << 10})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case want == "":
			inForce(t, s, "good")
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: error %v; want one with %q", name, err, want)
		}
	}
	f("no tag", "", func(*registry) {}, "")
	f("pinned", "@DIGEST", func(*registry) {}, "")
	f("another one for a pinned digest", "@DIGEST", func(r *registry) {
		pinned := r.manifests["latest"]
		r.push("latest", layerType, old)
		r.manifests[sum(pinned)] = r.manifests["latest"]
	}, "was asked for sha256:")
	f("another manifest than promised", "", func(r *registry) {
		r.set(func(w http.ResponseWriter, q *http.Request) bool {
			if q.Method == http.MethodGet && strings.Contains(q.URL.Path, "/manifests/") {
				_, _ = w.Write([]byte(strings.Replace(string(r.manifests["latest"]), "{", "{ ", 1)))
				return true
			}
			return false
		})
	}, "mismatch")
	f("another layer than promised", "", func(r *registry) {
		changed := slices.Clone(good)
		changed[9]++ // the system that packed it, which nothing else depends on
		r.blobs[sum(good)] = changed
	}, "mismatched digest")
	f("no such tag", ":v9", func(*registry) {}, "404 Not Found; check url")
	f("no such layer", "", func(r *registry) { delete(r.blobs, sum(good)) }, "404")
	f("something else", "", func(r *registry) { r.push("latest", "application/wasm", []byte("\x00asm")) }, "no tarball descriptor found in the layers")
	f("a page", "", func(r *registry) {
		r.set(func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte("<html>"))
			return true
		})
	}, "missing Docker-Content-Digest")
	f("huge", "", func(r *registry) { r.push("latest", layerType, make([]byte, 64<<10+1)) }, "it has more than the 65536 bytes")
	f("bomb", "", func(r *registry) { r.push("latest", layerType, gzipped(t, strings.Repeat("\x00", 600<<10))) }, "may have unpacked")
	f("unsigned", "", func(r *registry) { r.push("latest", layerType, archive(t, stop("x"))) }, "it isn't signed")
}

// A user and a password are for the registry and for where it gives out tokens, but a
// storage server that it leads to gets neither.
func TestRegistryTokens(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	at := newRegistry(t)
	good := key.bundle(t, stop("good"))
	at.push("v1", layerType, good)
	var shown []string
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at.mu.Lock()
		defer at.mu.Unlock()
		shown = append(shown, "storage "+r.Header.Get("Authorization"))
		_, _ = w.Write(at.blobs[strings.TrimPrefix(r.URL.Path, "/")])
	}))
	t.Cleanup(storage.Close)
	at.set(func(w http.ResponseWriter, r *http.Request) bool {
		user, password, basic := r.BasicAuth()
		_, blob, isBlob := strings.Cut(r.URL.Path, "/blobs/")
		switch {
		case r.URL.Path == "/token" && basic && user == "reader" && password == "confidential":
			_, _ = w.Write([]byte(`{"token":"granted"}`))
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("Authorization") != "Bearer granted":
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+at.URL+`/token",service="registry",scope="repository:team/policy:pull"`)
			w.WriteHeader(http.StatusUnauthorized)
		case isBlob:
			// Not at the registry's address, but the same machine.
			http.Redirect(w, r, strings.Replace(storage.URL, "127.0.0.1", "localhost", 1)+"/"+blob, http.StatusTemporaryRedirect)
		default:
			return false
		}
		return true
	})
	o := bundle.Options{URL: at.url(":v1"), Key: bundle.Key{PEM: key.public}, Token: engine.NewSecret("reader:confidential")}
	inForce(t, open(t, o), "good")
	for _, s := range shown {
		if s != "storage " {
			t.Errorf("shown elsewhere: %s", s)
		}
	}
	if len(shown) == 0 {
		t.Error("the storage was not asked")
	}
	o.Token = engine.NewSecret("reader:wrong-and-confidential")
	if _, err := tryOpen(t, o); err == nil || !strings.Contains(err.Error(), "check token") || strings.Contains(err.Error(), "confidential") {
		t.Errorf("error %v", err)
	}
	at.set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer plain" {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	o.Token = engine.NewSecret("plain")
	inForce(t, open(t, o), "good")
}

// The layers of a registry are thrown away when there are many, and all when it closes.
func TestLayersDoNotPileUp(t *testing.T) {
	key := newPair(t, elliptic.P256())
	t.Setenv("TMPDIR", t.TempDir()) // so not parallel
	at := newRegistry(t)
	at.push("v1", layerType, key.bundle(t, stop("0")))
	s := open(t, bundle.Options{URL: at.url(":v1"), Key: bundle.Key{PEM: key.public}, MaxBytes: 2 << 10})
	for i := range 9 {
		at.push("v1", layerType, key.bundle(t, stop(fmt.Sprint(i+1))))
		poll(t, s, bundle.Activated, "")
		poll(t, s, bundle.Unchanged, "")
	}
	inForce(t, s, "9")
	layers := func() int {
		var n int
		entries, err := os.ReadDir(os.Getenv("TMPDIR"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			blobs, _ := os.ReadDir(os.Getenv("TMPDIR") + "/" + e.Name() + "/blobs/sha256")
			n += len(blobs)
		}
		return n
	}
	if n := layers(); n == 0 || n > 20 {
		t.Errorf("%d blobs are kept", n)
	}
	// A place for layers that OPA can't use costs one question, not the process.
	broken, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*", "oci-layout"))
	if err != nil || len(broken) != 1 {
		t.Fatalf("%v (%v)", broken, err)
	}
	if err := os.WriteFile(broken[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	poll(t, s, bundle.Unreachable, "cannot make a place for its layers")
	poll(t, s, bundle.Unchanged, "")
	s.Close()
	if entries, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}
