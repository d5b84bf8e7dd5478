package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// headStart is what an address has for itself before the next one is tried beside it:
// the connection attempt delay that RFC 8305 recommends. A host that is there answers
// within one round trip.
const headStart = 250 * time.Millisecond

// connect dials and, if the target wants it, agrees on TLS.
func (a *Attempt) connect(now time.Time) *Error {
	limit, late := a.limit(now, a.limits.Connect, engine.NetDialTimeout)
	ctx, cancel := within(limit)
	defer cancel()
	a.mu.Lock()
	a.stopDial = cancel
	a.mu.Unlock()
	if a.cancelled.Load() {
		return a.fail(engine.OpDial, engine.NetContextCanceled, true, errCancelled)
	}
	raw, err := a.dial(ctx)
	if err != nil {
		kind := dialKind(err)
		// A passed limit counts more than what the dialler makes of it; but whom the
		// connect limit waited for, the resolver or the host, is worth knowing.
		if passed(limit) && !(kind == engine.NetDNSTemporary && late == engine.NetDialTimeout) {
			kind = late
		}
		return a.fail(engine.OpDial, kind, true, err)
	}
	c := newConn(raw)
	if !a.own(c) {
		return a.fail(engine.OpDial, engine.NetContextCanceled, true, errCancelled)
	}
	if a.target.secure {
		if err := a.handshake(c); err != nil {
			return err
		}
	}
	a.times.Connected = time.Now()
	return nil
}

func within(limit time.Time) (context.Context, context.CancelFunc) {
	if limit.IsZero() {
		return context.WithCancel(context.Background())
	}
	return context.WithDeadline(context.Background(), limit)
}

// dial connects to one of the target's addresses.
func (a *Attempt) dial(ctx context.Context) (net.Conn, error) {
	h := a.pool.host
	if h == nil {
		return a.client.dial(ctx, "tcp", a.target.addr)
	}
	addrs, err := h.addresses(ctx)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 1 {
		return a.client.dial(ctx, "tcp", net.JoinHostPort(addrs[0].String(), a.target.port))
	}
	return a.client.race(ctx, h, addrs, a.target.port)
}

// dialled is what came of one address.
type dialled struct {
	addr netip.Addr
	conn net.Conn
	err  error
}

// race tries the addresses one after the other: the next one when the last has failed, or
// has used up its head start without an answer. The first connection wins, and the other
// tries are dropped.
func (c *Client) race(ctx context.Context, h *host, addrs []netip.Addr, port string) (net.Conn, error) {
	lead := headStart
	if limit, ok := ctx.Deadline(); ok {
		lead = min(lead, time.Until(limit)/time.Duration(len(addrs))) // each gets its turn
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan dialled)
	try := func(addr netip.Addr) {
		conn, err := c.dial(ctx, "tcp", net.JoinHostPort(addr.String(), port))
		select {
		case results <- dialled{addr, conn, err}:
		case <-ctx.Done():
			if err == nil {
				_ = conn.Close()
			}
		}
	}
	var errs []error
	tried := 0
	turn := time.NewTimer(0)
	defer turn.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, errors.Join(append(errs, ctx.Err())...)
		case <-turn.C:
			go try(addrs[tried])
			if tried++; tried < len(addrs) {
				turn.Reset(lead)
			}
		case r := <-results:
			switch {
			case r.err == nil:
				if earlier := addrs[:slices.Index(addrs, r.addr)]; len(earlier) > 0 {
					h.failed(earlier...) // or had not answered yet
				}
				return r.conn, nil
			case ctx.Err() != nil:
				continue // our own doing
			}
			h.failed(r.addr)
			if errs = append(errs, r.err); len(errs) == len(addrs) {
				return nil, errors.Join(errs...)
			}
			if tried < len(addrs) {
				turn.Reset(0)
			}
		}
	}
}
