package upstream

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
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
	return &authority{cert, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// sign makes a certificate for a host's name or address that holds until end.
func (a *authority) sign(tb testing.TB, host string, end time.Time) tls.Certificate {
	tb.Helper()
	plan := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: end.Add(-2 * time.Hour), NotAfter: end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		plan.IPAddresses = []net.IP{ip}
	} else {
		plan.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
}

// speaks puts TLS under a script.
func speaks(config *tls.Config, script func(p *peer)) func(p *peer) {
	return func(p *peer) {
		c := tls.Server(p.Conn, config)
		p.Conn = c
		p.in.Reset(c)
		script(p)
	}
}

// at is the base URL of a served one under another host's name, with TLS.
func at(base, host string) string {
	_, port, _ := strings.Cut(strings.TrimPrefix(base, "http://"), ":")
	return "https://" + net.JoinHostPort(host, port)
}

// loopback resolves every name to the address that serve listens on.
type loopback struct{}

func (loopback) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return addrs("127.0.0.1"), nil
}

func secureTarget(t *testing.T, base string, settings engine.TLSSpec) *Target {
	t.Helper()
	tg, err := NewTarget(base, settings)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func answerAll(p *peer) {
	for p.request() != "" {
		p.send(okOne)
	}
}

// What the upstream sees of us in the handshake.
func TestHello(t *testing.T) {
	t.Parallel()
	house := newAuthority(t)
	cert := house.sign(t, "api.upstream.test", time.Now().Add(time.Hour))
	type hello struct {
		SNI      string
		Protocol []string
		Least    uint16
	}
	f := func(name, host, serverName string, want hello) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan hello, 1)
			base := serve(t, speaks(&tls.Config{
				Certificates: []tls.Certificate{cert},
				GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
					least := h.SupportedVersions[0]
					for _, v := range h.SupportedVersions {
						least = min(least, v)
					}
					got <- hello{h.ServerName, h.SupportedProtos, least}
					return nil, nil
				},
			}, answerAll))
			c := newClient(t, Options{Resolver: loopback{}})
			tg := secureTarget(t, at(base, host), engine.TLSSpec{CertificatesPEM: house.pem, ServerName: serverName})
			a := c.Start(tg, post("x"), long, time.Time{})
			defer a.Close()
			if err := a.Open(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, <-got); diff != "" {
				t.Errorf("hello (-want +got):\n%s", diff)
			}
		})
	}
	f("host of the URL", "api.upstream.test", "", hello{"api.upstream.test", []string{"http/1.1"}, tls.VersionTLS12})
	f("another name", "edge.upstream.test", "api.upstream.test", hello{"api.upstream.test", []string{"http/1.1"}, tls.VersionTLS12})
	f("name for an address", "127.0.0.1", "api.upstream.test", hello{"api.upstream.test", []string{"http/1.1"}, tls.VersionTLS12})
}

// Nothing makes an upstream trusted but a certificate that holds now, for this name, by an
// authority of ours.
func TestVerification(t *testing.T) {
	t.Parallel()
	house, stranger := newAuthority(t), newAuthority(t)
	const host = "api.upstream.test"
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	roots := x509.NewCertPool()
	roots.AddCert(house.cert)
	f := func(name string, roots *x509.CertPool, settings engine.TLSSpec, upstream *tls.Config, trusted bool) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := serve(t, speaks(upstream, answerAll))
			c := newClient(t, Options{Resolver: loopback{}, RootCAs: roots})
			a := c.Start(secureTarget(t, at(base, host), settings), post("x"), long, time.Time{})
			if !trusted {
				openError(t, a, engine.NetTLSVerify, engine.OpTLS, true)
				return
			}
			defer a.Close()
			if err := a.Open(); err != nil {
				t.Error(err)
			}
		})
	}
	shows := func(cert tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{cert}} }
	good := shows(house.sign(t, host, soon))
	own := engine.TLSSpec{CertificatesPEM: house.pem}
	f("authority of the target", nil, own, good, true)
	f("authority of the client", roots, engine.TLSSpec{}, good, true)
	f("both", roots, engine.TLSSpec{CertificatesPEM: stranger.pem}, good, true)
	f("authority of nobody", nil, engine.TLSSpec{}, good, false)
	f("authority of somebody else", nil, engine.TLSSpec{CertificatesPEM: stranger.pem}, good, false)
	f("expired", nil, own, shows(house.sign(t, host, past)), false)
	f("for another host", nil, own, shows(house.sign(t, "www.upstream.test", soon)), false)
	f("for another name than the one set", nil, engine.TLSSpec{CertificatesPEM: house.pem, ServerName: "www.upstream.test"}, good, false)
	old := shows(house.sign(t, host, soon))
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	f("TLS 1.1", nil, own, old, false)
	mail := shows(house.sign(t, host, soon))
	mail.NextProtos = []string{"imap"}
	f("another protocol alone", nil, own, mail, false)
}

