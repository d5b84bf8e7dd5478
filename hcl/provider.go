package hcl

import (
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

var authWords = words{
	now:   []string{"bearer", "x-api-key", "api-key", "none"},
	later: []string{"query", "sigv4", "google"},
}

var authOf = map[string]engine.Auth{
	"bearer": engine.AuthBearer, "x-api-key": engine.AuthXAPIKey, "api-key": engine.AuthAPIKey, "none": engine.AuthNone,
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
	p.Limits = engine.Limits{
		Connect: limits.duration("connect", defaultConnect, minLimit, maxDuration),
		Headers: limits.duration("headers", defaultHeaders, minLimit, maxDuration),
		Gate:    limits.duration("gate", defaultGate, minLimit, maxDuration),
		Idle:    limits.duration("idle", defaultIdle, minLimit, maxDuration),
	}
	p.GateFallback = limits.word("on_gate", "commit", onGateWords) == "fallback"
	d.cfg.Spec.Providers = append(d.cfg.Spec.Providers, p)
}
