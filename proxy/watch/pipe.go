package watch

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// pipeAhead bounds what is read ahead: a pipelined request or two. With more unread, the
// peer's close isn't seen.
const pipeAhead = 64 << 10

// PipeConn is a watched in-memory connection; see [Pipe].
type PipeConn struct {
	net.Conn

	mu       sync.Mutex
	change   sync.Cond     // of what is below
	ahead    []byte        // read while armed and not yet asked for
	err      error         // what ended reading ahead, for whoever reads next
	closed   bool          // by us
	deadline time.Time     // for reads, as the user has set it
	reader   chan struct{} // closed at the end of readAhead; nil while disarmed
	reading  bool          // readAhead goes on
}

// Pipe watches an in-memory connection, such as an end of [net.Pipe], for tests that run
// without sockets. While armed it reads ahead, which a socket's watch need not do; the
// bytes are kept for later reads. c must honour read deadlines.
func Pipe(c net.Conn) *PipeConn {
	p := &PipeConn{Conn: c}
	p.change.L = &p.mu
	return p
}

// Arm implements [Watched].
func (p *PipeConn) Arm(gone func()) {
	p.Disarm()
	p.mu.Lock()
	ended := p.err != nil
	if !ended {
		// A deadline that was meant for a read must not end the watch.
		_ = p.Conn.SetReadDeadline(time.Time{})
		p.reader, p.reading = make(chan struct{}), true
		go p.readAhead(gone, p.reader)
	}
	p.mu.Unlock()
	if ended {
		gone()
	}
}

// Disarm implements [Watched].
func (p *PipeConn) Disarm() {
	p.mu.Lock()
	reader := p.reader
	p.mu.Unlock()
	if reader == nil {
		return
	}
	_ = p.Conn.SetReadDeadline(time.Unix(1, 0))
	<-reader
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reader = nil
	_ = p.Conn.SetReadDeadline(p.deadline)
}

func (p *PipeConn) readAhead(gone func(), done chan struct{}) {
	defer close(done)
	var buf [512]byte
	for {
		n, err := p.Conn.Read(buf[:])
		p.mu.Lock()
		p.ahead = append(p.ahead, buf[:n]...)
		ended := err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
		if ended {
			p.err = err
		}
		p.reading = err == nil && len(p.ahead) <= pipeAhead
		on, tell := p.reading, ended && !p.closed
		p.change.Broadcast()
		p.mu.Unlock()
		if tell {
			gone()
		}
		if !on {
			return
		}
	}
}

// Read gives what was read ahead first. While the connection is armed it waits for that
// alone, without a deadline.
func (p *PipeConn) Read(b []byte) (int, error) {
	p.mu.Lock()
	for len(p.ahead) == 0 && p.err == nil && p.reading {
		p.change.Wait()
	}
	if n := copy(b, p.ahead); n > 0 {
		p.ahead = p.ahead[n:]
		p.mu.Unlock()
		return n, nil
	}
	err := p.err
	p.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

// SetReadDeadline bounds reads; while armed it counts from Disarm on.
func (p *PipeConn) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadline = t
	if p.reader != nil {
		return nil
	}
	return p.Conn.SetReadDeadline(t)
}

// SetDeadline bounds reads and writes.
func (p *PipeConn) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

// Close closes the connection; gone isn't called for that.
func (p *PipeConn) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.Conn.Close()
}
