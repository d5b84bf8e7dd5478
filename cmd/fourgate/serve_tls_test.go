package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/proxy/sim"
)

// authority signs the certificates of a test, each with a serial number of its own.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	plan := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return &authority{cert, key, 1}
}

func (a *authority) sign(tb testing.TB, name string) tls.Certificate {
	tb.Helper()
	a.serial++
	plan := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
}

func write(tb testing.TB, path, kind string, der []byte) {
	tb.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// install writes a certificate and its key where the configuration of secured looks.
func install(tb testing.TB, dir string, cert tls.Certificate) {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		tb.Fatal(err)
	}
	write(tb, filepath.Join(dir, "tls.crt"), "CERTIFICATE", cert.Certificate[0])
	write(tb, filepath.Join(dir, "tls.key"), "PRIVATE KEY", der)
}

// The limits are far beyond what a test waits for.
const securedConfig = `
server {
  listen = "127.0.0.1:0"
  tls {
    cert_file = "tls.crt"
    key_file  = "tls.key"
  }
}
provider "a" {
  base_url = "%s/a"
  auth     = "none"
  timeouts { gate = "60s" }
  tls {
    ca_file     = "ca.crt"
    server_name = "%s"
  }
}
provider "b" {
  base_url = "%s/b"
  auth     = "none"
  tls {
    ca_file     = "ca.crt"
    server_name = "upstream.test"
  }
}
route_group "m" {
  models    = ["model-1"]
  endpoints = ["openai.chat"]
  channel "a" { provider = provider.a }
  channel "b" { provider = provider.b }
  budget { deadline = "300s" }
}
ledger { path = "ledger.db" }
`

// secured is the proxy with TLS on both sides.
type secured struct {
	sim    *sim.Sim
	house  *authority
	dir    string
	config string
	addr   string // of the callers' listener
	proxy  *command
	roots  *x509.CertPool
}

// prepare writes the files of a configuration whose provider a is asked for as nameOfA; the
// upstreams' certificate is of upstream.test, the proxy's of proxy.test.
func prepare(tb testing.TB, nameOfA string) *secured {
	tb.Helper()
	house := newAuthority(tb)
	s := &secured{sim: sim.New(sim.Options{}), house: house, dir: tb.TempDir(), roots: x509.NewCertPool()}
	s.roots.AddCert(house.cert)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{house.sign(tb, "upstream.test")}})
	if err != nil {
		tb.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.sim.Serve(ln) }) // fails if it comes after Close; others show in the test
	tb.Cleanup(func() {
		if err := s.sim.Close(); err != nil {
			tb.Error(err)
		}
		serving.Wait()
	})
	write(tb, filepath.Join(s.dir, "ca.crt"), "CERTIFICATE", house.cert.Raw)
	install(tb, s.dir, house.sign(tb, "proxy.test"))
	s.config = filepath.Join(s.dir, "fourgate.hcl")
	upstream := "https://" + ln.Addr().String()
	if err := os.WriteFile(s.config, fmt.Appendf(nil, securedConfig, upstream, nameOfA, upstream), 0o600); err != nil {
		tb.Fatal(err)
	}
	return s
}

func newSecured(t testing.TB, nameOfA string) *secured {
	t.Helper()
	s := prepare(t, nameOfA)
	s.proxy = startAt(t, new(movable), nil, "serve", "-c", s.config)
	addr, ok := strings.CutPrefix(s.proxy.base(t), "https://")
	if !ok {
		t.Fatalf("the address is not that of a TLS listener: %s", s.proxy.stdout)
	}
	s.addr = addr
	return s
}

func (s *secured) trusts() *tls.Config {
	return &tls.Config{RootCAs: s.roots, ServerName: "proxy.test"}
}

// ledgered is the rig that reads this proxy's ledger.
func (s *secured) ledgered(t *testing.T) *rig {
	return &rig{t: t, sim: s.sim, ledger: filepath.Join(s.dir, "ledger.db"), upstream: []string{"a", "b"}}
}

func (s *secured) post(t *testing.T, id, body string) reply {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: s.trusts()}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.addr+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Request-Id", id)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text), err}
}

func TestTLSOnBothSides(t *testing.T) {
	t.Parallel()
	s := newSecured(t, "upstream.test")
	for i, stream := range []bool{false, true, false} {
		got := s.post(t, fmt.Sprint("id-", i), chat("model-1", stream))
		if got.status != 200 || got.err != nil || stream && !strings.Contains(got.body, "[DONE]") {
			t.Errorf("request %d: status %d, %v, %s", i, got.status, got.err, got.body)
		}
	}
	var conns []int64
	for _, seen := range s.sim.Requests("a") {
		conns = append(conns, seen.Conn)
	}
	if len(conns) != 3 || len(slices.Compact(conns)) != 1 {
		t.Errorf("3 requests went over the upstream's connections %v, want one for all", conns)
	}
}

