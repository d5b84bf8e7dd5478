package hcl

import (
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// healthCheck reads how open channels of a group are looked at; without the block none
// is. b is the group's breaker.
func (s *section) healthCheck(b engine.BreakerSpec) engine.HealthCheckSpec {
	if !s.written() {
		return engine.HealthCheckSpec{}
	}
	c := engine.HealthCheckSpec{
		Interval: s.duration("interval", defaultHealthInterval, minHealthInterval, maxDuration),
		Timeout:  s.duration("timeout", defaultHealthTimeout, minLimit, maxHealthTimeout),
		Path:     s.str("path", ""),
	}
	if s.has("path") && !s.isFaulty(join(s.path, "path")) && !isPath(c.Path) {
		s.failAt("path", s.placeOfAttr("path"), "Not a path",
			"It is asked for on the provider's host: it begins with a slash and has visible ASCII characters, such as \"/v1/models\".")
	}
	if b.Mode != engine.BreakerOff && c.Interval >= b.OpenFor {
		then := "closes by itself"
		if b.HalfOpenProbes > 0 {
			then = "lets probes through"
		}
		s.warn(s.placeOfAttr("interval"), "Health check comes too late",
			"The breaker %s after %s. Look more often than that, or raise open_for.", then, formatDuration(b.OpenFor))
	}
	return c
}

// isPath says whether text can stand in a request line as the path and query.
func isPath(text string) bool {
	return strings.HasPrefix(text, "/") && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}
