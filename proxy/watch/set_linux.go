package watch

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Set watches connections with one epoll descriptor and one goroutine.
type Set struct {
	logger *slog.Logger
	poll   *os.File // the epoll descriptor, itself waited for by the runtime's poller
	raw    syscall.RawConn
	done   chan struct{}

	mu     sync.Mutex
	closed bool
	// Events carry a token that is never used again, not the descriptor: the system
	// gives a closed connection's descriptor to the next one at once.
	conns map[uint64]*Conn
	last  uint64
	lame  bool // a failed registration was logged
}

// registration is a connection's place in its set; token is 0 without one.
type registration struct{ token uint64 }

// peerGone asks for the peer's close alone; errors and hang-ups always come. Edge
// triggered, so that one close is one event.
const peerGone = unix.EPOLLRDHUP | unix.EPOLLET

// New makes a set and starts its goroutine. Close it after the server.
func New(logger *slog.Logger) (*Set, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot watch callers: cannot make an epoll descriptor: %w; raise the limit of open files", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("cannot watch callers: cannot set up an epoll descriptor: %w", err)
	}
	s := &Set{logger: logger, poll: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{}), conns: map[uint64]*Conn{}}
	if s.raw, err = s.poll.SyscallConn(); err != nil {
		_ = s.poll.Close()
		return nil, fmt.Errorf("cannot watch callers: cannot use an epoll descriptor: %w", err)
	}
	go s.run()
	return s, nil
}

// Close ends the watch and waits for the set's goroutine. Connections stay open, and gone
// is called no more.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	clear(s.conns)
	s.mu.Unlock()
	_ = s.poll.Close() // a second Close fails and changes nothing
	<-s.done
}

// add registers a connection for its whole life.
func (s *Set) add(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.last++
	c.token = s.last
	event := unix.EpollEvent{Events: peerGone, Fd: int32(uint32(c.token)), Pad: int32(uint32(c.token >> 32))}
	// Before it can be reported, it must be found.
	s.conns[c.token] = c
	if err := s.control(c, unix.EPOLL_CTL_ADD, &event); err != nil {
		delete(s.conns, c.token)
		if !s.lame {
			s.lame = true
			s.logger.Warn("cannot watch a caller's connection; its leaving is found out at the next write; raise fs.epoll.max_user_watches",
				"error", err)
		}
	}
}

// remove takes a connection out before its descriptor is closed. A report that is under
// way finds nobody.
func (s *Set) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[c.token] != c {
		return
	}
	delete(s.conns, c.token)
	_ = s.control(c, unix.EPOLL_CTL_DEL, &unix.EpollEvent{})
}

// control changes a registration. The caller holds mu and has seen that the set is open,
// so that the epoll descriptor is ours.
func (s *Set) control(c *Conn, op int, event *unix.EpollEvent) error {
	conn, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = s.raw.Control(func(poll uintptr) {
			err = unix.EpollCtl(int(poll), op, int(fd), event)
		})
		if failed == nil {
			failed = err
		}
	})
	return errors.Join(err, failed)
}

// run hands out the news until the set is closed.
func (s *Set) run() {
	defer close(s.done)
	var events [128]unix.EpollEvent
	var n int
	var failed error
	wait := func(fd uintptr) bool {
		for {
			if n, failed = unix.EpollWait(int(fd), events[:], 0); failed != unix.EINTR {
				return n != 0
			}
		}
	}
	for {
		err := s.raw.Read(wait)
		if err == nil {
			err = failed
		}
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.closed {
				s.logger.Error("cannot watch callers any more; their leaving is found out at the next write; restart", "error", err)
			}
			return
		}
		for i := range events[:n] {
			token := uint64(uint32(events[i].Fd)) | uint64(uint32(events[i].Pad))<<32
			s.mu.Lock()
			c := s.conns[token]
			s.mu.Unlock()
			if c != nil {
				c.left()
			}
		}
	}
}

// left records that the peer has gone.
func (c *Conn) left() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if gone := c.armed; gone != nil {
		c.armed = nil
		gone()
	}
}