func TestTargetWithoutACertificate(t *testing.T) {
	t.Parallel()
	_, err := NewTarget("https://api.upstream.test", engine.TLSSpec{CertificatesPEM: "-----BEGIN PRIVATE KEY-----\nhush\n"})
	want := `cannot use the authorities for host "api.upstream.test": there is no certificate in PEM form`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A second connection resumes the session of the first, and a target that trusts others
// doesn't get it.
func TestSessions(t *testing.T) {
	t.Parallel()
	house := newAuthority(t)
	const host = "api.upstream.test"
	resumed := make(chan bool, 1)
	config := &tls.Config{Certificates: []tls.Certificate{house.sign(t, host, time.Now().Add(time.Hour))}}
	base := serve(t, speaks(config, func(p *peer) {
		if p.request() == "" {
			return
		}
		resumed <- p.Conn.(*tls.Conn).ConnectionState().DidResume
		p.send(okOne)
		p.gone()
	}))
	c := New(Options{Resolver: loopback{}})
	t.Cleanup(c.Close)
	mine := secureTarget(t, at(base, host), engine.TLSSpec{CertificatesPEM: house.pem})
	other := secureTarget(t, at(base, host), engine.TLSSpec{CertificatesPEM: house.pem + "\n"})
	for i, step := range []struct {
		target *Target
		want   bool
	}{{mine, false}, {mine, true}, {mine, true}, {other, false}, {other, true}} {
		a := c.Start(step.target, post("x"), long, time.Time{})
		if err := a.Open(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		a.Close()
		if got := <-resumed; got != step.want {
			t.Errorf("connection %d: resumed %v, want %v", i+1, got, step.want)
		}
	}
	a := newClient(t, Options{Resolver: loopback{}}).Start(secureTarget(t, at(base, host), engine.TLSSpec{}), post("x"), long, time.Time{})
	openError(t, a, engine.NetTLSVerify, engine.OpTLS, true)
}

// breaking is a connection whose Write of a given number fails without having taken more
// than a few bytes. It has no descriptor to look at.
type breaking struct {
	net.Conn
	left   *atomic.Int32 // writes until the failing one; negative: none fails
	accept int
}

func (b breaking) Write(p []byte) (int, error) {
	if b.left.Add(-1) == -1 {
		n, _ := b.Conn.Write(p[:b.accept])
		return n, &net.OpError{Op: "write", Err: syscall.EPIPE}
	}
	return b.Conn.Write(p)
}

// Over TLS a request is redone exactly if not one record of it has been written: before
// that the upstream can't know of any byte, as it can't open a part of a record. The
// upstream counts.
func TestRedoOverTLS(t *testing.T) {
	t.Parallel()
	house := newAuthority(t)
	const host = "api.upstream.test"
	large := strings.Repeat("x", 100_000) // many records
	f := func(name, body string, writes int32, accept int, redone bool) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dials, handshakes, begun, whole, left atomic.Int32
			left.Store(-1)
			config := &tls.Config{Certificates: []tls.Certificate{house.sign(t, host, time.Now().Add(time.Hour))}}
			base := serve(t, speaks(config, func(p *peer) {
				if p.Conn.(*tls.Conn).Handshake() == nil {
					handshakes.Add(1)
				}
				for {
					r := p.request()
					if r == "" {
						return
					}
					begun.Add(1)
					if !strings.HasSuffix(r, "end") {
						return
					}
					whole.Add(1)
					p.send(okOne)
				}
			}))
			c := newClient(t, Options{Resolver: loopback{}, MaxIdle: 1, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials.Add(1)
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return breaking{conn, &left, accept}, err
			}})
			tg := secureTarget(t, at(base, host), engine.TLSSpec{CertificatesPEM: house.pem})
			first := c.Start(tg, post("end"), long, time.Time{})
			if err := first.Open(); err != nil {
				t.Fatal(err)
			}
			if n, err := first.Read(make([]byte, 10)); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			first.Close()
			left.Store(writes)
			second := c.Start(tg, post(body, "end"), long, time.Time{})
			err := second.Open()
			second.Close()
			if redone {
				if err != nil || second.Reused() || dials.Load() != 2 || handshakes.Load() != 2 || begun.Load() != 2 || whole.Load() != 2 {
					t.Errorf("error %v, reused %v, %d dials, %d handshakes, %d requests begun, %d whole; want one redo on a fresh connection and 2 whole requests",
						err, second.Reused(), dials.Load(), handshakes.Load(), begun.Load(), whole.Load())
				}
				return
			}
			if err == nil {
				t.Fatal("the request succeeded")
			}
			wantError(t, err, engine.NetConnReset, engine.OpWrite, false)
			if !second.Reused() || dials.Load() != 1 || handshakes.Load() != 1 || whole.Load() != 1 {
				t.Errorf("reused %v, %d dials, %d handshakes, %d whole requests; a request that may have arrived was redone",
					second.Reused(), dials.Load(), handshakes.Load(), whole.Load())
			}
		})
	}
	f("nothing written", "small", 0, 0, true)
	f("nothing of many records", large, 0, 0, true)
	f("a part of the first record", "small", 0, 20, true)
	f("one record", large, 1, 0, false)
	f("one record and a part", large, 1, 20, false)
}

