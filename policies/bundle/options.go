package bundle

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry"

	"github.com/fourgate-dev/fourgate/engine"
)

const (
	// DefaultPoll is how often a source asks. A server that knows ETags answers an
	// unchanged bundle with a few bytes.
	DefaultPoll = time.Minute
	// DefaultTimeout bounds one download, and with it the wait at a start.
	DefaultTimeout = 15 * time.Second
	// DefaultMaxBytes is some hundred times what a large policy takes.
	DefaultMaxBytes = 8 << 20
	// unpackFactor times MaxBytes is the most that a bundle may hold unpacked. Rego and
	// JSON shrink to a fifth or so; an archive made to fill memory, to a thousandth.
	unpackFactor = 8
	// storeFactor times MaxBytes of layers are kept while a registry is asked.
	storeFactor = 4
)

const ociScheme = "oci"

// Options say where a bundle is, whose it must be and what happens to it. URL and Key
// are needed.
type Options struct {
	// URL is https://HOST/PATH, http://HOST/PATH or oci://REGISTRY/REPOSITORY:TAG.
	URL string
	// Key is the public key of whoever signs bundles.
	Key Key
	// Token is shown to the server as a bearer token. A registry gets one of the form
	// USER:PASSWORD as user and password. Empty shows none.
	Token engine.Secret
	// AuthoritiesPEM are certificates in PEM form that are trusted besides the system's.
	AuthoritiesPEM string
	// Poll is the time between two questions, give or take a quarter; 0 means
	// [DefaultPoll]. After a failure it begins with a second and doubles up to Poll.
	Poll time.Duration
	// LongPoll is how long a server that can do so holds its answer back until there is
	// a new bundle, in whole seconds; 0 doesn't ask for it. Registries can't.
	LongPoll time.Duration
	// Timeout bounds one download; 0 means [DefaultTimeout]. LongPoll comes on top.
	Timeout time.Duration
	// Cache is the directory of the last good bundle; empty keeps none. It may be shared.
	Cache string
	// KeepsNothing leaves the cache as it is: it is read, but never written.
	KeepsNothing bool
	// MaxBytes is the most bytes that a bundle may have; 0 means [DefaultMaxBytes]. It may
	// hold eight times as much unpacked.
	MaxBytes int64
	// Accept compiles a bundle and puts it in force; its error is the reason to refuse
	// it. One call runs at a time; Open, Poll or the source's own goroutine makes it. It
	// must not call the source. Nil accepts everything.
	Accept func(context.Context, Bundle) error
	// Logger gets a line for each change, none for a question that changed nothing; nil
	// logs nothing.
	Logger *slog.Logger
	// Metrics count what the source does; nil counts nothing. They may outlive it.
	Metrics *Metrics
}

// place is where a bundle is, taken apart.
type place struct {
	scheme string // of the requests: http or https
	host   string // with its port
	path   string // of an HTTP bundle, with its query
	ref    string // of an OCI bundle: REGISTRY/REPOSITORY:TAG
	shown  string // the URL without its query, which may hold a signature: for logs and errors
}

func (p place) isOCI() bool { return p.ref != "" }

func parsePlace(text string) (place, error) {
	if ref, ok := strings.CutPrefix(text, ociScheme+"://"); ok {
		parsed, err := registry.ParseReference(ref)
		if err != nil {
			return place{}, errors.New("cannot use bundle url: it names no artifact; write oci://REGISTRY/REPOSITORY:TAG")
		}
		parsed.Reference = cmp.Or(parsed.Reference, "latest")
		p := place{scheme: "https", host: parsed.Host(), ref: parsed.String(), shown: ociScheme + "://" + parsed.String()}
		if isLoopback(p.host) {
			p.scheme = "http"
		}
		return p, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil: // which shows the URL
		return place{}, errors.New("cannot use bundle url: it is none; write https://HOST/PATH or oci://REGISTRY/REPOSITORY:TAG")
	case u.User != nil:
		return place{}, fmt.Errorf("cannot use bundle url at %s: it has a user; set token instead", u.Host)
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return place{}, fmt.Errorf("cannot use bundle url with scheme %q and host %q: write https://HOST/PATH or oci://REGISTRY/REPOSITORY:TAG", u.Scheme, u.Host)
	}
	p := place{scheme: u.Scheme, host: u.Host, path: u.RequestURI(), shown: u.Scheme + "://" + u.Host + u.EscapedPath()}
	return p, nil
}

// isLoopback says whether a host, perhaps with a port, is this machine by its name.
func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// prepared are options with everything taken apart and filled in.
type prepared struct {
	Options
	place  place
	verify verifier
	base   *http.Transport
}

func (o Options) prepare() (*prepared, error) {
	p := &prepared{Options: o}
	var err, keyErr, caErr error
	p.place, err = parsePlace(o.URL)
	p.verify, keyErr = o.Key.verifier()
	if err == nil && p.place.scheme == "http" && !o.Token.Empty() && !isLoopback(p.place.host) {
		err = fmt.Errorf("cannot use bundle url %s with a token: anybody on the way could read it; use https", p.place.shown)
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.AuthoritiesPEM != "" {
		trust.RootCAs, caErr = authorities(o.AuthoritiesPEM)
	}
	if err := errors.Join(err, keyErr, caErr); err != nil {
		return nil, err
	}
	p.Poll = cmp.Or(p.Poll, DefaultPoll)
	p.Timeout = cmp.Or(p.Timeout, DefaultTimeout)
	p.MaxBytes = cmp.Or(p.MaxBytes, DefaultMaxBytes)
	if p.Accept == nil {
		p.Accept = func(context.Context, Bundle) error { return nil }
	}
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	if p.Metrics == nil {
		p.Metrics = NewMetrics()
	}
	p.Logger = p.Logger.With("bundle", p.place.shown)
	p.base = &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     trust,
		TLSHandshakeTimeout: DefaultTimeout,
		ForceAttemptHTTP2:   true,
		// What comes is the archive itself, and its size is what is bounded.
		DisableCompression: true,
	}
	return p, nil
}

func authorities(text string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, errors.New("cannot use the bundle server's authorities: there is no certificate in PEM form in them")
	}
	return pool, nil
}
