package upstream

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Resolver finds the addresses of a host; [net.Resolver] is one. Its errors should be
// [*net.DNSError], which says whether there is no such host.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

const (
	// lookupTTL is how long addresses are used before they are asked for again. The
	// system's resolver keeps the records' own lifetimes to itself; vendors give theirs
	// a minute and more.
	lookupTTL = 30 * time.Second
	// failedTTL is how long the failure of a lookup stands, so that a burst of requests
	// to a name that doesn't resolve is one question a second.
	failedTTL = time.Second
	// behindFor is how long an address that failed is tried after the others.
	behindFor = 30 * time.Second
)

// host is what is known of the addresses behind one name.
type host struct {
	name     string
	resolver Resolver

	mu     sync.Mutex
	addrs  []netip.Addr // never changed, only replaced
	err    error        // of the last lookup
	until  time.Time    // addrs and err hold
	asking *lookup      // under way; nil if none is
	behind map[netip.Addr]time.Time
}

// lookup is one question to the resolver. All who need the answer meanwhile wait for it,
// and it is dropped when none of them is left.
type lookup struct {
	done    chan struct{} // closed when addrs and err are there
	stop    context.CancelFunc
	waiting int
	addrs   []netip.Addr
	err     error
}

// addresses returns the host's addresses in the order in which to try them. Don't change
// the slice.
func (h *host) addresses(ctx context.Context) ([]netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Before(h.until) {
		return h.order(h.addrs, now), h.err
	}
	l := h.asking
	if l == nil {
		var asking context.Context
		l = &lookup{done: make(chan struct{})}
		asking, l.stop = context.WithCancel(context.Background())
		h.asking = l
		go h.ask(asking, l)
	}
	l.waiting++
	h.mu.Unlock()
	var err error
	select {
	case <-l.done:
	case <-ctx.Done():
		err = &net.DNSError{Err: "the resolver has not answered", Name: h.name, IsTimeout: true}
	}
	h.mu.Lock()
	if l.waiting--; l.waiting == 0 && h.asking == l {
		l.stop()
		h.asking = nil
	}
	if err != nil {
		return nil, err
	}
	return h.order(l.addrs, time.Now()), l.err
}

func (h *host) ask(ctx context.Context, l *lookup) {
	defer l.stop()
	addrs, err := h.resolver.LookupNetIP(ctx, "ip", h.name)
	addrs = alternate(addrs)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "the name has no address", Name: h.name, IsNotFound: true}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	l.addrs, l.err = addrs, err
	close(l.done)
	if h.asking != l {
		return // nobody wanted to know; the error is that of giving up
	}
	h.asking = nil
	h.addrs, h.err, h.until = addrs, err, time.Now().Add(lookupTTL)
	if err != nil {
		h.until = time.Now().Add(failedTTL)
	}
}

// alternate makes neighbours of different families, beginning with the resolver's first,
// so that a family that leads nowhere costs one try and not one for each of its addresses.
func alternate(addrs []netip.Addr) []netip.Addr {
	var families [2][]netip.Addr // the first address' own, the other
	for _, a := range addrs {
		a = a.Unmap()
		f := 0
		if a.Is4() != addrs[0].Unmap().Is4() {
			f = 1
		}
		if !slices.Contains(families[f], a) {
			families[f] = append(families[f], a)
		}
	}
	mixed := make([]netip.Addr, 0, len(addrs))
	for i := range addrs {
		for _, f := range families {
			if i < len(f) {
				mixed = append(mixed, f[i])
			}
		}
	}
	return mixed
}

// order puts the addresses that have failed lately last. The caller holds mu.
func (h *host) order(addrs []netip.Addr, now time.Time) []netip.Addr {
	for a, until := range h.behind {
		if !now.Before(until) {
			delete(h.behind, a)
		}
	}
	if len(h.behind) == 0 {
		return addrs
	}
	ordered := make([]netip.Addr, 0, len(addrs))
	var last []netip.Addr
	for _, a := range addrs {
		if _, failed := h.behind[a]; failed {
			last = append(last, a)
		} else {
			ordered = append(ordered, a)
		}
	}
	return append(ordered, last...)
}

// failed has addresses tried after the others for a while.
func (h *host) failed(addrs ...netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.behind == nil {
		h.behind = map[netip.Addr]time.Time{}
	}
	until := time.Now().Add(behindFor)
	for _, a := range addrs {
		h.behind[a] = until
	}
}
