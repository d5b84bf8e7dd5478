package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
)

// Options are a simulator's settings. The zero value works.
type Options struct {
	Log *slog.Logger // one line a request at level Info; nil logs nothing
	// Keep is how many requests each channel remembers, the newest. 0 means 1000; a
	// negative number remembers none, for benchmarks. The count goes on in any case.
	Keep int
}

const defaultKeep = 1000

// maxChannels bounds the channels that requests alone can make.
const maxChannels = 1000

// Sim is a simulated provider with many channels. Its methods may be called from any
// goroutine.
type Sim struct {
	log  *slog.Logger
	keep int
	wg   sync.WaitGroup

	mu       sync.Mutex
	channels map[string]*Channel
	conns    map[net.Conn]struct{}
	lns      []net.Listener
	accepted int64
	closed   bool
	waiting  int           // calls of Wait
	changed  chan struct{} // closed at a change while somebody waits
}

// New makes a simulator that serves nothing yet; see [Sim.Serve] and [Start].
func New(o Options) *Sim {
	s := &Sim{
		log: o.Log, keep: o.Keep,
		channels: map[string]*Channel{}, conns: map[net.Conn]struct{}{}, changed: make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.keep == 0 {
		s.keep = defaultKeep
	}
	return s
}

// Start makes a simulator that serves on a free port of 127.0.0.1 until it is closed.
func Start(o Options) (*Sim, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the simulated provider: %w", err)
	}
	s := New(o)
	if err := s.own(ln); err != nil {
		return nil, err
	}
	s.wg.Go(func() {
		// An accept error other than a close ends the serving; a client sees it.
		if err := s.accept(ln); err != nil {
			s.log.Error("the simulated provider stopped", "error", err)
		}
	})
	return s, nil
}

// Serve accepts connections of ln until the simulator is closed, and then returns nil.
// It closes ln. Any stream listener works; RST needs TCP.
func (s *Sim) Serve(ln net.Listener) error {
	if err := s.own(ln); err != nil {
		return err
	}
	return s.accept(ln)
}

func (s *Sim) own(ln net.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.Join(errors.New("cannot serve: the simulated provider is closed"), ln.Close())
	}
	s.lns = append(s.lns, ln)
	return nil
}

func (s *Sim) accept(ln net.Listener) error {
	for {
		nc, err := ln.Accept()
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.closed {
				return nil
			}
			return fmt.Errorf("cannot accept on %s: %w", ln.Addr(), err)
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			nc.Close()
			continue
		}
		s.accepted++
		c := newConn(s, nc, s.accepted)
		s.conns[nc] = struct{}{}
		s.wg.Add(1)
		s.mu.Unlock()
		go func() {
			defer s.wg.Done()
			c.serve()
			s.mu.Lock()
			delete(s.conns, nc)
			s.mu.Unlock()
		}()
	}
}

// Close stops serving, closes every connection and waits for their goroutines.
func (s *Sim) Close() error {
	s.mu.Lock()
	var errs []error
	if !s.closed {
		s.closed = true
		for _, ln := range s.lns {
			errs = append(errs, ln.Close())
		}
		for nc := range s.conns {
			nc.Close()
		}
	}
	s.mu.Unlock()
	s.wg.Wait()
	return errors.Join(errs...)
}

// Addr is the address of the first listener, nil before one is served.
func (s *Sim) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lns) == 0 {
		return nil
	}
	return s.lns[0].Addr()
}

// URL is the address of a channel, without a slash at its end: what stands before /v1.
// It is empty before a listener is served.
func (s *Sim) URL(channel string) string {
	a := s.Addr()
	if a == nil {
		return ""
	}
	return "http://" + a.String() + "/" + channel
}

// Channel finds a channel by its name, or makes it. A new one answers normally.
func (s *Sim) Channel(name string) *Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channel(name)
}

func (s *Sim) channel(name string) *Channel {
	c := s.channels[name]
	if c == nil {
		c = newChannel(s, name)
		s.channels[name] = c
	}
	return c
}

// asked finds the channel of a request. It is nil if too many were made already.
func (s *Sim) asked(name string) *Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[name]; c != nil {
		return c
	}
	if name == "" || len(s.channels) >= maxChannels {
		return nil
	}
	return s.channel(name)
}

// Requests returns what arrived at a channel, the oldest first. The bytes are shared:
// don't change them.
func (s *Sim) Requests(channel string) []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	if c == nil {
		return nil
	}
	out := make([]Seen, len(c.seen))
	for i, r := range c.seen {
		out[i] = *r
	}
	return out
}

// Count is how many requests have arrived at a channel, remembered or not, whole or not.
func (s *Sim) Count(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil {
		return c.count
	}
	return 0
}

// Wait returns nil as soon as done says so. It asks at once, and again whenever a
// request has arrived, been answered, or lost its peer. done may call the simulator.
// The error is the context's.
func (s *Sim) Wait(ctx context.Context, done func() bool) error {
	s.mu.Lock()
	s.waiting++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
	}()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("cannot wait any longer for the simulated provider: %w", ctx.Err())
		}
	}
}

// WaitArrived waits until n requests have arrived at a channel.
func (s *Sim) WaitArrived(ctx context.Context, channel string, n int) error {
	return s.Wait(ctx, func() bool { return s.Count(channel) >= n })
}

// WaitGone waits until n of a channel's remembered requests have lost their peer before
// the answer was whole.
func (s *Sim) WaitGone(ctx context.Context, channel string, n int) error {
	return s.Wait(ctx, func() bool {
		gone := 0
		for _, r := range s.Requests(channel) {
			if r.Gone {
				gone++
			}
		}
		return gone >= n
	})
}

// note changes what is known and wakes those who wait. f runs under the lock.
func (s *Sim) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	if s.waiting > 0 {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *Sim) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
