package hcl

import (
	"fmt"
	"slices"

	"github.com/agext/levenshtein"
	hcl2 "github.com/hashicorp/hcl/v2"
)

// shape is what may stand in a block.
type shape struct {
	attrs  []string
	blocks []blockShape
	// later are names that belong to the language but that this version can't act on.
	later []string
}

// blockShape is a block inside another one. A block without a label may stand there
// once.
type blockShape struct {
	name  string
	label string // what the label names, empty if there is none
}

// The shapes of all blocks. docs/configuration.md says the same in prose, and a test
// compares the two.
var (
	rootShape = shape{
		blocks: []blockShape{
			{"server", ""}, {"classifier", "name"}, {"provider", "name"}, {"route_group", "name"},
			{"caller", "name"}, {"policy", ""}, {"retry_budget", ""}, {"ledger", ""}, {"state", ""},
		},
		later: []string{"telemetry"},
	}
	serverShape = shape{
		attrs:  []string{"listen", "admin_listen", "admin_token", "max_body", "debug_headers", "drain_timeout", "anonymous"},
		blocks: []blockShape{{"tls", ""}},
	}
	serverTLSShape  = shape{attrs: []string{"cert_file", "key_file"}}
	classifierShape = shape{
		attrs:  []string{"module", "sha256", "profile", "timeout", "memory"},
		blocks: []blockShape{{"shadow", ""}},
	}
	classifierShadowShape = shape{attrs: []string{"module", "sha256", "profile"}}
	providerShape         = shape{
		attrs:  []string{"base_url", "classifier", "auth"},
		blocks: []blockShape{{"key", "name"}, {"timeouts", ""}, {"tls", ""}},
	}
	keyShape         = shape{attrs: []string{"secret"}}
	providerTLSShape = shape{attrs: []string{"ca_file", "server_name"}}
	timeoutsShape    = shape{attrs: []string{"connect", "tls", "headers", "gate", "on_gate", "idle"}}
	groupShape       = shape{
		attrs:  []string{"models", "endpoints", "strategy", "max_hops", "commit", "complete_max", "keep_alive", "on_gate", "rpm"},
		blocks: []blockShape{{"channel", "name"}, {"budget", ""}, {"breaker", ""}, {"health_check", ""}, {"policy", ""}},
		later:  []string{"evidence", "substitution"},
	}
	channelShape = shape{
		attrs: []string{"provider", "send_as", "serves", "answers_as", "cost", "priority", "weight", "labels"},
	}
	costShape         = shape{attrs: []string{"input", "output", "cached_input"}}
	budgetShape       = shape{attrs: []string{"attempts", "per_route", "deadline", "min_useful", "backoff"}}
	backoffShape      = shape{attrs: []string{"base", "max"}}
	breakerShape      = shape{attrs: []string{"mode", "failures", "window", "open_for", "half_open_probes"}}
	healthCheckShape  = shape{attrs: []string{"interval", "timeout", "path"}}
	callerShape       = shape{attrs: []string{"key_sha256", "groups", "routing", "rpm"}, blocks: []blockShape{{"budget", ""}}}
	callerBudgetShape = shape{attrs: []string{"attempts", "deadline", "max_cost_usd"}}
	policyShape       = shape{attrs: policyAttrs, blocks: []blockShape{{"bundle", ""}, {"shadow", ""}}}
	groupPolicyShape  = shape{attrs: policyAttrs, blocks: []blockShape{{"shadow", ""}}}
	policyShadowShape = shape{attrs: policyAttrs}
	policyAttrs       = []string{"paths", "profile", "query", "params", "timeout", "timezone"}
	bundleShape       = shape{attrs: []string{"url", "public_key", "algorithm", "key_id", "scope", "token", "ca_file", "poll", "cache"}}
	retryBudgetShape  = shape{attrs: []string{"ratio", "floor", "cap"}}
	stateShape        = shape{attrs: []string{"backend", "url", "ca_file", "prefix", "on_outage", "breakers"}}
	ledgerShape       = shape{attrs: []string{"store", "path", "durability", "retention"}}
)

// schema gives the shape in the HCL library's words. Nothing is required there: what
// is missing is reported by whoever needs it, with the reason.
func (s *shape) schema() *hcl2.BodySchema {
	schema := &hcl2.BodySchema{}
	for _, name := range s.attrs {
		schema.Attributes = append(schema.Attributes, hcl2.AttributeSchema{Name: name})
	}
	for _, b := range s.blocks {
		header := hcl2.BlockHeaderSchema{Type: b.name}
		if b.label != "" {
			header.LabelNames = []string{b.label}
		}
		schema.Blocks = append(schema.Blocks, header)
	}
	return schema
}

func (s *shape) isAttr(name string) bool { return slices.Contains(s.attrs, name) }

func (s *shape) isBlock(name string) bool {
	return slices.ContainsFunc(s.blocks, func(b blockShape) bool { return b.name == name })
}

func (s *shape) names() []string {
	names := slices.Clone(s.attrs)
	for _, b := range s.blocks {
		names = append(names, b.name)
	}
	return names
}

// nearest returns the word that was probably meant, or "".
func nearest(given string, words []string) string {
	best, bestDistance := "", max(2, len(given)/3)+1
	for _, w := range words {
		if n := levenshtein.Distance(given, w, nil); n < bestDistance {
			best, bestDistance = w, n
		}
	}
	return best
}

// didYouMean is a sentence to append to a detail, or "".
func didYouMean(given string, words []string) string {
	if w := nearest(given, words); w != "" {
		return fmt.Sprintf(" Did you mean %q?", w)
	}
	return ""
}