// An upstream whose certificate isn't of the name that is wanted gets nothing, and the next
// channel serves.
func TestUntrustedUpstreamIsPassedOver(t *testing.T) {
	t.Parallel()
	s := newSecured(t, "elsewhere.test")
	if got := s.post(t, "untrusted", chat("model-1", false)); got.status != 200 {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	r := s.ledgered(t)
	if calls := r.calls(); calls != "a=0 b=1" {
		t.Errorf("the upstreams were called %s", calls)
	}
	if story := storyOf(r.record("untrusted")); story != "a provider_transient/tls before_headers fallback; b: success" {
		t.Errorf("the ledger says %q", story)
	}
}

// What the listener accepts of callers.
func TestListenerTLS(t *testing.T) {
	t.Parallel()
	s := newSecured(t, "upstream.test")
	dial := func(change func(c *tls.Config)) (*tls.Conn, error) {
		c := s.trusts()
		change(c)
		return tls.Dial("tcp", s.addr, c)
	}
	for name, change := range map[string]func(c *tls.Config){
		"TLS 1.1":      func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
		"HTTP/2 alone": func(c *tls.Config) { c.NextProtos = []string{"h2"} },
	} {
		if conn, err := dial(change); err == nil {
			_ = conn.Close()
			t.Errorf("%s was accepted", name)
		}
	}
	for name, change := range map[string]func(c *tls.Config){
		"TLS 1.2":            func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
		"TLS 1.3":            func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 },
		"HTTP/2 or HTTP/1.1": func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} },
	} {
		conn, err := dial(change)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p := conn.ConnectionState().NegotiatedProtocol; p != "" && p != "http/1.1" {
			t.Errorf("%s: agreed on %q", name, p)
		}
		_ = conn.Close()
	}
	plain, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_ = plain.SetDeadline(time.Now().Add(waitLimit))
	_, _ = io.WriteString(plain, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
	if got, err := io.ReadAll(plain); strings.HasPrefix(string(got), "HTTP/1.1 200") || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("plain HTTP: %q, %v; want the connection closed", got, err)
	}
	if got := s.post(t, "after", chat("model-1", false)); got.status != 200 {
		t.Errorf("after those: status %d", got.status)
	}
}

// A pair that can't be used is one diagnostic, and nothing is served.
func TestUnusableCertificate(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]struct {
		how  func(s *secured) error
		want string
	}{
		"missing key": {func(s *secured) error { return os.Remove(filepath.Join(s.dir, "tls.key")) }, "Error: File cannot be read"},
		"another's key": {func(s *secured) error {
			der, err := x509.MarshalPKCS8PrivateKey(newAuthority(t).key)
			write(t, filepath.Join(s.dir, "tls.key"), "PRIVATE KEY", der)
			return err
		}, "Error: Certificate and key cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, "upstream.test")
			if err := spoil.how(s); err != nil {
				t.Fatal(err)
			}
			c := startAt(t, new(movable), nil, "serve", "-c", s.config)
			select {
			case code := <-c.done:
				c.done <- code
				if code != exitFailure {
					t.Errorf("exit code %d", code)
				}
			case <-time.After(waitLimit):
				t.Fatal("it serves")
			}
			if text := c.stderr.String(); !strings.Contains(text, spoil.want) || strings.Count(text, "Error:") != 1 {
				t.Errorf("it says:\n%s", text)
			}
		})
	}
}

// A reload shows the renewed certificate from the next handshake on, leaves open
// connections alone, and keeps the old one if the new one can't be used.
func TestReloadRenewsTheCertificate(t *testing.T) {
	t.Parallel()
	s := prepare(t, "upstream.test")
	e := &env{now: time.Now, stdin: strings.NewReader(""), stdout: io.Discard, stderr: newOutput(),
		lookup: func(string) (string, bool) { return "", false }}
	c := newCompiler(openHost(t))
	l, _, diags := c.load(t.Context(), s.config, e)
	if l == nil {
		t.Fatal(diags)
	}
	a, err := newApp(c, l, time.Now, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := listen("127.0.0.1:0", "server.listen")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx, ln, nil) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	dial := func() (*tls.Conn, int64) {
		t.Helper()
		conn, err := tls.Dial("tcp", s.addr, s.trusts())
		if err != nil {
			t.Fatal(err)
		}
		return conn, conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	serial := func() int64 {
		t.Helper()
		conn, n := dial()
		_ = conn.Close()
		return n
	}
	open, first := dial()
	defer open.Close()
	install(t, s.dir, s.house.sign(t, "proxy.test"))
	if n := serial(); n != first {
		t.Errorf("certificate %d before the reload, want %d", n, first)
	}
	a.reload(t.Context(), e, s.config, byHangup)
	renewed := s.house.serial
	if n := serial(); n != renewed {
		t.Errorf("certificate %d after the reload, want %d", n, renewed)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "tls.key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a.reload(t.Context(), e, s.config, byHangup)
	if n := serial(); n != renewed {
		t.Errorf("certificate %d after a reload that was refused, want %d", n, renewed)
	}
	if _, err := io.WriteString(open, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(open).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 200") {
		t.Errorf("the connection of before answers %q, %v", line, err)
	}
}
