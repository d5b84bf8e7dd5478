package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/bundle"
)

// publisher signs bundles and offers one of them over HTTP.
type publisher struct {
	t      *testing.T
	key    string // private, in PEM form
	public string
	server *httptest.Server

	mu      sync.Mutex
	offered []byte
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	p := &publisher{
		t:      t,
		key:    string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		public: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		_, _ = w.Write(p.offered)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// offer puts another bundle in the place of the one before.
func (p *publisher) offer(revision string, signed bool, files map[string]string) {
	p.t.Helper()
	b := bundle.Bundle{Manifest: bundle.Manifest{Revision: revision}, Data: map[string]any{}}
	b.Manifest.Init()
	for name, text := range files {
		b.Modules = append(b.Modules, bundle.ModuleFile{URL: name, Path: name, RelativePath: name, Raw: []byte(text)})
	}
	if signed {
		if err := b.GenerateSignature(bundle.NewSigningConfig(p.key, "ES256", ""), "", true); err != nil {
			p.t.Fatal(err)
		}
	}
	var archive bytes.Buffer
	if err := bundle.NewWriter(&archive).DisableFormat(true).Write(b); err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offered = archive.Bytes()
}

// TestPolicyBundle serves with a policy from a bundle. A new bundle decides at once, also
// for the group with parameters of its own, and not for the one with its own files; a bad
// one changes nothing, neither does a reload; and a start without the server finds the
// last good one.
func TestPolicyBundle(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.offer("v1", true, policyVersion(1))
	dir := t.TempDir()
	text, err := os.ReadFile(trio)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, `
retry_budget {
  floor = 1000
  cap   = 1000
}
policy {
  bundle {
    url        = "`+p.server.URL+`/policy.tar.gz"
    public_key = file("bundle.pub")
    poll       = "1s"
  }
}
`+groupWithParams+`
route_group "o" {
  models    = ["model-3"]
  endpoints = ["openai.chat"]
  channel "a" { provider = provider.a }
  channel "b" { provider = provider.b }
  channel "c" { provider = provider.c }
  budget { deadline = "300s" }
  policy {
    paths = ["own"]
  }
}
`...)
	config := filepath.Join(dir, "fourgate.hcl")
	files := map[string]string{config: string(text), filepath.Join(dir, "bundle.pub"): p.public}
	if err := os.Mkdir(filepath.Join(dir, "own"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range policyVersion(0) {
		files[filepath.Join(dir, "own", name)] = text
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, config, "", "a", "b", "c")
	serves := func(want string) {
		t.Helper()
		for model, version := range map[string]string{"model-1": want, "model-2": want, "model-3": "v0"} {
			r.script("a", "status=503")
			r.script("b", "status=503")
			got := post(t, r.base+"/v1/chat/completions", chat(model, false))
			if got.status != 200 {
				t.Fatalf("%s: %d %s", model, got.status, got.body)
			}
			attempts := r.record(got.header.Get("X-Request-Id")).Attempts()
			for i, half := range []string{"_first", "_second"} {
				if d, _ := attempts[i].Decision(); d.Reason().String() != version+half {
					t.Errorf("%s was decided by %s (%s), want %s", model, d.Reason(), d.Rule(), version+half)
				}
				if d, _ := attempts[i].Decision(); model != "model-3" && d.Rule() != "bundle:decision.rego:"+[]string{"5", "7"}[i] {
					t.Errorf("the rule is %q", d.Rule())
				}
			}
		}
	}
	serves("v1")
	p.offer("v2", true, policyVersion(2))
	r.proxy.stderr.await(t, "revision=v2")
	serves("v2")
	broken := policyVersion(3)
	delete(broken, "second.rego")
	p.offer("v3", true, broken)
	r.proxy.stderr.await(t, "undefined function data.house.second")
	serves("v2")
	p.offer("v4", false, policyVersion(4))
	r.proxy.stderr.await(t, "it isn't signed")
	// A reload of the configuration keeps the bundle in force.
	if err := os.WriteFile(config, append(text, "\n# touched\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	r.proxy.stderr.await(t, "msg=reloaded")
	serves("v2")
	if m := r.metrics(); !strings.Contains(m, `fourgate_policy_bundle_info{`) || !strings.Contains(m, `revision="v2"`) {
		t.Error("the metrics don't tell of the bundle")
	}
	// A reload that names another bundle is refused as long as that can't be used.
	moved := bytes.Replace(text, []byte("/policy.tar.gz"), []byte("/moved.tar.gz"), 1)
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(config+".next", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(config+".next", config); err != nil {
			t.Fatal(err)
		}
	}
	write(moved)
	r.proxy.stderr.await(t, "reload refused")
	serves("v2")
	p.offer("v5", true, policyVersion(5))
	write(append(moved, "\n# again\n"...))
	r.proxy.stderr.awaitCount(t, "msg=reloaded", 2)
	serves("v5")
	if code := r.proxy.end(t); code != 0 {
		t.Errorf("the proxy ended with %d", code)
	}

	p.server.Close()
	r.proxy = startAt(t, r.clock, r.vars, "serve", "-c", config)
	r.base = r.proxy.base(t)
	serves("v5")

	// A configuration without a bundle has none in force.
	before, rest, _ := strings.Cut(string(text), "  bundle {")
	_, rest, _ = strings.Cut(rest, "  }\n")
	write([]byte(before + "  paths = [\"own\"]\n" + rest))
	r.proxy.stderr.await(t, "msg=reloaded")
	if strings.Contains(r.metrics(), "fourgate_policy_bundle_info{") {
		t.Error("the metrics tell of a bundle that isn't in force")
	}
	write(append(moved, "\n# again\n"...))

	// Without the last good one there is no policy to start with.
	if err := os.RemoveAll(filepath.Join(dir, "fourgate-bundle")); err != nil {
		t.Fatal(err)
	}
	check := startAt(t, r.clock, r.vars, "validate", "-c", config)
	check.stderr.await(t, "fourgate: 1 error")
	if text := check.stderr.String(); !strings.Contains(text, "Policy bundle cannot be used") || !strings.Contains(text, "in policy") {
		t.Error(text)
	}
}

// A command that only looks leaves no cache behind, which the proxy's own user perhaps
// couldn't write to.
func TestValidateKeepsNoBundle(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.offer("v1", true, policyVersion(1))
	w := newTree(t)
	w.write("bundle.pub", p.public)
	w.write("fourgate.hcl", smallestConfig+`policy {
  bundle {
    url        = "`+p.server.URL+`/policy.tar.gz"
    public_key = file("bundle.pub")
  }
}
`)
	for _, args := range [][]string{{"validate", "-c", w.path("fourgate.hcl")}, {"chain", "-c", w.path("fourgate.hcl"), "model-1"}} {
		log := newOutput()
		e := &env{now: time.Now, args: args, stdout: log, stderr: log, lookup: func(string) (string, bool) { return "", false }}
		if code := run(t.Context(), e); code != 0 {
			t.Errorf("%v ended with %d: %s", args, code, log)
		}
	}
	if _, err := os.Stat(w.path("fourgate-bundle")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a cache (%v)", err)
	}
}
