package engine_test

import (
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestNewCatalogNamesEachBrokenRule(t *testing.T) {
	t.Parallel()
	f := func(name string, breakIt func(*engine.Spec), want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spec(2)
			breakIt(&s)
			c, problems := engine.NewCatalog(s)
			var got []string
			fatal := false
			for _, p := range problems {
				got = append(got, strings.Join(p.Path, ".")+": "+p.Summary)
				fatal = fatal || !p.Warning
				if words := len(strings.Fields(p.Summary)); words >= 10 || p.Detail == "" {
					t.Errorf("summary %q has %d words, detail %q", p.Summary, words, p.Detail)
				}
			}
			if len(got) != 1 || got[0] != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if fatal == (c != nil) {
				t.Errorf("fatal problems %v, catalog %v", fatal, c != nil)
			}
		})
	}
	group := func(s *engine.Spec) *engine.GroupSpec { return &s.Groups[0] }
	channel := func(s *engine.Spec) *engine.ChannelSpec { return &s.Groups[0].Channels[1] }
	f("silent substitution", func(s *engine.Spec) { channel(s).SendAs = map[string]string{"m": "x"} }, "route_group.g.channel.b.send_as: Other model name without a statement")
	f("serves another model", func(s *engine.Spec) { channel(s).Serves = "n" }, "route_group.g.channel.b.serves: serves is not the group's model")
	f("send_as of another model", func(s *engine.Spec) { channel(s).SendAs = map[string]string{"n": "n"} }, "route_group.g.channel.b.send_as: send_as names a foreign model")
	f("send_as a model that is served itself", func(s *engine.Spec) {
		group(s).Models = []string{"m", "m-mini"}
		channel(s).SendAs, channel(s).Serves = map[string]string{"m": "m-mini"}, "m"
	}, "route_group.g.channel.b.send_as: send_as names another served model")
	f("slash in a name", func(s *engine.Spec) { channel(s).Name = "h/b" }, "route_group.g.channel.h/b: Slash in a name")
	f("answers_as alone", func(s *engine.Spec) { channel(s).AnswersAs = []string{"x"} }, "route_group.g.channel.b.answers_as: answers_as without serves")
	f("answers_as a sibling", func(s *engine.Spec) {
		group(s).Models = []string{"m", "n"}
		channel(s).Serves, channel(s).AnswersAs = "m", []string{"n"}
	}, "route_group.g.channel.b.answers_as: answers_as names another model of the group")
	f("wildcard model", func(s *engine.Spec) { group(s).Models = []string{"gpt-*"} }, "route_group.g.models: Wildcard or empty model")
	f("no channel", func(s *engine.Spec) { group(s).Channels = nil; s.Providers = nil }, "route_group.g.channel: No channel")
	f("unknown provider", func(s *engine.Spec) {
		channel(s).Provider = "nobody"
		s.Providers = s.Providers[:1]
	}, "route_group.g.channel.b.provider: Unknown provider")
	f("duplicate channel", func(s *engine.Spec) {
		channel(s).Name, channel(s).Provider = "a", "pb"
	}, "route_group.g.channel.a: Duplicate channel")
	f("cost without a price", func(s *engine.Spec) {
		group(s).Strategy = engine.StrategyCost
		group(s).Channels[0].Cost.Given = true
	}, "route_group.g.channel.b.cost: No price for strategy cost")
	f("per_route above attempts", func(s *engine.Spec) { group(s).Budget.PerRoute = 4 }, "route_group.g.budget.per_route: per_route does not fit attempts")
	f("min_useful above the deadline", func(s *engine.Spec) { group(s).Budget.MinUseful = 61e9 }, "route_group.g.budget.min_useful: min_useful beyond the deadline")
	f("attempts beyond the deadline", func(s *engine.Spec) { group(s).Budget.MinUseful = 25e9 }, "route_group.g.budget.attempts: Attempts do not fit the deadline")
	f("a silent upstream takes all", func(s *engine.Spec) { s.Providers[0].Limits.Headers = 240e9 }, "route_group.g.budget.deadline: A silent upstream leaves no second attempt")
	f("missing secret", func(s *engine.Spec) { s.Providers[0].Keys[0].Secret = engine.Secret{} }, "provider.pa.key.main.secret: Missing secret")
	f("no key", func(s *engine.Spec) { s.Providers[0].Keys = nil }, "provider.pa.auth: No key")
	f("credentials in the URL", func(s *engine.Spec) { s.Providers[0].BaseURL = "https://u:p@h/v1" }, "provider.pa.base_url: Invalid base URL")
	f("TLS settings without TLS", func(s *engine.Spec) {
		s.Providers[0].BaseURL, s.Providers[0].TLS.ServerName = "http://h/v1", "h"
	}, "provider.pa.tls: TLS settings without TLS")
	f("handshake limit below zero", func(s *engine.Spec) { s.Providers[0].Limits.TLS = -1 }, "provider.pa.timeouts.tls: Time limit below zero")
	f("unused provider", func(s *engine.Spec) { group(s).Channels = group(s).Channels[:1] }, "provider.pb: Unused provider")
	f("caller of nothing", func(s *engine.Spec) {
		s.Callers = []engine.CallerSpec{{Name: "t", KeySHA256: strings.Repeat("ab", 32), Groups: []string{"g"}}, {Name: "u", KeySHA256: strings.Repeat("cd", 32)}}
	}, "caller.u.groups: Caller without a group")
	f("two callers with one key", func(s *engine.Spec) {
		s.Callers = []engine.CallerSpec{{Name: "t", KeySHA256: strings.Repeat("ab", 32), Groups: []string{"g"}}, {Name: "u", KeySHA256: strings.Repeat("AB", 32), Groups: []string{"g"}}}
	}, "caller.u.key_sha256: Two callers with one key")
	team := func(s *engine.Spec) *engine.CallerSpec {
		s.Callers = []engine.CallerSpec{{Name: "t", KeySHA256: strings.Repeat("ab", 32), Groups: []string{"g"}}}
		return &s.Callers[0]
	}
	f("a group twice", func(s *engine.Spec) { team(s).Groups = []string{"g", "g"} }, "caller.t.groups: Duplicate route group")
	f("a ceiling below zero", func(s *engine.Spec) { team(s).Budget.Attempts = -1 }, "caller.t.budget: Negative budget")
	f("a ceiling without use", func(s *engine.Spec) { team(s).Budget.Deadline = 1e9 }, "caller.t.budget: Deadline below min_useful")
	f("smart routing without a price", func(s *engine.Spec) {
		team(s).Groups, s.Callers[0].Routing = []string{"g", "h"}, engine.RoutingSmart
		second := *group(s)
		second.Name = "h"
		s.Groups = append(s.Groups, second)
		priced := []engine.ChannelSpec{s.Groups[0].Channels[0], s.Groups[0].Channels[1]}
		priced[0].Cost.Given, priced[1].Cost.Given = true, true
		s.Groups[0].Channels, s.Groups[0].Strategy = priced, engine.StrategyCost
	}, "caller.t.routing: No price for smart routing")
	checked := func(s *engine.Spec) *engine.HealthCheckSpec {
		group(s).Breaker = engine.BreakerSpec{Mode: engine.BreakerConsecutive, Failures: 3, OpenFor: 60e9}
		group(s).HealthCheck.Interval = 10e9
		return &group(s).HealthCheck
	}
	f("health checks without a breaker", func(s *engine.Spec) {
		checked(s)
		group(s).Breaker = engine.BreakerSpec{}
	}, "route_group.g.health_check.interval: Nothing to check")
	f("health checks back in time", func(s *engine.Spec) { checked(s).Interval = -1 }, "route_group.g.health_check.interval: Negative interval")
	f("a path that is never asked for", func(s *engine.Spec) {
		checked(s).Path = "/health"
		group(s).HealthCheck.Interval = 0
	}, "route_group.g.health_check.interval: Health check without an interval")
	f("a path that is none", func(s *engine.Spec) { checked(s).Path = "health" }, "route_group.g.health_check.path: Invalid path")
	f("a hash that is none", func(s *engine.Spec) {
		s.Callers = []engine.CallerSpec{{Name: "t", KeySHA256: "secret", Groups: []string{"g"}}}
	}, "caller.t.key_sha256: Invalid key hash")
}

