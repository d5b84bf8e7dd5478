package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// network is hosts with names in virtual time.
type network struct {
	names func(ctx context.Context, host string) ([]netip.Addr, error)
	// hosts says what dialling an address does; one that isn't here never answers.
	hosts map[string]func() error

	mu      sync.Mutex
	lookups int
	dials   []string // the addresses that were dialled, and when: "ADDRESS+DELAY"
	start   time.Time
	peers   sync.WaitGroup
}

func (n *network) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	n.lookups++
	n.mu.Unlock()
	if network != "ip" {
		return nil, errors.New("want both families")
	}
	return n.names(ctx, host)
}

func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dials = append(n.dials, addr+"+"+time.Since(n.start).String())
	answer := n.hosts[addr]
	n.mu.Unlock()
	if answer == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := answer(); err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	near, far := net.Pipe()
	n.peers.Go(func() {
		p := &peer{Conn: far, in: bufio.NewReader(far)}
		for p.request() != "" {
			p.send(okOne)
		}
	})
	return near, nil
}

// took returns the dials since the last call.
func (n *network) took() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	dials := n.dials
	n.dials, n.start = nil, time.Now()
	return dials
}

func up() error      { return nil }
func refused() error { return syscall.ECONNREFUSED }

func addrs(list ...string) []netip.Addr {
	var parsed []netip.Addr
	for _, a := range list {
		parsed = append(parsed, netip.MustParseAddr(a))
	}
	return parsed
}

func always(list ...string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) ([]netip.Addr, error) { return addrs(list...), nil }
}

// inNetwork runs a test with a client of n that keeps no connection alive.
func inNetwork(t *testing.T, n *network, run func(t *testing.T, call func() *Error)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n.start = time.Now()
		c := New(Options{Resolver: n, Dial: n.dial})
		limits := engine.Limits{Connect: 5 * time.Second, Headers: time.Minute, Idle: time.Minute}
		run(t, func() *Error {
			a := c.Start(target(t, "http://upstream.invalid"), post("x"), limits, time.Now().Add(time.Hour))
			defer a.Close()
			if err := a.Open(); err != nil {
				return err
			}
			if _, err := io.ReadAll(a); err != nil {
				t.Errorf("Read: %v", err)
			}
			return nil
		})
		c.Close()
		n.peers.Wait()
	})
}

func TestAddressesAreTriedInTurn(t *testing.T) {
	t.Parallel()
	f := func(name string, n *network, want ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			inNetwork(t, n, func(t *testing.T, call func() *Error) {
				if err := call(); err != nil {
					t.Fatalf("Open: %v", err)
				}
				if diff := cmp.Diff(want, n.took()); diff != "" {
					t.Errorf("dials (-want +got):\n%s", diff)
				}
			})
		})
	}
	type hosts = map[string]func() error
	f("one", &network{names: always("192.0.2.1"), hosts: hosts{"192.0.2.1:80": up}}, "192.0.2.1:80+0s")
	f("the first answers", &network{names: always("192.0.2.1", "192.0.2.2"), hosts: hosts{"192.0.2.1:80": up}}, "192.0.2.1:80+0s")
	f("the first refuses", &network{names: always("192.0.2.1", "192.0.2.2"),
		hosts: hosts{"192.0.2.1:80": refused, "192.0.2.2:80": up}},
		"192.0.2.1:80+0s", "192.0.2.2:80+0s")
	f("the first two are silent", &network{names: always("192.0.2.1", "192.0.2.2", "192.0.2.3"),
		hosts: hosts{"192.0.2.3:80": up}},
		"192.0.2.1:80+0s", "192.0.2.2:80+250ms", "192.0.2.3:80+500ms")
	f("a slow one still wins", &network{names: always("192.0.2.1", "192.0.2.2"),
		hosts: hosts{"192.0.2.1:80": func() error { time.Sleep(time.Second); return nil }}},
		"192.0.2.1:80+0s", "192.0.2.2:80+250ms")
	f("families by turns", &network{names: always("2001:db8::1", "2001:db8::2", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2"),
		hosts: hosts{"[2001:db8::1]:80": refused, "192.0.2.1:80": refused, "[2001:db8::2]:80": refused, "192.0.2.2:80": up}},
		"[2001:db8::1]:80+0s", "192.0.2.1:80+0s", "[2001:db8::2]:80+0s", "192.0.2.2:80+0s")
}

