package hcl

import (
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/fourgate-dev/fourgate/engine"
)

var (
	endpointWords = words{
		now: []string{"openai.chat", "openai.responses", "openai.completions", "openai.embeddings", "openai.images",
			"openai.audio", "anthropic.messages", "gemini.generate"},
	}
	strategyWords = words{now: []string{"failover", "cost", "round_robin", "weighted", "shuffle"}}
	commitWords   = words{now: []string{"output", "complete"}}
	breakerWords  = words{now: []string{"window", "consecutive", "off"}}
)

var breakerModeOf = map[string]engine.BreakerMode{
	"window": engine.BreakerWindow, "consecutive": engine.BreakerConsecutive, "off": engine.BreakerOff,
}

func (d *decoder) group(label string, s *section) {
	g := engine.GroupSpec{
		Name:     label,
		Models:   s.models("models"),
		MaxHops:  s.integer("max_hops", 0, 1, maxHops),
		RPM:      s.integer("rpm", 0, 1, maxRPM),
		Budget:   s.inner("budget", &budgetShape).budget(),
		Breaker:  s.inner("breaker", &breakerShape).breaker(),
		Strategy: s.strategy(),
		Hold:     s.hold(),
	}
	g.HealthCheck = s.inner("health_check", &healthCheckShape).healthCheck(g.Breaker)
	if s.has("on_gate") {
		g.OnGate = engine.GateCommits
		if s.word("on_gate", "commit", onGateWords) == "fallback" {
			g.OnGate = engine.GateFallsOver
		}
	}
	if !s.has("models") {
		s.missing("models", `name each model exactly, such as models = ["gpt-4o-2024-08-06"].`)
	}
	if !s.has("endpoints") {
		s.missing("endpoints", `name what callers may use, such as endpoints = ["openai.chat"].`)
	}
	for _, e := range s.list("endpoints") {
		if !d.knows(join(s.path, "endpoints"), e.at, e.text, endpointWords) {
			continue
		}
		if endpoint, err := engine.ParseEndpoint(e.text); err == nil {
			g.Endpoints = append(g.Endpoints, endpoint)
		}
	}
	s.labelled("channel", &channelShape, func(name string, c *section) {
		g.Channels = append(g.Channels, c.channel(name))
	})
	d.groupPolicy(label, s.inner("policy", &groupPolicyShape))
	d.cfg.Spec.Groups = append(d.cfg.Spec.Groups, g)
}

// hold reads how long a group's streams are held back.
func (s *section) hold() engine.Hold {
	h := engine.Hold{
		Complete:  s.word("commit", "output", commitWords) == "complete",
		KeepAlive: s.duration("keep_alive", 0, minKeepAlive, maxDuration),
	}
	limit := s.size("complete_max", defaultCompleteMax, minCompleteMax, maxCompleteMax)
	if h.Complete {
		h.Max = limit
	} else if s.has("complete_max") {
		s.warn(s.placeOfAttr("complete_max"), "Nothing is held until its end",
			"complete_max bounds what commit = \"complete\" holds. Write that, or remove complete_max.")
	}
	return h
}

func (s *section) strategy() engine.Strategy {
	strategy, err := engine.ParseStrategy(s.word("strategy", "failover", strategyWords))
	if err != nil {
		return engine.StrategyFailover
	}
	return strategy
}

// models reads a list of model names, which go into JSON, headers and records.
func (s *section) models(name string) []string {
	var models []string
	for _, m := range s.list(name) {
		if bad := s.badModel(m.text); bad {
			s.failAt(name, m.at, "Not a model name", "A model's name has up to %d visible characters.", maxModelBytes)
			continue
		}
		models = append(models, m.text)
	}
	return models
}

func (s *section) badModel(model string) bool {
	for _, r := range model {
		if r < ' ' || r == 0x7f {
			return true
		}
	}
	return len(model) > maxModelBytes
}

