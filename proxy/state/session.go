package state

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/rueidis"
)

const (
	// ratesEvery is how often an instance tells how much of its rates is used, if that has
	// changed. All instances together may admit what they admit in that time beyond a rate.
	ratesEvery = 100 * time.Millisecond
	// beat is how often something is asked of the backend when there is nothing to say.
	beat = time.Second
	// sweepEvery is how often everything is read again. Nothing depends on it: a push that
	// was missed is a connection that was lost, and that is followed by a sweep.
	sweepEvery = 10 * time.Second
	// settle is how long others have after a loss of the backend's memory to tell again,
	// before what isn't told any more counts as lifted.
	settle = time.Second
	// breath is the least time between two readings of what has changed, so that a
	// backend that says it without end keeps nobody busy.
	breath = 5 * time.Millisecond
	// refill is the same after the backend has lost its memory: telling all takes longer.
	refill = 250 * time.Millisecond
	// batch is how many commands go out at once.
	batch = 256
)

// session is one connection to the backend. One goroutine owns it.
type session struct {
	*Shared
	client  rueidis.Client
	conn    *guardedConn
	changed *changed
	rates   teller
	unhook  func() bool // of the end of the process from the connection
}

// session connects and serves until ctx is done or the connection fails. It says whether
// the backend could be used in between.
func (s *Shared) session(ctx context.Context) (served bool, err error) {
	x := &session{Shared: s, changed: newChanged()}
	if err := x.connect(ctx); err != nil {
		return false, fmt.Errorf("cannot connect: %w", err)
	}
	defer x.close()
	if err := x.rejoin(ctx); err != nil {
		return false, err
	}
	s.turn(true, nil)
	return true, x.serve(ctx)
}

// connect opens the one connection of a session. A client that connects again by itself
// would leave us without knowing what was missed.
func (x *session) connect(ctx context.Context) error {
	a := x.address
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{a.at}, Username: a.user, Password: a.password, SelectDB: a.database,
		Dialer:                net.Dialer{Timeout: callTimeout, KeepAlive: beat},
		ConnWriteTimeout:      callTimeout,
		ClientTrackingOptions: []string{"BCAST", "NOLOOP", "PREFIX", x.keys.root},
		OnInvalidations:       x.changed.note,
		ForceSingleClient:     true,
		PipelineMultiplex:     -1, // one connection: the pushes come in the order of the changes
		DisableRetry:          true,
		ClientName:            x.instance,
		ClientSetInfo:         rueidis.DisableClientSetInfo,
		RingScaleEachConn:     10,
		CacheSizeEachConn:     1, // nothing is asked from the library's cache
		ReadBufferEachConn:    64 << 10,
		WriteBufferEachConn:   64 << 10,
		DialCtxFn: func(dial context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if x.conn != nil {
				return nil, net.ErrClosed
			}
			dial, cancel := context.WithTimeout(dial, callTimeout)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			c, err := a.dial(dial, d)
			if err != nil {
				return nil, err
			}
			x.conn = guard(c)
			x.unhook = context.AfterFunc(ctx, func() { _ = c.Close() })
			return x.conn, nil
		},
	})
	if err == nil {
		x.client = client
		return nil
	}
	if x.conn != nil {
		x.unhook()
		_ = x.conn.Close()
	}
	if client != nil {
		client.Close()
	}
	if errors.Is(err, rueidis.ErrNoCache) {
		err = fmt.Errorf("it can't push what changes, as Redis and Valkey do from version 7 on (CLIENT TRACKING): %w", err)
	}
	return err
}

// close ends the connection first: the client's own end waits for a last answer.
func (x *session) close() {
	x.unhook()
	_ = x.conn.Close()
	x.client.Close()
}

// rejoin tells and learns everything.
func (x *session) rejoin(ctx context.Context) error {
	if err := x.tellAll(ctx); err != nil {
		return err
	}
	if err := x.tell(ctx); err != nil {
		return err
	}
	if err := x.tellRates(ctx, true); err != nil {
		return err
	}
	return x.sweep(ctx, false)
}

func (x *session) serve(ctx context.Context) error {
	rates, beats, sweeps := time.NewTicker(ratesEvery), time.NewTicker(beat), time.NewTicker(sweepEvery)
	defer rates.Stop()
	defer beats.Stop()
	defer sweeps.Stop()
	settled := time.After(settle)
	changes, rest := x.changed.ready, time.After(0)
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-x.conn.lost:
			return errors.New("the connection was lost")
		case <-x.box.ready:
			err = x.tell(ctx)
		case <-rest:
			changes, rest = x.changed.ready, nil
		case <-changes:
			changes, rest = nil, time.After(breath)
			keys, all := x.changed.take()
			if err = x.read(ctx, keys); err == nil && all {
				err = x.rejoin(ctx)
				settled, rest = time.After(settle), time.After(refill)
			}
		case <-rates.C:
			x.learnRates() // each time: a rate is known from its first request on only
			if err = x.tellRates(ctx, false); err == nil && x.adopted.Swap(false) {
				err = x.learnAgain(ctx)
			}
		case <-beats.C:
			err = x.do(ctx, x.client.B().Ping().Build())
		case <-settled:
			err = x.sweep(ctx, true)
		case <-sweeps.C:
			err = x.sweep(ctx, true)
		}
		if err != nil {
			return err
		}
	}
}

// do sends one command whose answer says nothing.
func (x *session) do(ctx context.Context, cmd rueidis.Completed) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return x.client.Do(ctx, cmd).Error()
}

// exchange sends commands and returns their answers, some of which may be errors about a
// single value. It fails if the backend does.
func (x *session) exchange(ctx context.Context, cmds []rueidis.Completed) ([]rueidis.RedisResult, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answers := x.client.DoMulti(ctx, cmds...)
	for _, a := range answers {
		if err := a.Error(); err != nil && !rueidis.IsRedisNil(err) && !isAboutValue(err) {
			return nil, err
		}
	}
	return answers, nil
}

// isAboutValue says that a command failed because of what is in its key.
func isAboutValue(err error) bool {
	var answer *rueidis.RedisError
	return errors.As(err, &answer) && isWrongType(answer.Error())
}