// An idle TLS connection that the upstream has closed is replaced before anything is
// written to it.
func TestClosedIdleTLSConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	house := newAuthority(t)
	const host = "api.upstream.test"
	config := &tls.Config{Certificates: []tls.Certificate{house.sign(t, host, time.Now().Add(time.Hour))}}
	for _, how := range []string{"close_notify and FIN", "FIN", "RST"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			idle, ended := make(chan struct{}), make(chan struct{})
			base := serve(t, func(p *peer) {
				raw := p.Conn.(*net.TCPConn)
				speaks(config, func(p *peer) {
					if p.request() == "" {
						return
					}
					requests.Add(1)
					p.send(okOne)
					if p.n == 1 {
						<-idle
						switch how {
						case "FIN":
							_ = raw.Close()
						case "RST":
							_ = errors.Join(raw.SetLinger(0), raw.Close())
						default:
							_ = p.Close()
						}
						close(ended)
					}
					p.gone()
				})(p)
			})
			c := newClient(t, Options{Resolver: loopback{}})
			tg := secureTarget(t, at(base, host), engine.TLSSpec{CertificatesPEM: house.pem})
			for n := range 2 {
				a := c.Start(tg, post("x"), long, time.Time{})
				if err := a.Open(); err != nil {
					t.Fatal(err)
				}
				if _, err := a.Read(make([]byte, 10)); err != nil {
					t.Fatal(err)
				}
				a.Close()
				if a.Reused() {
					t.Error("a dead connection was used")
				}
				if n == 0 {
					close(idle)
					waitFor(t, ended, "the end of the idle connection")
				}
			}
			if requests.Load() != 2 {
				t.Errorf("%d requests came, want 2", requests.Load())
			}
		})
	}
}
