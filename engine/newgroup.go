package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func (b *builder) group(s GroupSpec) *Group {
	g := &Group{spec: s}
	at := func(attr string) []string { return path("route_group", s.Name, attr) }
	if _, twice := b.groups[s.Name]; twice {
		b.fault(path("route_group", s.Name), "Duplicate route group", "Two route_group blocks have this name. Give one of them another.")
	}
	b.groups[s.Name] = g
	b.label(path("route_group", s.Name), s.Name)
	if len(s.Models) == 0 {
		b.fault(at("models"), "No model", "A route group serves the models that it names exactly. Write models = [\"gpt-4o-2024-08-06\"].")
	}
	for i, m := range s.Models {
		switch {
		case m == "" || strings.ContainsAny(m, "*?"):
			b.fault(at("models"), "Wildcard or empty model", "A caller gets exactly the model that it named, so models are exact names. List each of them.")
		case slices.Contains(s.Models[:i], m):
			b.fault(at("models"), "Duplicate model", fmt.Sprintf("Model %q stands twice in this list. Remove one.", m))
		}
	}
	if len(s.Endpoints) == 0 {
		b.fault(at("endpoints"), "No endpoint", "Name the protocols that callers may use, such as endpoints = [\"openai.chat\"].")
	}
	if len(s.Channels) == 0 {
		b.fault(path("route_group", s.Name, "channel"), "No channel", "Nothing can serve this group. Add a channel block that names a provider.")
	}
	for i := range s.Channels {
		g.channels = append(g.channels, b.channel(g, &s.Channels[i], s.Channels[:i]))
	}
	if s.MaxHops < 0 {
		b.fault(at("max_hops"), "Negative max_hops", "max_hops counts the channels that one request may walk; leave it out for all.")
	}
	if s.RPM < 0 {
		b.fault(at("rpm"), "Negative rate", "rpm is the number of requests admitted a minute; leave it out for no limit.")
	}
	b.budget(g)
	b.breaker(s)
	b.hold(s)
	b.healthCheck(s)
	g.ordered = byPriority(g.channels)
	return g
}

// hops warns of a max_hops that nothing is left out for: it counts the channels of the
// fallback groups, too.
func (b *builder) hops(cat *Catalog) {
	most, seen := map[*Group]int{}, map[*routes]bool{}
	for _, c := range cat.Callers() {
		if seen[c.routes] {
			continue
		}
		seen[c.routes] = true
		for _, l := range c.routes.lanes {
			n := 0
			for i := len(l.groups) - 1; i >= 0; i-- {
				n += len(l.groups[i].channels)
				most[l.groups[i]] = max(most[l.groups[i]], n)
			}
		}
	}
	for _, g := range cat.groups {
		if n := max(most[g], len(g.channels)); g.spec.MaxHops > n && n > 0 {
			b.warn(path("route_group", g.spec.Name, "max_hops"), "max_hops does not fit", fmt.Sprintf(
				"max_hops counts the channels that one request may walk, and with those of its callers' fallback groups the group has %d.", n))
		}
	}
}

func (b *builder) channel(g *Group, s *ChannelSpec, before []ChannelSpec) *Channel {
	ch := &Channel{spec: *s, group: g, provider: b.providers[s.Provider]}
	at := func(attr string) []string { return path("route_group", g.spec.Name, "channel", s.Name, attr) }
	if ch.provider == nil {
		ch.provider = &Provider{}
		b.fault(at("provider"), "Unknown provider", fmt.Sprintf("There is no provider block %q. Declare it, or name one that is declared.", s.Provider))
	}
	for _, other := range before {
		if other.Name == s.Name {
			b.fault(path("route_group", g.spec.Name, "channel", s.Name), "Duplicate channel", "Two channels of the group have this name. Give one of them another: the ledger tells them apart by it.")
		}
	}
	b.label(path("route_group", g.spec.Name, "channel", s.Name), s.Name)
	b.substitution(g, s, at)
	if s.Cost.Input < 0 || s.Cost.Output < 0 || s.Cost.CachedInput < 0 {
		b.fault(at("cost"), "Negative price", "Prices are USD per million tokens and not below zero.")
	}
	if g.spec.Strategy == StrategyCost && !s.Cost.Given {
		b.fault(at("cost"), "No price for strategy cost", "The strategy orders channels by price, so each needs one. Write cost = { input = 2.50, output = 10.00 }.")
	}
	if s.Weight < 0 {
		b.fault(at("weight"), "Negative weight", "A weight is a share and not below zero.")
	}
	return ch
}

