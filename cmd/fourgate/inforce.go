package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/admin"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
	"github.com/fourgate-dev/fourgate/proxy/probe"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
)

// inForce is the configuration that serves, for those who don't wait for a turn.
type inForce struct {
	*loaded
	generation int // 1 since the start, one more with each reload and bundle
	since      time.Time
}

// put notes that l serves from now on, and records that where something else did before.
// by says what has brought it. It has the turn.
func (a *app) put(l *loaded, by string) {
	a.serving = l
	next := &inForce{loaded: l, generation: 1, since: a.now()}
	last := a.inForce.Load()
	if last != nil {
		next.generation = last.generation + 1
	}
	a.inForce.Store(next)
	if last != nil {
		a.Changed(ledger.Change{At: next.since, Action: "reload", By: by})
	}
}

// Changed keeps a change of what may serve, in the log and in the ledger.
func (a *app) Changed(c ledger.Change) {
	c.Generation = a.inForce.Load().generation
	attrs := []any{"action", c.Action, "by", c.By, "generation", c.Generation}
	for _, v := range []struct{ name, value string }{
		{"from", c.From}, {"kind", c.Kind}, {"group", c.Group}, {"channel", c.Channel}, {"provider", c.Provider}, {"key", c.Key}, {"model", c.Model},
	} {
		if v.value != "" {
			attrs = append(attrs, v.name, v.value)
		}
	}
	if c.Until != nil {
		attrs = append(attrs, "until", *c.Until)
	}
	if len(c.Before) > 0 {
		attrs = append(attrs, "before", asidesText(c.Before))
	}
	a.logger.Info("changed", attrs...)
	if a.store != nil {
		a.store.Changed(c)
	}
}

// adminParts are what the admin listener shows and changes.
func (a *app) adminParts() admin.Parts {
	return admin.Parts{
		Gatherer: a.registry, Ready: a.server.Ready, Token: a.config.Server.AdminToken.Reveal(), Checks: a.checks,
		Standing: a.standing, Catalog: a.server.Catalog, Clock: a.now, Changes: a,
		Chain: func(q admin.ChainQuestion) (any, error) {
			answer, err := explainChain(a.inForce.Load().loaded, a.standing, a.now(), q)
			if err != nil {
				return nil, err
			}
			answer.Live = true
			switch {
			case a.stateDown():
				answer.Refused = "the shared state is down, and on_outage is \"refuse\""
			case a.server.Draining():
				answer.Refused = "the proxy is being stopped"
			}
			return answer, nil
		},
	}
}

// checks are what /readyz?verbose tells of.
func (a *app) checks() []admin.Check {
	now, l := a.now(), a.inForce.Load()
	callers := admin.Check{Name: "callers", OK: true, Detail: "requests are taken"}
	if a.server.Draining() {
		callers.OK, callers.Detail = false, "draining: those under way may end, new ones are refused"
	}
	list := []admin.Check{callers, {
		Name: "config", OK: true, Detail: fmt.Sprintf("generation %d since %s", l.generation, l.since.UTC().Format(time.RFC3339)),
	}}
	for _, g := range l.config.Catalog.Groups() {
		list = append(list, a.groupCheck(now, l.loaded, g))
	}
	return append(list, a.stateCheck())
}

// groupCheck says how many of a group's channels can be used, and what bars the others.
func (a *app) groupCheck(now time.Time, l *loaded, g *engine.Group) admin.Check {
	usable := 0
	var out []string
	for _, ch := range g.Channels() {
		r := a.standing.Report(now, ch)
		if r.Bar == engine.BarNone {
			usable++
			continue
		}
		out = append(out, ch.Name()+" ("+barText(r.Bar, r.Until)+")")
	}
	detail := fmt.Sprintf("%d of %s usable", usable, count(len(g.Channels()), "channel"))
	if len(out) > 0 {
		detail += ", out: " + strings.Join(out, ", ")
	}
	policy := l.parts.Policy
	if own, ok := l.parts.GroupPolicies[g.Name()]; ok {
		policy = own
	}
	if v, ok := policy.(interface{ Revision() string }); ok {
		detail += "; policy " + cmp.Or(v.Revision(), "without revision")
	}
	return admin.Check{Name: "group " + g.Name(), OK: usable > 0, Detail: detail}
}

// barText says why a channel is out, and until when as far as known.
func barText(why engine.Bar, until time.Time) string {
	if until.IsZero() {
		return why.String()
	}
	return why.String() + " until " + until.UTC().Format(time.RFC3339)
}

// probeOpen looks at open channels until ctx is done. What it returns waits for the end.
func (a *app) probeOpen(ctx context.Context) (wait func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.prober.Run(ctx)
	}()
	return func() { <-ended }
}

// newProber makes the prober with connections of its own.
func (a *app) newProber() error {
	a.probing = upstream.New(upstream.Options{})
	var err error
	a.prober, err = probe.New(probe.Options{
		Standing: a.standing, Catalog: a.server.Catalog, Client: a.probing, Clock: a.now, Rand: chance{}, Logger: a.logger, Registry: a.registry,
	})
	return err
}
