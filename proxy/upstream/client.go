package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Options are a client's settings. The zero value keeps no connection alive.
type Options struct {
	MaxIdle int // idle connections kept per scheme, host and port; 0 keeps none
	// IdleFor is how long an idle connection is kept; 0 keeps it until the upstream
	// closes it. Keep it below the providers' own limit.
	IdleFor time.Duration
	RootCAs *x509.CertPool // nil for the system's
	// Dial opens a connection; nil dials TCP. It must return soon after ctx is done.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Resolver finds the addresses that are dialled; nil is the system's. With Dial and
	// without a Resolver, Dial gets the names as they are. It must return soon after
	// ctx is done.
	Resolver Resolver
}

// Client keeps the idle connections to all upstreams. It is safe for concurrent use.
type Client struct {
	maxIdle int
	idleFor time.Duration
	roots   *x509.CertPool
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	resolve Resolver // nil leaves names to dial

	mu     sync.Mutex
	pools  map[string]*pool
	closed bool
	stop   chan struct{}
	done   chan struct{}
}

// pool has the idle connections of one kind of [Target], the last used on top: those below
// grow old and go when traffic falls.
type pool struct {
	tls  *tls.Config // nil for plain HTTP
	host *host       // nil if the target's address is dialled as it is

	mu     sync.Mutex
	idle   []*conn
	closed bool
}

// New makes a client. Close it when no attempt needs it any more.
func New(o Options) *Client {
	c := &Client{
		maxIdle: o.MaxIdle, idleFor: o.IdleFor, roots: o.RootCAs, dial: o.Dial, resolve: o.Resolver,
		pools: map[string]*pool{}, stop: make(chan struct{}), done: make(chan struct{}),
	}
	if c.dial == nil {
		c.dial = new(net.Dialer).DialContext
		if c.resolve == nil {
			c.resolve = net.DefaultResolver
		}
	}
	if c.idleFor > 0 && c.maxIdle > 0 {
		go c.sweep()
	} else {
		close(c.done)
	}
	return c
}

// Close closes the idle connections and waits for the client's goroutine. Attempts that
// run are not disturbed; their connections are closed when they end.
func (c *Client) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	close(c.stop)
	for _, p := range c.pools {
		p.close()
	}
	c.mu.Unlock()
	<-c.done
}

// pool returns the pool for a target.
func (c *Client) pool(t *Target) *pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pools[t.key]
	if p == nil {
		p = &pool{closed: c.closed}
		if t.secure {
			p.tls = tlsConfig(t, c.roots)
		}
		if _, err := netip.ParseAddr(t.name); err != nil && c.resolve != nil {
			p.host = &host{name: t.name, resolver: c.resolve}
		}
		c.pools[t.key] = p
	}
	return p
}

// take returns a live idle connection, or nil.
func (c *Client) take(p *pool, now time.Time) *conn {
	for {
		p.mu.Lock()
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			return nil
		}
		cn := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		if c.idleFor > 0 && now.Sub(cn.since) >= c.idleFor || cn.dead() {
			cn.close()
			continue
		}
		return cn
	}
}

// put keeps a connection for another attempt, or closes it.
func (c *Client) put(p *pool, cn *conn) {
	cn.r, cn.w = 0, 0
	if len(cn.buf) > bufferSize {
		cn.buf = make([]byte, bufferSize)
	}
	cn.since = time.Now()
	p.mu.Lock()
	if keep := !p.closed && len(p.idle) < c.maxIdle; keep {
		p.idle = append(p.idle, cn)
		cn = nil
	}
	p.mu.Unlock()
	if cn != nil {
		cn.close()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, cn := range p.idle {
		cn.close()
	}
	p.idle = nil
}

// sweep closes connections that have been idle for too long, so that none lingers after
// traffic has stopped.
func (c *Client) sweep() {
	defer close(c.done)
	// Half of the limit: a connection outlives it by half at most, and is not used then.
	tick := time.NewTicker(max(c.idleFor/2, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case now := <-tick.C:
			c.mu.Lock()
			pools := make([]*pool, 0, len(c.pools))
			for _, p := range c.pools {
				pools = append(pools, p)
			}
			c.mu.Unlock()
			for _, p := range pools {
				p.expire(now.Add(-c.idleFor))
			}
		}
	}
}

// expire closes what has been idle since limit or longer. The stack is in order of age.
func (p *pool) expire(limit time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.idle) && !p.idle[old].since.After(limit) {
		p.idle[old].close()
		old++
	}
	kept := copy(p.idle, p.idle[old:])
	clear(p.idle[kept:])
	p.idle = p.idle[:kept]
}
