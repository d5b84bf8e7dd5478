package probe

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
)

const (
	// lookEvery is how often the standing is asked which channels are open. It bounds how
	// exactly an interval is kept, and costs a pass over the groups with a health check.
	lookEvery = 250 * time.Millisecond
	// maxLooks is how many channels are looked at in one moment.
	maxLooks = 16
	// spread is how much an interval varies: a quarter more or less.
	spread = 0.25
)

// Options are what a prober works with. All but Logger must be set.
type Options struct {
	Standing *engine.Standing
	// Catalog gives the configuration that serves now.
	Catalog func() *engine.Catalog
	// Client opens the connections. It should keep no idle one (the zero
	// [upstream.Options]): a look at a connection that was there before proves nothing.
	Client   *upstream.Client
	Clock    func() time.Time // the one that the standing's other users have
	Rand     engine.Rand
	Logger   *slog.Logger // nil logs nothing
	Registry prometheus.Registerer
}

// Prober looks at open channels. Make one with [New] and start it with [Prober.Run].
type Prober struct {
	options Options
	looks   *prometheus.CounterVec

	// Owned by the goroutine of Run.
	open    map[name]*visit
	running int
	done    chan *visit
}

// name is a channel over reloads.
type name struct{ group, channel string }

// visit is an open channel between its looks.
type visit struct {
	channel *engine.Channel // as the catalog at the last pass has it
	at      time.Time       // of the next look
	running bool
}

// New makes a prober. The error is that of a registry that has one already.
func New(o Options) (*Prober, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Prober{
		options: o,
		looks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fourgate_health_probes_total", Help: "Looks at channels whose breaker is open, by how they went.",
		}, []string{"group", "channel", "outcome"}),
		open: map[name]*visit{},
		done: make(chan *visit, maxLooks),
	}
	if err := o.Registry.Register(p.looks); err != nil {
		return nil, fmt.Errorf("cannot register the metrics of health checks: %w", err)
	}
	return p, nil
}

// Run looks at open channels until ctx is done, and returns when no look is under way. It
// is called once.
func (p *Prober) Run(ctx context.Context) {
	var looks sync.WaitGroup
	defer looks.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case v := <-p.done:
			p.running--
			v.running = false
		case <-tick.C:
			p.begin(ctx, &looks)
		}
	}
}

// begin starts the looks that are due, the one that has waited longest first.
func (p *Prober) begin(ctx context.Context, looks *sync.WaitGroup) {
	now := p.options.Clock()
	p.meet(now)
	for p.running < maxLooks {
		v := p.due(now)
		if v == nil {
			return
		}
		v.running = true
		v.at = now.Add(p.interval(v.channel))
		p.running++
		ch := v.channel
		looks.Go(func() {
			p.attend(ctx, ch)
			p.done <- v // has room for all that run
		})
	}
}

// meet notes which channels are open now. One that is met for the first time has just
// failed, so its first look is an interval away.
func (p *Prober) meet(now time.Time) {
	open := make(map[name]*visit, len(p.open))
	for _, ch := range p.options.Standing.OpenChannels(now, p.options.Catalog()) {
		id := name{ch.Group().Name(), ch.Name()}
		v := p.open[id]
		if v == nil {
			v = &visit{at: now.Add(p.interval(ch))}
		}
		v.channel = ch
		open[id] = v
	}
	for id, v := range p.open {
		if v.running && open[id] == nil {
			open[id] = v // so that it has one look at a time, even if it opens again
		}
	}
	p.open = open
}

// due returns the channel whose look is due for longest, nil if none is.
func (p *Prober) due(now time.Time) *visit {
	var first *visit
	for _, v := range p.open {
		if !v.running && !now.Before(v.at) && (first == nil || v.at.Before(first.at)) {
			first = v
		}
	}
	return first
}

func (p *Prober) interval(ch *engine.Channel) time.Duration {
	d := float64(ch.Group().HealthCheck().Interval)
	return time.Duration(d * (1 - spread + 2*spread*p.options.Rand.Float64()))
}

// attend looks at a channel once and tells what came of it.
func (p *Prober) attend(ctx context.Context, ch *engine.Channel) {
	err := p.look(ctx, ch)
	if ctx.Err() != nil {
		return
	}
	log := p.options.Logger.With("group", ch.Group().Name(), "channel", ch.Name())
	outcome := "passed"
	if err != nil {
		outcome = "failed"
		log.Debug("health check failed: the channel stays open", "error", err)
	} else if p.options.Standing.ProbePassed(p.options.Clock(), ch) {
		log.Info("health check passed: the channel is tried again before its time")
	}
	p.looks.WithLabelValues(ch.Group().Name(), ch.Name(), outcome).Inc()
}
