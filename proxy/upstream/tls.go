package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// tlsConfig is how TLS is spoken with a target. The certificate is always verified, for
// the name that is sent as SNI; an IP address is verified and, as RFC 6066 has it, not
// sent. Only HTTP/1.1 is offered. The newest session ticket is kept for resumption; two
// targets never share one, as one of them may trust an authority that the other doesn't.
func tlsConfig(t *Target, roots *x509.CertPool) *tls.Config {
	return &tls.Config{
		ServerName:         t.serverName,
		RootCAs:            trusted(roots, t.roots),
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(1),
	}
}

// trusted adds a target's own authorities to the others; nil stands for the system's.
func trusted(roots *x509.CertPool, pem string) *x509.CertPool {
	if pem == "" {
		return roots
	}
	if roots != nil {
		roots = roots.Clone()
	} else {
		var err error
		if roots, err = x509.SystemCertPool(); err != nil {
			roots = x509.NewCertPool() // a bare container has none
		}
	}
	roots.AppendCertsFromPEM([]byte(pem))
	return roots
}

// handshake agrees on TLS over the connection's socket.
func (a *Attempt) handshake(c *conn) *Error {
	patience := a.limits.TLS
	if patience == 0 {
		patience = a.limits.Connect
	}
	limit, late := a.limit(time.Now(), patience, engine.NetTLSTimeout)
	secure := tls.Client(c.raw, a.pool.tls)
	err := c.raw.SetDeadline(limit)
	if err == nil {
		err = secure.Handshake()
	}
	if err == nil {
		err = c.raw.SetDeadline(time.Time{})
	}
	if err != nil {
		return a.fail(engine.OpTLS, tlsKind(err, late), true, err)
	}
	c.rw, c.secure = secure, true
	return nil
}