func (s *section) channel(label string) engine.ChannelSpec {
	if !s.has("provider") {
		s.missing("provider", "write provider = provider.NAME.")
	}
	return engine.ChannelSpec{
		Name:      label,
		Provider:  s.ref("provider", "provider"),
		SendAs:    s.dictionary("send_as"),
		Serves:    s.str("serves", ""),
		AnswersAs: s.models("answers_as"),
		Cost:      s.object("cost", &costShape).cost(s.has("cost")),
		Priority:  s.integer("priority", 0, 1, maxPriority),
		Weight:    s.integer("weight", 0, 1, maxWeight),
		Labels:    s.labels("labels"),
	}
}

// labels reads the configuration's own words for a channel, which only policies read.
func (s *section) labels(name string) map[string]string {
	labels := s.dictionary(name)
	if len(labels) > maxLabels {
		s.failAt(name, s.placeOfAttr(name), "Too many labels", "A channel has up to %d. Keep those that a policy reads.", maxLabels)
	}
	for _, key := range sortedKeys(labels) {
		path := join(s.path, name, key)
		at, ok := s.placeOf(path)
		if !ok {
			at = s.placeOfAttr(name)
		}
		if !labelForm.MatchString(key) {
			s.fail(path, at, "Name of a label cannot be used",
				"A policy reads it as labels.NAME: up to 64 letters, digits and _, beginning with a letter.")
		}
		if value := labels[key]; len(value) > maxLabelBytes || strings.ContainsFunc(value, unicode.IsControl) {
			s.fail(path, at, "Value of a label cannot be used", "It has up to %d visible characters.", maxLabelBytes)
		}
	}
	return labels
}

// labelForm is the name of a channel's label.
var labelForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

func (s *section) cost(given bool) engine.Cost {
	if !given || s.isFaulty(s.path) {
		return engine.Cost{Given: given}
	}
	for _, name := range []string{"input", "output"} {
		if !s.has(name) {
			s.missing(name, "a price is USD per million tokens, input and output.")
		}
	}
	return engine.Cost{
		Given:            true,
		Input:            s.number("input", 0, 0, maxPrice),
		Output:           s.number("output", 0, 0, maxPrice),
		CachedInput:      s.number("cached_input", 0, 0, maxPrice),
		CachedInputGiven: s.has("cached_input"),
	}
}

// budget reads a budget. A default is lowered where a written value leaves it no room:
// a single attempt needs no per_route, a short deadline no separate min_useful.
func (s *section) budget() engine.BudgetSpec {
	b := engine.BudgetSpec{
		Attempts: s.integer("attempts", defaultAttempts, 1, maxAttempts),
		Deadline: s.duration("deadline", defaultDeadline, minDeadline, maxDuration),
	}
	b.PerRoute = s.integer("per_route", min(defaultPerRoute, b.Attempts), 1, maxAttempts)
	b.MinUseful = s.duration("min_useful", min(defaultMinUseful, b.Deadline/time.Duration(b.Attempts)), 0, maxDuration)
	backoff := s.object("backoff", &backoffShape)
	b.BackoffBase = backoff.duration("base", defaultBackoffBase, 0, maxDuration)
	b.BackoffMax = backoff.duration("max", max(defaultBackoffMax, b.BackoffBase), 0, maxDuration)
	return b
}

func (s *section) breaker() engine.BreakerSpec {
	b := engine.BreakerSpec{
		Mode:           breakerModeOf[s.word("mode", "window", breakerWords)],
		Failures:       s.integer("failures", defaultBreakerFailures, 1, maxFailures),
		Window:         s.duration("window", defaultBreakerWindow, minLimit, maxDuration),
		OpenFor:        s.duration("open_for", defaultBreakerOpenFor, minLimit, maxDuration),
		HalfOpenProbes: s.integer("half_open_probes", 0, 0, maxProbes),
	}
	if b.Mode == engine.BreakerConsecutive && s.has("window") {
		s.warn(s.placeOfAttr("window"), "Window has no effect here",
			"A consecutive breaker counts failures in a row, however long that takes. Remove window, or set mode = \"window\".")
	}
	if b.Mode == engine.BreakerOff && len(s.attrs) > 1 {
		s.warn(s.placeOfAttr("mode"), "Settings of a breaker that is off",
			"The breaker never opens, so the other arguments of this block do nothing. Remove them.")
	}
	return b
}
