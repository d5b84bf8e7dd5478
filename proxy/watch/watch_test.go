package watch

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what must happen in a test; nothing waits for it to pass.
const patience = 10 * time.Second

func newSet(t testing.TB) *Set {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("sockets are watched on Linux only")
	}
	s, err := New(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// pairs gives connections over a watched listener: the caller's end and ours.
func pairs(t testing.TB, s *Set) func() (*net.TCPConn, *Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	watched := s.Listener(l)
	t.Cleanup(func() { _ = watched.Close() })
	return func() (*net.TCPConn, *Conn) {
		t.Helper()
		caller, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		ours, err := watched.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = caller.Close(), ours.Close() })
		return caller.(*net.TCPConn), ours.(*Conn)
	}
}

// news is a gone function that counts its calls and tells of the first.
type news struct {
	calls atomic.Int32
	first chan struct{}
}

func newNews() *news { return &news{first: make(chan struct{})} }

func (n *news) gone() {
	if n.calls.Add(1) == 1 {
		close(n.first)
	}
}

func (n *news) want(t *testing.T) {
	t.Helper()
	select {
	case <-n.first:
	case <-time.After(patience):
		t.Fatal("nobody told that the caller has gone")
	}
}

func TestCallerGone(t *testing.T) {
	t.Parallel()
	pair := pairs(t, newSet(t))
	f := func(name string, leave func(c *net.TCPConn)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller, ours := pair()
			n := newNews()
			ours.Arm(n.gone)
			leave(caller)
			n.want(t)
			_ = caller.Close() // a half-closed one closes for good: no second call
			ours.Disarm()
			late := newNews()
			ours.Arm(late.gone)
			ours.Disarm()
			if n.calls.Load() != 1 || late.calls.Load() != 1 {
				t.Errorf("%d calls while armed, %d for a peer that had gone before; want 1 and 1", n.calls.Load(), late.calls.Load())
			}
		})
	}
	f("FIN", func(c *net.TCPConn) { _ = c.Close() })
	f("RST", func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() })
	f("half-close", func(c *net.TCPConn) { _ = c.CloseWrite() })
	f("pipelined bytes, then FIN", func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
		_ = c.Close()
	})
}

func TestBytesAreNoNews(t *testing.T) {
	t.Parallel()
	pair := pairs(t, newSet(t))
	caller, ours := pair()
	n := newNews()
	ours.Arm(n.gone)
	buf := make([]byte, 1)
	for range 100 {
		_, _ = caller.Write(buf)
		if _, err := io.ReadFull(ours, buf); err != nil {
			t.Fatal(err)
		}
		_, _ = ours.Write(buf)
	}
	ours.Disarm()
	_ = caller.Close()
	other, theirs := pair() // whose news comes after the first one's
	m := newNews()
	theirs.Arm(m.gone)
	_ = other.Close()
	m.want(t)
	if n.calls.Load() != 0 {
		t.Error("gone was called for bytes, or after Disarm")
	}
}

func TestOwnCloseIsNoNews(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	pair := pairs(t, set)
	_, ours := pair()
	n := newNews()
	ours.Arm(n.gone)
	_ = ours.Close()
	_ = ours.Close()
	set.Close()
	if n.calls.Load() != 0 {
		t.Error("gone was called for a connection that we closed")
	}
}

func TestGoneMayCloseTheConnection(t *testing.T) {
	t.Parallel()
	caller, ours := pairs(t, newSet(t))()
	n := newNews()
	ours.Arm(func() { _ = ours.Close(); n.gone() })
	_ = caller.Close()
	n.want(t)
	ours.Disarm()
}

func TestClosedSetIsSilent(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	pair := pairs(t, set)
	caller, ours := pair()
	n := newNews()
	ours.Arm(n.gone)
	set.Close()
	set.Close()
	_ = caller.Close()
	if _, err := ours.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("Read: %v", err)
	}
	_, later := pair()
	later.Arm(n.gone)
	if n.calls.Load() != 0 {
		t.Error("gone was called after the set's Close")
	}
}

