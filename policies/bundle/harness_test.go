package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	oldlog "log"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	opa "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/fourgate-dev/fourgate/policies/bundle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const waitLimit = 20 * time.Second // for what is certain to happen

// pair is a key for signing and its public half, both in PEM form.
type pair struct{ private, public string }

func newPair(tb testing.TB, curve elliptic.Curve) pair {
	tb.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		tb.Fatal(err)
	}
	return pair{inPEM("PRIVATE KEY", private), inPEM("PUBLIC KEY", public)}
}

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// files are what is in a bundle, by path.
type files map[string]string

// stop is a policy that aborts for the given reason.
func stop(reason string) files {
	return files{
		".manifest":     fmt.Sprintf(`{"revision":%q,"roots":[""]}`, reason),
		"decision.rego": fmt.Sprintf("package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": %q}\n", reason),
	}
}

func (f files) with(name, text string) files {
	f = maps.Clone(f)
	f[name] = text
	return f
}

// archive packs files as they are.
func archive(tb testing.TB, f files) []byte {
	tb.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	tarred := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if err := tarred.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(f[name])), Typeflag: tar.TypeReg}); err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(tarred, f[name]); err != nil {
			tb.Fatal(err)
		}
	}
	if err := tarred.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		tb.Fatal(err)
	}
	return packed.Bytes()
}

// sign adds OPA's signature of all files.
func (p pair) sign(tb testing.TB, f files, keyID string) files {
	tb.Helper()
	return p.signAs(tb, f, "ES256", keyID)
}

func (p pair) signAs(tb testing.TB, f files, algorithm, keyID string) files {
	tb.Helper()
	var infos []opa.FileInfo
	for _, name := range slices.Sorted(maps.Keys(f)) {
		hasher, err := opa.NewSignatureHasher(opa.SHA256)
		if err != nil {
			tb.Fatal(err)
		}
		sum, err := hasher.HashFile(hashed(tb, name, f[name]))
		if err != nil {
			tb.Fatal(err)
		}
		infos = append(infos, opa.NewFile(name, hex.EncodeToString(sum), "SHA-256"))
	}
	token, err := opa.GenerateSignedToken(infos, opa.NewSigningConfig(p.private, algorithm, ""), keyID)
	if err != nil {
		tb.Fatal(err)
	}
	return f.with(".signatures.json", fmt.Sprintf(`{"signatures":[%q]}`, token))
}

func (p pair) bundle(tb testing.TB, f files) []byte {
	tb.Helper()
	return archive(tb, p.sign(tb, f, "mine"))
}

// server offers one bundle at a time, with an ETag, as a file server does.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	body    []byte
	handler http.HandlerFunc // instead, if it isn't nil
	asked   []*http.Request
	sent    int // bodies
}

func newServer(tb testing.TB, body []byte) *server {
	tb.Helper()
	s := &server{body: body}
	s.Server = httptest.NewServer(s)
	tb.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r)
	body, handler := s.body, s.handler
	etag := fmt.Sprintf(`"%x"`, sha256.Sum256(body))
	unchanged := r.Header.Get("If-None-Match") == etag
	if handler == nil && !unchanged {
		s.sent++
	}
	s.mu.Unlock()
	switch w.Header().Set("ETag", etag); {
	case handler != nil:
		handler(w, r)
	case unchanged:
		w.WriteHeader(http.StatusNotModified)
	default:
		_, _ = w.Write(body)
	}
}

func (s *server) offer(body []byte) { s.set(body, nil) }

func (s *server) set(body []byte, handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body, s.handler = body, handler
}

func (s *server) counts() (asked, sent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked), s.sent
}

func (s *server) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// log collects what a source says.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// rarely is a source's interval in tests that ask by Poll.
const rarely = 10 * time.Hour

func open(t *testing.T, o bundle.Options) *bundle.Source {
	t.Helper()
	s, err := tryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tryOpen(t *testing.T, o bundle.Options) (*bundle.Source, error) {
	t.Helper()
	if o.Poll == 0 {
		o.Poll = rarely
	}
	if o.Timeout == 0 {
		o.Timeout = waitLimit
	}
	s, err := bundle.Open(t.Context(), o)
	if err == nil {
		t.Cleanup(s.Close)
	}
	return s, err
}

// poll asks and wants the outcome, with words in the error if there are any.
func poll(t *testing.T, s *bundle.Source, want bundle.Outcome, words string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	outcome, err := s.Poll(ctx)
	if outcome != want || (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
		t.Errorf("asked: %s (%v); want %s with %q", outcome, err, want, words)
	}
	if last := s.Status().Last; last != want {
		t.Errorf("the status says %s; want %s", last, want)
	}
}

func inForce(t *testing.T, s *bundle.Source, want string) {
	t.Helper()
	if got := s.Current().Revision; got != want {
		t.Errorf("bundle %q is in force; want %q", got, want)
	}
	if got := s.Status().Revision; got != want {
		t.Errorf("the status says %q; want %q", got, want)
	}
}

// counted compares what was counted with text such as "activated=1 refused=2".
func counted(t *testing.T, m *bundle.Metrics, want string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		if family.GetName() != "fourgate_policy_bundle_loads_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if n := metric.GetCounter().GetValue(); n > 0 {
				got = append(got, fmt.Sprintf("%s=%v", metric.GetLabel()[0].GetValue(), n))
			}
		}
	}
	if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// hashed is what OPA hashes of a file: JSON as a value, so that its spaces don't count.
func hashed(tb testing.TB, name, text string) any {
	tb.Helper()
	if !opa.IsStructuredDoc(name) {
		return []byte(text)
	}
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return []byte(text) // which nobody can hash as OPA would
	}
	return value
}

// standard is for what only takes a logger of the old kind.
func (l *log) standard() *oldlog.Logger { return oldlog.New(l, "", 0) }