func TestEachAddressGetsItsTurnWithinTheConnectLimit(t *testing.T) {
	var list []string
	hosts := map[string]func() error{}
	for i := range 40 {
		list = append(list, "192.0.2."+strconv.Itoa(i+1))
	}
	hosts["192.0.2.40:80"] = up
	n := &network{names: always(list...), hosts: hosts}
	inNetwork(t, n, func(t *testing.T, call func() *Error) {
		if err := call(); err != nil {
			t.Errorf("the last of 40 addresses was not reached in 5 s: %v", err)
		}
	})
}

func TestFailedAddressGoesLastForAWhile(t *testing.T) {
	t.Parallel()
	const first, second = "192.0.2.1:80", "192.0.2.2:80"
	for name, trouble := range map[string]func() error{"refused": refused, "silent": nil} {
		t.Run(name, func(t *testing.T) {
			n := &network{names: always("192.0.2.1", "192.0.2.2"), hosts: map[string]func() error{first: trouble, second: up}}
			inNetwork(t, n, func(t *testing.T, call func() *Error) {
				want := func(when string, dials ...string) {
					t.Helper()
					n.took()
					if err := call(); err != nil {
						t.Fatalf("%s: %v", when, err)
					}
					if diff := cmp.Diff(dials, n.took()); diff != "" {
						t.Errorf("dials %s (-want +got):\n%s", when, diff)
					}
				}
				if err := call(); err != nil {
					t.Fatal(err)
				}
				want("after the failure", second+"+0s")
				time.Sleep(behindFor - time.Second)
				want("while it goes last", second+"+0s")
				n.mu.Lock()
				n.hosts[first] = up
				n.mu.Unlock()
				time.Sleep(time.Second)
				want("after that", first+"+0s")
			})
		})
	}
}

func TestNoAddressAnswers(t *testing.T) {
	t.Parallel()
	f := func(name string, kind engine.NetKind, after time.Duration, n *network) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			inNetwork(t, n, func(t *testing.T, call func() *Error) {
				start := time.Now()
				err := call()
				wantError(t, err, kind, engine.OpDial, true)
				if waited := time.Since(start); waited != after {
					t.Errorf("it took %v, want %v", waited, after)
				}
			})
		})
	}
	type hosts = map[string]func() error
	unreachable := func() error { return syscall.ENETUNREACH }
	both := always("192.0.2.1", "2001:db8::1")
	f("all refuse", engine.NetConnRefused, 0, &network{names: both, hosts: hosts{"192.0.2.1:80": refused, "[2001:db8::1]:80": refused}})
	f("no route for one", engine.NetConnRefused, 0, &network{names: both, hosts: hosts{"192.0.2.1:80": refused, "[2001:db8::1]:80": unreachable}})
	f("no route", engine.NetUnreachable, 0, &network{names: both, hosts: hosts{"192.0.2.1:80": unreachable, "[2001:db8::1]:80": unreachable}})
	f("all are silent", engine.NetDialTimeout, 5*time.Second, &network{names: both})
	f("one refuses, one is silent", engine.NetDialTimeout, 5*time.Second, &network{names: both, hosts: hosts{"192.0.2.1:80": refused}})
	f("no address", engine.NetDNSNotFound, 0, &network{names: always()})
	f("resolver is silent", engine.NetDNSTemporary, 5*time.Second, &network{names: func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
}

func TestLookupsAreKept(t *testing.T) {
	var mu sync.Mutex
	var answer error
	n := &network{hosts: map[string]func() error{"192.0.2.1:80": up}}
	n.names = func(context.Context, string) ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		return addrs("192.0.2.1"), answer
	}
	inNetwork(t, n, func(t *testing.T, call func() *Error) {
		set := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			answer = err
		}
		want := func(when string, lookups int, kind engine.NetKind) {
			t.Helper()
			err := call()
			if kind != engine.NetNone {
				wantError(t, err, kind, engine.OpDial, true)
			} else if err != nil {
				t.Errorf("%s: %v", when, err)
			}
			if n.lookups != lookups {
				t.Errorf("%s: %d lookups, want %d", when, n.lookups, lookups)
			}
		}
		want("first", 1, engine.NetNone)
		set(&net.DNSError{Name: "upstream.invalid", IsNotFound: true})
		time.Sleep(lookupTTL - time.Millisecond)
		want("kept", 1, engine.NetNone)
		time.Sleep(time.Millisecond)
		want("asked again", 2, engine.NetDNSNotFound)
		set(&net.DNSError{Name: "upstream.invalid", IsTemporary: true})
		time.Sleep(failedTTL - time.Millisecond)
		want("the failure is kept", 2, engine.NetDNSNotFound)
		time.Sleep(time.Millisecond)
		want("another failure", 3, engine.NetDNSTemporary)
		set(nil)
		time.Sleep(failedTTL)
		want("mended", 4, engine.NetNone)
	})
}

