package proxy

import (
	"crypto/tls"
	"net"
	"time"
)

// handshakeTimeout bounds a caller's TLS handshake: two round trips on a bad line, and the
// longest that a connection on which nothing is said can hold up a drain.
const handshakeTimeout = 10 * time.Second

// secureListener speaks TLS over the connections of another listener.
type secureListener struct {
	net.Listener
	config *tls.Config
}

// Accept doesn't shake hands, which would hold up the other callers.
func (l *secureListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &secureConn{tls.Server(c, l.config)}, nil
}

// secureConn is a caller's connection with TLS. The watch finds the socket below it by its
// NetConn method.
type secureConn struct{ *tls.Conn }

// Handshake is called by fasthttp before it reads. Its own limit is that of a request.
func (c *secureConn) Handshake() error {
	if err := c.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	if err := c.Conn.Handshake(); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// CloseRead lets nothing more come in, as a TCP connection's does.
func (c *secureConn) CloseRead() error {
	if socket, ok := c.NetConn().(interface{ CloseRead() error }); ok {
		return socket.CloseRead()
	}
	return nil
}