// substitution holds the rules that keep a caller's model from being replaced silently.
func (b *builder) substitution(g *Group, s *ChannelSpec, at func(string) []string) {
	for model, as := range s.SendAs {
		switch {
		case !slices.Contains(g.spec.Models, model):
			b.fault(at("send_as"), "send_as names a foreign model", fmt.Sprintf("Model %q is not one of this group's. The left side of send_as is a model that callers ask for.", model))
		case as != model && b.models[as]:
			b.fault(at("send_as"), "send_as names another served model", fmt.Sprintf(
				"%q is a model of its own here, so sending it for %q would replace one by the other. Name the provider's deployment, or remove the entry.", as, model))
		case as == "" || strings.ContainsAny(as, "*?"):
			b.fault(at("send_as"), "Wildcard or empty name in send_as", "The right side of send_as is the provider's own exact name for the model.")
		case as != model && s.Serves == "":
			b.fault(at("send_as"), "Other model name without a statement", fmt.Sprintf(
				"The channel would send %q where the caller asked for %q: a silent substitution, unless you state that it is the same model. If it is, add serves = %q.", as, model, model))
		}
	}
	switch {
	case s.Serves == "":
		if len(s.AnswersAs) > 0 {
			b.fault(at("answers_as"), "answers_as without serves", "Other names in an answer are accepted only where the channel states which model it serves. Add serves, or remove answers_as.")
		}
	case !slices.Contains(g.spec.Models, s.Serves):
		b.fault(at("serves"), "serves is not the group's model", fmt.Sprintf(
			"The channel states that it serves %q, but the group serves %s. A caller gets exactly the model that it named: move the channel to a group of that model.", s.Serves, quoteList(g.spec.Models)))
	default:
		for model, as := range s.SendAs {
			if as != model && model != s.Serves && slices.Contains(g.spec.Models, model) {
				b.fault(at("serves"), "serves covers another model only", fmt.Sprintf(
					"send_as renames %q too, and serves states only %q. Put each model whose name changes in a channel of its own group.", model, s.Serves))
			}
		}
	}
	for _, other := range s.AnswersAs {
		if other == "" || strings.ContainsAny(other, "*?") {
			b.fault(at("answers_as"), "Wildcard or empty name in answers_as", "Name each accepted answer exactly.")
		}
		if other != s.Serves && slices.Contains(g.spec.Models, other) {
			b.fault(at("answers_as"), "answers_as names another model of the group", fmt.Sprintf(
				"An answer from %q would pass for %q, which callers can tell apart here. Remove it.", other, s.Serves))
		}
	}
}

// label refuses names in which the policy's "group/channel" could be read twice.
func (b *builder) label(path []string, name string) {
	if strings.Contains(name, "/") {
		b.fault(path, "Slash in a name", "Policies see a channel of a fallback group as group/channel. Write the name without a slash.")
	}
}

func quoteList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}

