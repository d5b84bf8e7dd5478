package redistest

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Link is a network between a client and a server whose every piece arrives late.
type Link struct {
	listener net.Listener
	delay    atomic.Int64
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	ended bool
}

// Slow puts a link before a server. It ends with the test.
func Slow(t testing.TB, server *Server, delay time.Duration) *Link {
	t.Helper()
	dir, err := os.MkdirTemp("", "link")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{listener: ln}
	l.Delay(delay)
	l.wg.Add(1)
	go l.accept(server.Socket())
	t.Cleanup(func() {
		l.end()
		_ = os.RemoveAll(dir)
	})
	return l
}

// URL is the near end.
func (l *Link) URL() string { return "unix://" + l.listener.Addr().String() }

// Delay changes how late each piece arrives, either way.
func (l *Link) Delay(d time.Duration) { l.delay.Store(int64(d)) }

func (l *Link) accept(server string) {
	defer l.wg.Done()
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("unix", server)
		if err != nil {
			_ = near.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, near, far)
		if l.ended {
			_, _ = near.Close(), far.Close()
		}
		l.mu.Unlock()
		l.wg.Add(2)
		go l.carry(near, far)
		go l.carry(far, near)
	}
}

func (l *Link) carry(from, to net.Conn) {
	defer l.wg.Done()
	defer from.Close()
	defer to.Close()
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		time.Sleep(time.Duration(l.delay.Load())) // this is what the link is for
		if _, bad := to.Write(piece[:n]); bad != nil || err != nil {
			return
		}
	}
}

func (l *Link) end() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.ended = true
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
}
