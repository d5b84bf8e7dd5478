package hcl

import "github.com/fourgate-dev/fourgate/engine"

var routingWords = words{now: []string{"ordered", "smart"}}

func (d *decoder) caller(label string, s *section) {
	c := engine.CallerSpec{
		Name:      label,
		KeySHA256: s.digest("key_sha256"),
		Groups:    s.refs("groups", "route_group"),
		RPM:       s.integer("rpm", 0, 1, maxRPM),
	}
	if s.word("routing", "ordered", routingWords) == "smart" {
		c.Routing = engine.RoutingSmart
	}
	ceilings := s.inner("budget", &callerBudgetShape)
	c.Budget = engine.CallerBudget{
		Attempts: ceilings.integer("attempts", 0, 1, maxAttempts),
		Deadline: ceilings.duration("deadline", 0, minDeadline, maxDuration),

		MaxCostUSD: ceilings.number("max_cost_usd", 0, minCostCeiling, maxCostCeiling),
	}
	if !s.has("key_sha256") {
		s.missing("key_sha256", "it is the hash of the caller's key: printf %s \"$KEY\" | sha256sum.")
	}
	if !s.has("groups") {
		s.missing("groups", "write groups = [route_group.NAME], the primary group first.")
	}
	d.cfg.Spec.Callers = append(d.cfg.Spec.Callers, c)
}
