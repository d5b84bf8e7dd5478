package hcl

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

var authWords = words{
	now:   []string{"bearer", "x-api-key", "api-key", "x-goog-api-key", "none"},
	later: []string{"query", "sigv4", "google"},
}

var authOf = map[string]engine.Auth{
	"bearer": engine.AuthBearer, "x-api-key": engine.AuthXAPIKey, "api-key": engine.AuthAPIKey,
	"x-goog-api-key": engine.AuthXGoogAPIKey, "none": engine.AuthNone,
}

var onGateWords = words{now: []string{"commit", "fallback"}}

func (d *decoder) provider(label string, s *section) {
	p := engine.ProviderSpec{
		Name:       label,
		BaseURL:    strings.TrimSuffix(s.str("base_url", ""), "/"),
		Classifier: s.ref("classifier", "classifier"),
		Auth:       authOf[s.word("auth", "bearer", authWords)],
	}
	if p.BaseURL == "" {
		s.missing("base_url", `write the vendor's URL, such as "https://api.openai.com/v1".`)
	}
	if !s.has("classifier") {
		p.Classifier = defaultClassifier
	}
	s.labelled("key", &keyShape, func(name string, key *section) {
		if !key.has("secret") {
			key.missing("secret", `write secret = env("NAME") or secret = file("path").`)
		}
		p.Keys = append(p.Keys, engine.KeySpec{Name: name, Secret: key.secret("secret")})
	})
	limits := s.inner("timeouts", &timeoutsShape)
	connect := limits.duration("connect", defaultConnect, minLimit, maxDuration)
	p.Limits = engine.Limits{
		Connect: connect,
		TLS:     limits.duration("tls", connect, minLimit, maxDuration),
		Headers: limits.duration("headers", defaultHeaders, minLimit, maxDuration),
		Gate:    limits.duration("gate", defaultGate, minLimit, maxDuration),
		Idle:    limits.duration("idle", defaultIdle, minLimit, maxDuration),
	}
	p.GateFallback = limits.word("on_gate", "commit", onGateWords) == "fallback"
	p.TLS = s.inner("tls", &providerTLSShape).upstreamTLS()
	if p.Auth != engine.AuthNone && isPublicClearText(p.BaseURL) {
		s.warn(s.placeOfAttr("base_url"), "Keys travel in clear text",
			"Whoever is on the way to this host can read the provider's keys and the prompts. Write https.")
	}
	d.cfg.Spec.Providers = append(d.cfg.Spec.Providers, p)
}

// isPublicClearText says whether a URL leads over the internet without TLS. Names
// without a dot and those of a private zone are taken for hosts of one's own network.
func isPublicClearText(base string) bool {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		return !(ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast())
	}
	for _, zone := range []string{".local", ".localhost", ".internal", ".lan", ".svc", ".test"} {
		if strings.HasSuffix(host, zone) {
			return false
		}
	}
	return strings.Contains(host, ".")
}
