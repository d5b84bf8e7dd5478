package upstream

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// Target is where a provider's calls go. Make one per provider with [NewTarget]; it is
// immutable and safe for concurrent use. Targets of the same scheme, host, port and TLS
// settings share idle connections, what is known of the host's addresses, and TLS
// sessions.
type Target struct {
	secure bool
	addr   string // host:port to dial
	name   string // to look up
	port   string
	host   string // value of the Host field
	base   string // path before the request's path, without a final slash
	key    string // of the pool

	serverName string // that the certificate must have
	roots      string // PEM text of authorities besides the system's
}

// NewTarget reads a provider's base URL as [ParseTarget] does, and its TLS settings.
func NewTarget(baseURL string, settings engine.TLSSpec) (*Target, error) {
	t, err := ParseTarget(baseURL)
	if err != nil || settings == (engine.TLSSpec{}) {
		return t, err
	}
	if roots := settings.CertificatesPEM; roots != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(roots)) {
		return nil, fmt.Errorf("cannot use the authorities for host %q: there is no certificate in PEM form", t.name)
	}
	t.roots = settings.CertificatesPEM
	if settings.ServerName != "" {
		t.serverName = settings.ServerName
	}
	sum := sha256.Sum256([]byte(t.roots))
	t.key += " " + t.serverName + " " + hex.EncodeToString(sum[:])
	return t, nil
}

// ParseTarget reads a provider's base URL: http or https, a host, perhaps a port and a
// path. User information, a query and a fragment are errors, and are not repeated in the
// error as they may be secret.
func ParseTarget(baseURL string) (*Target, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("cannot read base URL: it is no URL; write one such as https://api.example.com/v1")
	}
	t := &Target{name: u.Hostname(), host: u.Host, base: strings.TrimRight(u.EscapedPath(), "/")}
	port := u.Port()
	switch u.Scheme {
	case "http":
		port = orDefault(port, "80")
	case "https":
		t.secure = true
		port = orDefault(port, "443")
	default:
		return nil, fmt.Errorf("cannot use base URL with scheme %q: write http:// or https://", u.Scheme)
	}
	switch {
	case t.name == "":
		return nil, fmt.Errorf("cannot use base URL without a host: write one such as https://api.example.com/v1")
	case u.User != nil:
		return nil, fmt.Errorf("cannot use base URL for host %q with a user name in it: put the credential in a key block", t.name)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("cannot use base URL for host %q with a query or fragment: end it after the path", t.name)
	case !plain(t.host) || !plain(t.base):
		return nil, fmt.Errorf("cannot use base URL for host %q: percent-encode the path and write the host in ASCII", t.name)
	}
	t.port, t.serverName = port, t.name
	t.addr = net.JoinHostPort(t.name, port)
	t.key = u.Scheme + "://" + t.addr
	return t, nil
}

// Addr returns the host, as the URL names it, and the port.
func (t *Target) Addr() string { return t.addr }

func orDefault(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// plain says whether s has nothing but visible ASCII, so that it can stand in a request
// line or a Host field.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
