package main

import (
	"crypto/x509"
	"fmt"
	"os"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/proxy/admin"
	"github.com/fourgate-dev/fourgate/proxy/state"
)

// sharedState is the state that this instance shares with others.
type sharedState struct {
	*state.Shared
	refuses bool // requests, while it can't be used
}

// share begins to share what the instance learns, if the configuration says so. It is
// called before the first request.
func (a *app) share(e *env) error {
	c := a.config.State
	if c.Backend != "redis" {
		return nil
	}
	switch v, _ := e.lookup(hcl.SharedStateSwitch); v {
	case "":
	case "off":
		a.logger.Warn("shared state is switched off: this instance keeps what it knows to itself", "by", hcl.SharedStateSwitch)
		return nil
	default:
		return fmt.Errorf("cannot read %s %q: write off, or leave it out", hcl.SharedStateSwitch, v)
	}
	refuses, outage := c.OnOutage == "refuse", ""
	if refuses {
		outage = "requests are refused until it is back"
	}
	var roots *x509.CertPool
	if c.AuthoritiesPEM != "" {
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(c.AuthoritiesPEM))
	}
	host, _ := os.Hostname() // a process without one has a random name
	a.standing.Adopt(a.config.Catalog)
	shared, err := state.Open(state.Options{
		URL: c.URL, RootCAs: roots, Prefix: c.Prefix, Instance: host, Breakers: c.Breakers, Outage: outage,
		Standing: a.standing, Clock: a.now, Logger: a.logger, Registry: a.registry,
	})
	if err != nil {
		return err
	}
	a.standing.ShareWith(&standingLog{logger: a.logger, now: a.now, next: shared})
	a.shared = &sharedState{shared, refuses}
	a.shareNames(a.config)
	return nil
}

// shareNames makes the names and limits of a configuration that serves from now on known,
// so that what others tell of them can be kept.
func (a *app) shareNames(c *hcl.Config) {
	if a.shared == nil {
		return
	}
	a.standing.Adopt(c.Catalog)
	limits := map[string]int{}
	for _, g := range c.Spec.Groups {
		limits[engine.GroupRate(g.Name)] = g.RPM
	}
	for _, caller := range c.Spec.Callers {
		limits[engine.CallerRate(caller.Name)] = caller.RPM
	}
	a.shared.Adopted(limits)
}

// stateDown says that requests are refused for want of the shared state.
func (a *app) stateDown() bool { return a.shared != nil && a.shared.refuses && !a.shared.Up() }

// stateCheck is how the shared state is, for people.
func (a *app) stateCheck() admin.Check {
	if a.shared == nil {
		return admin.Check{Name: "shared state", OK: true, Detail: "none"}
	}
	up, line := a.shared.Health()
	switch {
	case up:
	case a.shared.refuses:
		line = "requests are refused; " + line
	default:
		line = "local knowledge only; " + line
	}
	return admin.Check{Name: "shared state", OK: up, Detail: line}
}

// unshare ends the sharing.
func (a *app) unshare() {
	if a.shared != nil {
		a.shared.Close()
	}
}