func (b *builder) budget(g *Group) {
	s := g.spec.Budget
	at := func(attr string) []string { return path("route_group", g.spec.Name, "budget", attr) }
	if s.Attempts < 1 {
		b.fault(at("attempts"), "No attempt allowed", "attempts counts all upstream calls of one request, the first included, so it is at least 1.")
	}
	if s.PerRoute < 1 || s.PerRoute > max(s.Attempts, 1) {
		b.fault(at("per_route"), "per_route does not fit attempts", fmt.Sprintf("per_route counts the attempts on one channel: from 1 to attempts, which is %d.", s.Attempts))
	}
	if s.Deadline <= 0 {
		b.fault(at("deadline"), "Deadline not above zero", "The deadline bounds the whole request, queueing and backoff included. Write a duration such as \"60s\".")
		return
	}
	if s.MinUseful < 0 || s.MinUseful > s.Deadline {
		b.fault(at("min_useful"), "min_useful beyond the deadline", fmt.Sprintf("No attempt could start: it needs %s, and the deadline is %s.", spell(s.MinUseful), spell(s.Deadline)))
		return
	}
	if useful := time.Duration(s.Attempts) * s.MinUseful; useful > s.Deadline {
		b.fault(at("attempts"), "Attempts do not fit the deadline", fmt.Sprintf("%d attempts of at least %s need %s, and the deadline is %s. Lower attempts or min_useful, or raise the deadline.", s.Attempts, spell(s.MinUseful), spell(useful), spell(s.Deadline)))
	}
	if s.BackoffBase < 0 || s.BackoffMax < s.BackoffBase {
		b.fault(at("backoff"), "backoff max below base", "A retry waits random(0, min(max, base*2^n)), so max is at least base.")
	}
	if s.Attempts < 2 {
		return
	}
	for _, ch := range g.channels {
		if l := ch.provider.spec.Limits.Headers; l > 0 && l >= s.Deadline-s.MinUseful {
			b.warn(at("deadline"), "A silent upstream leaves no second attempt", fmt.Sprintf(
				"Channel %q may wait %s for headers, and the deadline is %s: if it stays silent, the other attempts are never made. Raise the deadline or lower the provider's timeouts.headers.", ch.spec.Name, spell(l), spell(s.Deadline)))
			return
		}
	}
}

func (b *builder) breaker(g GroupSpec) {
	s := g.Breaker
	at := func(attr string) []string { return path("route_group", g.Name, "breaker", attr) }
	if s.Mode == BreakerOff {
		return
	}
	if s.Failures < 1 {
		b.fault(at("failures"), "Breaker opens without a failure", "failures is the number that opens the breaker, at least 1.")
	}
	if s.Mode == BreakerWindow && s.Window <= 0 {
		b.fault(at("window"), "Window not above zero", "A breaker in window mode counts the failures of the last window. Write a duration such as \"5m\".")
	}
	if s.OpenFor <= 0 {
		b.fault(at("open_for"), "open_for not above zero", "An open breaker sets the channel aside for this long. Write a duration such as \"60s\".")
	}
	if s.HalfOpenProbes < 0 {
		b.fault(at("half_open_probes"), "Negative number of probes", "0 closes the breaker by itself after open_for; n closes it after n good attempts.")
	}
}

func (b *builder) healthCheck(s GroupSpec) {
	h := s.HealthCheck
	at := func(attr string) []string { return path("route_group", s.Name, "health_check", attr) }
	switch {
	case h.Interval < 0:
		b.fault(at("interval"), "Negative interval", "interval is the time between two looks at an open channel. Write a duration such as \"10s\", or remove the block.")
	case h.Interval == 0 && h.Path != "":
		b.fault(at("interval"), "Health check without an interval", "The path is asked for every interval. Write one such as \"10s\".")
	case h.Interval > 0 && s.Breaker.Mode == BreakerOff:
		b.warn(at("interval"), "Nothing to check", "Only channels whose breaker is open are checked, and this breaker is off. Remove the block, or write breaker { mode = \"window\" }.")
	case h.Path != "" && (h.Path[0] != '/' || strings.ContainsAny(h.Path, " \r\n\t#")):
		b.fault(at("path"), "Invalid path", "Write the path of the GET with a slash before it, such as \"/health\"; no spaces, no fragment.")
	}
}

// hold checks how a group's streams are held back.
func (b *builder) hold(s GroupSpec) {
	h := s.Hold
	at := func(attr string) []string { return path("route_group", s.Name, attr) }
	switch {
	case h.Max < 0, h.Complete && h.Max == 0:
		b.fault(at("complete_max"), "Nothing can be held", "complete_max is how much of a stream is held until it is whole, above zero. Write a size such as \"8MiB\".")
	case !h.Complete && h.KeepAlive != 0:
		b.warn(at("keep_alive"), "Nothing to keep alive", "Comments are sent only while a whole stream is held. Write commit = \"complete\", or remove keep_alive.")
	}
	if h.KeepAlive < 0 {
		b.fault(at("keep_alive"), "Negative keep_alive", "keep_alive is the time between two comments; leave it out for none.")
	}
}