func TestBurst(t *testing.T) {
	t.Parallel()
	pair := pairs(t, newSet(t))
	const many = 1000
	var callers []*net.TCPConn
	var all []*news
	for range many {
		caller, ours := pair()
		n := newNews()
		ours.Arm(n.gone)
		callers, all = append(callers, caller), append(all, n)
	}
	for _, c := range callers {
		_ = c.Close()
	}
	for _, n := range all {
		n.want(t)
	}
}

// A descriptor goes to the next connection at once; the old one's end is not its news.
func TestReusedDescriptors(t *testing.T) {
	t.Parallel()
	pair := pairs(t, newSet(t))
	for range 500 {
		caller, ours := pair()
		ours.Arm(func() {})
		_ = caller.Close()
		_ = ours.Close()
		other, theirs := pair()
		n := newNews()
		theirs.Arm(n.gone)
		_, _ = other.Write([]byte("x"))
		if _, err := theirs.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		theirs.Disarm()
		if n.calls.Load() != 0 {
			t.Fatal("a new connection got an old one's news")
		}
		_, _ = other.Close(), theirs.Close()
	}
}

func TestArmAndDisarmRaceWithLeaving(t *testing.T) {
	t.Parallel()
	pair := pairs(t, newSet(t))
	var group sync.WaitGroup
	for range 200 {
		caller, ours := pair()
		group.Go(func() { _ = caller.Close() })
		group.Go(func() {
			for told := false; !told; runtime.Gosched() {
				calls := 0 // unguarded: the race detector sees a call after Disarm
				ours.Arm(func() { calls++ })
				ours.Disarm()
				if calls > 1 {
					t.Errorf("%d calls for one Arm", calls)
				}
				told = calls == 1
			}
			_ = ours.Close()
		})
	}
	group.Wait()
}

func TestBelowTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	cert := server.TLS.Certificates[0]
	server.Close()
	caller, ours := pairs(t, newSet(t))()
	secure := tls.Server(ours, &tls.Config{Certificates: []tls.Certificate{cert}})
	shaken := make(chan error, 1)
	client := tls.Client(caller, &tls.Config{InsecureSkipVerify: true}) // the test's own certificate
	go func() { shaken <- client.Handshake() }()
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	w, ok := Of(secure)
	if !ok {
		t.Fatal("a TLS connection over a watched one is not found")
	}
	n := newNews()
	w.Arm(n.gone)
	_ = client.Close() // close_notify stays unread
	n.want(t)
	w.Disarm()
}

func TestOfAnUnwatchedConnection(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer func() { _, _ = a.Close(), b.Close() }()
	if _, ok := Of(a); ok {
		t.Error("a plain pipe is said to be watched")
	}
	if _, ok := Of(tls.Server(b, nil)); ok {
		t.Error("TLS over a plain pipe is said to be watched")
	}
	if _, ok := Of(nil); ok {
		t.Error("nothing is said to be watched")
	}
}

func TestWithoutEpollItSaysSo(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := New(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if said := strings.Contains(log.String(), "cannot watch callers"); said != (runtime.GOOS != "linux") {
		t.Errorf("log: %q", log.String())
	}
}

func BenchmarkArmDisarm(b *testing.B) {
	_, ours := pairs(b, newSet(b))()
	gone := func() {}
	b.ReportAllocs()
	for b.Loop() {
		ours.Arm(gone)
		ours.Disarm()
	}
}

// BenchmarkGone is the time from a caller's close to the news of it.
func BenchmarkGone(b *testing.B) {
	pair := pairs(b, newSet(b))
	var total time.Duration
	rounds := 0
	for b.Loop() {
		caller, ours := pair()
		told := make(chan time.Time, 1)
		ours.Arm(func() { told <- time.Now() })
		start := time.Now()
		_ = caller.Close()
		total += (<-told).Sub(start)
		rounds++
		_ = ours.Close()
	}
	b.ReportMetric(float64(total.Nanoseconds())/float64(rounds), "ns/news")
}
