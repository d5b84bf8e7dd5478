package state

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// address is where the backend is and how to introduce oneself.
type address struct {
	network, at    string
	server         string // the certificate's name; empty without TLS
	user, password string
	database       int
	roots          *x509.CertPool
}

const (
	defaultPort = "6379"
	maxDatabase = 1 << 20 // far above what anybody configures
)

// parseAddress reads the URL of a backend. No error repeats any of it: a password may be
// anywhere in one that is malformed.
func parseAddress(text string) (address, error) {
	u, err := url.Parse(text)
	if err != nil {
		return address{}, errors.New("cannot read the URL of the shared state; write redis://USER:PASSWORD@HOST:PORT/DATABASE and escape special characters of the password, such as %40 for @")
	}
	a := address{network: "tcp"}
	if u.User != nil {
		a.user = u.User.Username()
		a.password, _ = u.User.Password()
	}
	database := strings.TrimPrefix(u.Path, "/")
	switch u.Scheme {
	case "redis", "valkey", "rediss", "valkeys":
		host, port := u.Hostname(), u.Port()
		if host == "" {
			return address{}, errors.New("the URL of the shared state names no host; write redis://HOST:PORT")
		}
		if port == "" {
			port = defaultPort
		}
		a.at = net.JoinHostPort(host, port)
		if u.Scheme == "rediss" || u.Scheme == "valkeys" {
			a.server = host
		}
	case "unix":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return address{}, errors.New("the URL of the shared state names no absolute path; write unix:///PATH/TO/SOCKET")
		}
		a.network, a.at, database = "unix", u.Path, ""
	default:
		return address{}, errors.New("the URL of the shared state begins with an unknown scheme; known are redis, rediss, valkey, valkeys and unix")
	}
	query := u.Query()
	if query.Has("db") {
		database = query.Get("db")
		query.Del("db")
	}
	if len(query) > 0 || u.Fragment != "" {
		return address{}, errors.New("the URL of the shared state has parameters that are not known; only ?db=NUMBER is")
	}
	if database != "" {
		if a.database, err = strconv.Atoi(database); err != nil || a.database < 0 || a.database > maxDatabase {
			return address{}, errors.New("the URL of the shared state names no database by its number; write redis://HOST:PORT/0")
		}
	}
	return a, nil
}

// String is the address without user and password.
func (a address) String() string {
	if a.network == "unix" {
		return fmt.Sprintf("unix://%s?db=%d", a.at, a.database)
	}
	scheme := "redis"
	if a.server != "" {
		scheme = "rediss"
	}
	return fmt.Sprintf("%s://%s/%d", scheme, a.at, a.database)
}

// dial opens a connection.
func (a address) dial(ctx context.Context, d *net.Dialer) (net.Conn, error) {
	if a.server == "" {
		return d.DialContext(ctx, a.network, a.at)
	}
	secure := tls.Dialer{NetDialer: d, Config: &tls.Config{ServerName: a.server, RootCAs: a.roots, MinVersion: tls.VersionTLS12}}
	return secure.DialContext(ctx, a.network, a.at)
}

// maxWhy bounds what is repeated of an error: its text may come from the backend.
const maxWhy = 200

// clean is the text of an error as it may be shown.
func (a address) clean(err error) string {
	text := strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), fmt.Sprintf("no answer within %v", callTimeout))
	text, _, _ = strings.Cut(text, ". script: ") // where in our script, which helps nobody
	if a.password != "" {
		text = strings.ReplaceAll(text, a.password, "***")
	}
	text = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxWhy {
		text = strings.ToValidUTF8(text[:maxWhy], "") + " …"
	}
	return text
}
