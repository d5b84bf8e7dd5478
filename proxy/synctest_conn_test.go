package proxy_test

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// memConn is one end of a connection in memory that behaves as TCP does where the proxy
// could notice: it has buffers of a bounded size, deadlines, an orderly end and a reset.
// All its waiting is on conditions and timers, so that it stands still in a bubble.
type memConn struct {
	in, out *memPipe // what this end reads and writes
}

// memPair makes a connection whose buffers hold room bytes in each direction.
func memPair(room int) (*memConn, *memConn) {
	a, b := newMemPipe(room), newMemPipe(room)
	return &memConn{a, b}, &memConn{b, a}
}

func (c *memConn) Read(p []byte) (int, error)         { return c.in.read(p) }
func (c *memConn) Write(p []byte) (int, error)        { return c.out.write(p) }
func (c *memConn) SetReadDeadline(t time.Time) error  { return c.in.reads.set(c.in, t) }
func (c *memConn) SetWriteDeadline(t time.Time) error { return c.out.writes.set(c.out, t) }
func (c *memConn) LocalAddr() net.Addr                { return memAddr{} }
func (c *memConn) RemoteAddr() net.Addr               { return memAddr{} }

func (c *memConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// Close ends both directions in order.
func (c *memConn) Close() error {
	c.in.leave()
	c.out.end(io.EOF)
	return nil
}

// reset ends both directions as a RST does, behind what was already sent.
func (c *memConn) reset() {
	c.in.leave()
	c.out.end(syscall.ECONNRESET)
}

// left says whether the other end has closed or reset the connection.
func (c *memConn) left() bool {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	return c.in.ended != nil
}

type memAddr struct{}

func (memAddr) Network() string { return "memory" }
func (memAddr) String() string  { return "memory" }

// memPipe is one direction.
type memPipe struct {
	mu            sync.Mutex
	changed       sync.Cond
	buf           []byte
	room          int
	taken         int   // bytes that were read
	ended         error // the writer's end: io.EOF or a reset
	unread        bool  // the reader has left
	reads, writes memDeadline
}

func newMemPipe(room int) *memPipe {
	p := &memPipe{room: room}
	p.changed.L = &p.mu
	return p
}

func (p *memPipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.unread:
			return 0, net.ErrClosed
		case p.reads.passed():
			return 0, os.ErrDeadlineExceeded
		case len(p.buf) > 0:
			n := copy(b, p.buf)
			p.buf = p.buf[:copy(p.buf, p.buf[n:])]
			p.taken += n
			p.changed.Broadcast()
			return n, nil
		case p.ended != nil:
			return 0, p.ended
		}
		p.changed.Wait()
	}
}

func (p *memPipe) write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.ended != nil:
			return n, net.ErrClosed
		case p.unread:
			return n, syscall.EPIPE
		case p.writes.passed():
			return n, os.ErrDeadlineExceeded
		case len(b) == 0:
			return n, nil
		}
		if k := min(len(b), p.room-len(p.buf)); k > 0 {
			p.buf = append(p.buf, b[:k]...)
			b, n = b[k:], n+k
			p.changed.Broadcast()
			continue
		}
		p.changed.Wait()
	}
}

func (p *memPipe) end(how error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.ended = how
	}
	p.changed.Broadcast()
}

func (p *memPipe) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unread = true
	p.reads.stop()
	p.writes.stop()
	p.changed.Broadcast()
}

func (p *memPipe) bytesTaken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// memDeadline is a point in time that wakes a direction. The pipe's mutex guards it.
type memDeadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *memDeadline) set(p *memPipe, t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.stop()
	d.at = t
	if !t.IsZero() && !p.unread {
		d.timer = time.AfterFunc(time.Until(t), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.changed.Broadcast()
		})
	}
	p.changed.Broadcast()
	return nil
}

func (d *memDeadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (d *memDeadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }
