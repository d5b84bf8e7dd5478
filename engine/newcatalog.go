package engine

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
)

// AnonymousCaller is the name of everyone where no caller is configured.
const AnonymousCaller = "anonymous"

// NewCatalog checks every rule of the specification and makes a catalog of it. It
// returns all problems at once; the catalog is nil if one of them is no warning.
func NewCatalog(spec Spec) (*Catalog, []Problem) {
	b := &builder{spec: spec, providers: map[string]*Provider{}, groups: map[string]*Group{}, models: map[string]bool{}, lists: map[string][]*Group{}}
	for _, g := range spec.Groups {
		for _, m := range g.Models {
			b.models[m] = true
		}
	}
	cat := &Catalog{retry: spec.RetryBudget, byKey: map[[sha256.Size]byte]*Caller{}}
	for _, p := range spec.Providers {
		cat.providers = append(cat.providers, b.provider(p))
	}
	for _, g := range spec.Groups {
		cat.groups = append(cat.groups, b.group(g))
	}
	if len(spec.Groups) == 0 {
		b.fault(path("route_group"), "No route group", "Nothing can be served without a route_group block that names models, endpoints and channels.")
	}
	for _, c := range spec.Callers {
		caller, sum := b.caller(c)
		if prior, twice := cat.byKey[sum]; twice && sum != ([sha256.Size]byte{}) {
			b.fault(path("caller", c.Name, "key_sha256"), "Two callers with one key",
				fmt.Sprintf("Caller %q has the same key, so it is not certain who calls. Give each caller a key of its own.", prior.spec.Name))
		}
		cat.callers = append(cat.callers, caller)
		cat.byKey[sum] = caller
	}
	if len(spec.Callers) == 0 {
		cat.anonymous = &Caller{spec: CallerSpec{Name: AnonymousCaller}, groups: cat.groups}
	}
	b.retryBudget(spec.RetryBudget)
	known := map[string]*routes{}
	for _, c := range cat.Callers() {
		for _, g := range c.groups {
			g.callers++
		}
		list := c.spec.Routing.String() + "\x00" + strings.Join(c.spec.Groups, "\x00")
		if known[list] == nil {
			known[list] = routesOf(c)
		}
		c.routes = known[list]
		b.smart(c)
	}
	b.hops(cat)
	b.unused(cat)
	for _, p := range b.problems {
		if !p.Warning {
			return nil, b.problems
		}
	}
	return cat, b.problems
}

type builder struct {
	spec      Spec
	providers map[string]*Provider
	groups    map[string]*Group
	models    map[string]bool     // that any group serves
	lists     map[string][]*Group // of callers, by the names in them
	problems  []Problem
}

// spell writes a duration without its zero parts: "4m", not "4m0s".
func spell(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func path(parts ...string) []string { return parts }

func (b *builder) fault(path []string, summary, detail string) {
	b.problems = append(b.problems, Problem{Path: path, Summary: summary, Detail: detail})
}

func (b *builder) warn(path []string, summary, detail string) {
	b.problems = append(b.problems, Problem{Path: path, Warning: true, Summary: summary, Detail: detail})
}

func (b *builder) provider(s ProviderSpec) *Provider {
	p := &Provider{spec: s}
	at := func(attr string) []string { return path("provider", s.Name, attr) }
	u, err := url.Parse(s.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		b.fault(at("base_url"), "Invalid base URL", "Write an http or https URL with a host and perhaps a path, such as \"https://api.openai.com/v1\"; no query, no credentials.")
	}
	p.spec.BaseURL = strings.TrimSuffix(s.BaseURL, "/")
	for _, k := range s.Keys {
		if k.Secret.Empty() {
			b.fault(path("provider", s.Name, "key", k.Name, "secret"), "Missing secret", "The key has no text. Set the variable or file that it is read from, or remove the key block.")
		}
		p.keys = append(p.keys, &Key{name: k.Name, secret: k.Secret, print: printOf(k.Secret)})
	}
	switch {
	case s.Auth == AuthNone && len(s.Keys) > 0:
		b.fault(at("auth"), "Keys without an auth style", "The provider has keys but auth = \"none\" sends none. Choose bearer, x-api-key or api-key, or remove the keys.")
	case s.Auth != AuthNone && len(s.Keys) == 0:
		b.fault(at("auth"), "No key", "This auth style needs a credential. Add a key block, such as key \"main\" { secret = env(\"API_KEY\") }, or set auth = \"none\".")
	}
	for _, l := range []struct {
		attr string
		d    time.Duration
	}{{"connect", s.Limits.Connect}, {"headers", s.Limits.Headers}, {"gate", s.Limits.Gate}, {"idle", s.Limits.Idle}} {
		if l.d <= 0 {
			b.fault(path("provider", s.Name, "timeouts", l.attr), "Time limit not above zero", "A limit that is over before it begins fails every attempt. Write a duration such as \"30s\".")
		}
	}
	if s.Limits.TLS < 0 {
		b.fault(path("provider", s.Name, "timeouts", "tls"), "Time limit below zero", "A handshake can't end before it begins. Write a duration such as \"5s\", or leave it out for as long as connect.")
	}
	if s.TLS != (TLSSpec{}) && strings.HasPrefix(s.BaseURL, "http:") {
		b.fault(path("provider", s.Name, "tls"), "TLS settings without TLS", "The base URL begins with http://, so nothing is encrypted and these settings would do nothing. Write https://, or remove the tls block.")
	}
	if _, twice := b.providers[s.Name]; twice {
		b.fault(path("provider", s.Name), "Duplicate provider", "Two provider blocks have this name. Give one of them another.")
	}
	b.providers[s.Name] = p
	return p
}

func (b *builder) retryBudget(s RetryBudgetSpec) {
	if s.Ratio < 0 || s.Floor < 0 || s.Cap < 0 {
		b.fault(path("retry_budget"), "Negative retry budget", "ratio is tokens per good first attempt, floor tokens a second, cap the most that is saved; none is below zero.")
	} else if s.Cap < 1 {
		b.warn(path("retry_budget", "cap"), "No extra attempt is ever paid", "Each attempt after the first costs one token, and cap is below one, so nothing is retried and nothing falls back.")
	}
}

// unused warns of what no request can ever reach.
func (b *builder) unused(cat *Catalog) {
	reached, seen := map[*Group]bool{}, map[*routes]bool{}
	for _, c := range cat.Callers() {
		if seen[c.routes] {
			continue
		}
		seen[c.routes] = true
		for _, g := range c.groups {
			reached[g] = true
		}
	}
	used := map[*Provider]bool{}
	for _, g := range cat.groups {
		if !reached[g] {
			b.warn(path("route_group", g.spec.Name), "Route group without a caller", "No caller's groups list names this group, so no request can reach it.")
		}
		for _, ch := range g.channels {
			used[ch.provider] = true
		}
	}
	for _, p := range cat.providers {
		if !used[p] {
			b.warn(path("provider", p.spec.Name), "Unused provider", "No channel uses this provider. Remove it, or add a channel that does.")
		}
	}
}

// byPriority gives the channels by priority; equals stay in their order.
func byPriority(channels []*Channel) []*Channel {
	ordered := slices.Clone(channels)
	rank := func(c *Channel) int {
		if c.spec.Priority == 0 {
			return math.MaxInt
		}
		return c.spec.Priority
	}
	slices.SortStableFunc(ordered, func(x, y *Channel) int { return cmp.Compare(rank(x), rank(y)) })
	return ordered
}