// Many attempts share one lookup; those that leave don't take the answer away from the
// others, and the last one takes the lookup with it.
func TestLookupIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer, dropped := make(chan struct{}), 0
		n := &network{hosts: map[string]func() error{"192.0.2.1:80": up}}
		n.names = func(ctx context.Context, _ string) ([]netip.Addr, error) {
			select {
			case <-answer:
				return addrs("192.0.2.1"), nil
			case <-ctx.Done():
				dropped++
				return nil, ctx.Err()
			}
		}
		c := New(Options{Resolver: n, Dial: n.dial})
		begin := func() (*Attempt, chan *Error) {
			a := c.Start(target(t, "http://upstream.invalid"), post("x"), long, time.Time{})
			opened := make(chan *Error, 1)
			go func() { opened <- a.Open() }()
			synctest.Wait()
			return a, opened
		}
		var all []*Attempt
		var opened []chan *Error
		for range 3 {
			a, ch := begin()
			all, opened = append(all, a), append(opened, ch)
		}
		all[0].Cancel()
		wantError(t, <-opened[0], engine.NetContextCanceled, engine.OpDial, true)
		close(answer)
		for _, ch := range opened[1:] {
			if err := <-ch; err != nil {
				t.Errorf("Open: %v", err)
			}
		}
		if n.lookups != 1 || dropped != 0 {
			t.Errorf("%d lookups, %d dropped; want one for all", n.lookups, dropped)
		}
		time.Sleep(lookupTTL)
		answer = make(chan struct{})
		last, ch := begin()
		last.Cancel()
		wantError(t, <-ch, engine.NetContextCanceled, engine.OpDial, true)
		synctest.Wait()
		if dropped != 1 {
			t.Errorf("%d lookups dropped, want the one that nobody waits for", dropped)
		}
		close(answer)
		again, ch := begin()
		if err := <-ch; err != nil || n.lookups != 3 {
			t.Errorf("a lookup that was given up stands for an answer: %v, %d lookups", err, n.lookups)
		}
		for _, a := range append(all, last, again) {
			a.Close()
		}
		c.Close()
		n.peers.Wait()
	})
}

func TestCancelDuringTheRace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{names: always("192.0.2.1", "192.0.2.2")}
		c := New(Options{Resolver: n, Dial: n.dial})
		a := c.Start(target(t, "http://upstream.invalid"), post("x"), long, time.Time{})
		go func() { time.Sleep(time.Second); a.Cancel() }()
		start := time.Now()
		openError(t, a, engine.NetContextCanceled, engine.OpDial, true)
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("it ended after %v", waited)
		}
		c.Close()
	})
}

// A connection that comes too late to win is closed.
func TestLateConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		n := &network{names: always("192.0.2.1", "192.0.2.2"), hosts: map[string]func() error{"192.0.2.2:80": up}}
		c := New(Options{Resolver: n, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == "192.0.2.1:80" {
				<-ctx.Done() // the connection was made at this very moment
				return near, nil
			}
			return n.dial(ctx, network, addr)
		}})
		a := c.Start(target(t, "http://upstream.invalid"), post("x"), long, time.Time{})
		if err := a.Open(); err != nil {
			t.Fatal(err)
		}
		if _, err := far.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the late connection: %v, want it closed", err)
		}
		a.Close()
		c.Close()
		n.peers.Wait()
	})
}

// The system's own resolver and dialler reach a host that has more addresses than answer:
// localhost is ::1 and 127.0.0.1 nearly everywhere.
func TestLocalhost(t *testing.T) {
	t.Parallel()
	base := serve(t, func(p *peer) { p.request(); p.send(okOne) })
	_, port, _ := strings.Cut(strings.TrimPrefix(base, "http://"), ":")
	call(t, newClient(t, Options{}), "http://localhost:"+port, "x")
}
