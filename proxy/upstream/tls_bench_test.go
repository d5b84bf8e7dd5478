//go:build unix

package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/fourgate-dev/fourgate/engine"
)

// BenchmarkTLS is one 1.5 kB answer over a kept connection, beside the same by fasthttp,
// and what it costs where none is kept: with the session resumed, and with a whole
// handshake. Both ends are in the process.
func BenchmarkTLS(b *testing.B) {
	house := newAuthority(b)
	config := &tls.Config{Certificates: []tls.Certificate{house.sign(b, "127.0.0.1", time.Now().Add(time.Hour))}}
	roots := x509.NewCertPool()
	roots.AddCert(house.cert)
	limits := engine.Limits{Connect: 5 * time.Second, TLS: 5 * time.Second, Headers: 240 * time.Second, Idle: 120 * time.Second}
	start := func(b *testing.B) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		return answeringOn(b, tls.NewListener(l, config), benchAnswer)
	}
	ours := func(name string, idle int, forget bool) {
		b.Run(name, func(b *testing.B) {
			t, err := ParseTarget("https://" + start(b))
			if err != nil {
				b.Fatal(err)
			}
			options := Options{MaxIdle: idle, IdleFor: time.Minute, RootCAs: roots}
			c := New(options)
			defer func() { c.Close() }()
			buf := make([]byte, 4096)
			b.ReportAllocs()
			report := cpu(b)
			for b.Loop() {
				if forget { // a client of its own has no ticket
					c.Close()
					c = New(options)
				}
				benchCall(b, c, t, limits, buf)
			}
			report()
		})
	}
	ours("kept", 4, false)
	ours("resumed", 0, false)
	ours("whole handshake", 0, true)
	b.Run("kept, fasthttp", func(b *testing.B) {
		addr := start(b)
		c := &fasthttp.HostClient{
			Addr: addr, IsTLS: true, TLSConfig: &tls.Config{RootCAs: roots},
			NoDefaultUserAgentHeader: true, MaxIdemponentCallAttempts: 1, StreamResponseBody: true,
		}
		defer c.CloseIdleConnections()
		var req fasthttp.Request
		var resp fasthttp.Response
		buf := make([]byte, 4096)
		b.ReportAllocs()
		report := cpu(b)
		for b.Loop() {
			fastCall(b, c, "https://"+addr, &req, &resp, buf)
		}
		report()
	})
}