func TestAllProblemsComeAtOnce(t *testing.T) {
	t.Parallel()
	s := spec(2)
	s.Groups[0].Models = nil
	s.Groups[0].Endpoints = nil
	s.Providers[0].BaseURL = "ftp://x"
	s.Groups[0].Breaker = engine.BreakerSpec{Mode: engine.BreakerWindow}
	if _, problems := engine.NewCatalog(s); len(problems) != 6 {
		t.Errorf("got %d problems, want 6: %+v", len(problems), problems)
	}
}

func TestCallersAreFoundByKeyAlone(t *testing.T) {
	t.Parallel()
	s := spec(1)
	const sumOfSecret = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
	s.Callers = []engine.CallerSpec{{Name: "team", KeySHA256: strings.ToUpper(sumOfSecret), Groups: []string{"g"}}}
	c := catalog(t, s)
	if caller, ok := c.Caller("secret"); !ok || caller.Name() != "team" {
		t.Errorf("the right key finds %v", caller)
	}
	for _, key := range []string{"", "Secret", sumOfSecret} {
		if _, ok := c.Caller(key); ok {
			t.Errorf("the key %q finds a caller", key)
		}
	}
}

// TestHopsCountFallbackGroups warns of a max_hops that no request of any caller can reach.
func TestHopsCountFallbackGroups(t *testing.T) {
	t.Parallel()
	f := func(hops int, groups []string, want int) {
		t.Helper()
		s := smart(engine.StrategyFailover) // two groups of two channels
		s.Callers[0].Routing, s.Callers[0].Groups = engine.RoutingOrdered, groups
		s.Groups[0].MaxHops = hops
		_, problems := engine.NewCatalog(s)
		got := 0
		for _, p := range problems {
			if p.Summary == "max_hops does not fit" {
				got++
			}
		}
		if got != want {
			t.Errorf("max_hops %d with the groups %v: %d warnings, want %d", hops, groups, got, want)
		}
	}
	f(2, []string{"g"}, 0)
	f(3, []string{"g"}, 1)
	f(4, []string{"g", "h"}, 0)
	f(5, []string{"g", "h"}, 1)
	f(3, []string{"h", "g"}, 1)
}
