package watch

import (
	"net"
	"sync"
)

// Watched is a connection whose peer is watched during a request.
type Watched interface {
	// Arm has gone called once when the peer has gone, or at once, before Arm returns,
	// if it had gone already. gone must be cheap, as it holds up the news of other
	// connections, and must not call Arm or Disarm.
	Arm(gone func())
	// Disarm ends what Arm began. When it returns no call is in progress, and none
	// will come. Disarming twice is fine.
	Disarm()
}

// Of finds the watched connection in c, or below it if c is a TLS connection or another
// wrapper with a NetConn method.
func Of(c net.Conn) (Watched, bool) {
	for c != nil {
		if w, ok := c.(Watched); ok {
			return w, true
		}
		below, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil, false
		}
		c = below.NetConn()
	}
	return nil, false
}

// Conn is an accepted TCP connection. It embeds the real one so that nothing that the
// standard library does for TCP alone (writev, sendfile) is lost.
type Conn struct {
	*net.TCPConn
	set *Set
	registration

	mu    sync.Mutex // held while gone is called, so that Disarm waits for it
	gone  bool       // the peer has
	armed func()
}

// Arm implements [Watched].
func (c *Conn) Arm(gone func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		gone()
		return
	}
	c.armed = gone
}

// Disarm implements [Watched].
func (c *Conn) Disarm() {
	c.mu.Lock()
	c.armed = nil
	c.mu.Unlock()
}

// Close ends the watch and closes the connection. It never waits for a call of gone, so
// that gone may close the connection.
func (c *Conn) Close() error {
	c.set.remove(c)
	return c.TCPConn.Close()
}

// Listener makes l accept watched connections: [Conn] for TCP, others as they are.
func (s *Set) Listener(l net.Listener) net.Listener { return &listener{l, s} }

type listener struct {
	net.Listener
	set *Set
}

func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := accepted.(*net.TCPConn)
	if !ok {
		return accepted, nil
	}
	c := &Conn{TCPConn: tcp, set: l.set}
	l.set.add(c)
	return c, nil
}
