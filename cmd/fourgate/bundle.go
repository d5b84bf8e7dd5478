package main

import (
	"context"
	"log/slog"
	"maps"
	"sync"

	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/policies/bundle"
)

// bundleSource is where a configuration's policy bundle comes from, and the gate that each
// bundle passes before it decides.
type bundleSource struct {
	spec   hcl.Bundle
	source *bundle.Source

	mu     sync.Mutex
	latest *accepted
	use    func(context.Context, *bundleSource, bundle.Bundle) error // nil as long as nothing serves
}

// accepted is a bundle with the configuration that was compiled with it.
type accepted struct {
	bundle bundle.Bundle
	loaded *loaded
}

// openBundle fetches the bundle that l's policies come from and compiles them with it, or
// with the last good one where it can't be had or isn't good. What is wrong is reported if
// there is none; the source is nil then.
func (c *compiler) openBundle(ctx context.Context, l *loaded, logger *slog.Logger) (*bundleSource, hcl.Diagnostics) {
	spec := *l.config.Policy.Bundle
	s := &bundleSource{spec: spec}
	var refused hcl.Diagnostics
	source, err := bundle.Open(ctx, bundle.Options{
		URL:   spec.URL,
		Key:   bundle.Key{PEM: spec.PublicKey, Algorithm: spec.Algorithm, ID: spec.KeyID, Scope: spec.Scope},
		Token: spec.Token, AuthoritiesPEM: spec.AuthoritiesPEM, Poll: spec.Poll,
		Cache: spec.Cache, KeepsNothing: c.onlyLooks, Logger: logger, Metrics: c.bundles,
		Accept: func(ctx context.Context, b bundle.Bundle) error {
			s.mu.Lock()
			if use := s.use; use != nil {
				s.mu.Unlock()
				return use(ctx, s, b)
			}
			defer s.mu.Unlock()
			next, diags := c.withBundle(ctx, l, b)
			if diags.HasErrors() {
				refused = diags
				return firstError(diags)
			}
			s.latest = &accepted{b, next}
			return nil
		},
	})
	if err != nil {
		return nil, append(refused, l.named.PolicyError("", "bundle", "Policy bundle cannot be used", err.Error()))
	}
	s.source = source
	return s, nil
}

// open loads a configuration for a command that needs it to be good, with the bundle that
// its policies come from. The source is nil if they come from none.
func (c *compiler) open(ctx context.Context, path string, e *env, logger *slog.Logger) (*loaded, *bundleSource, error) {
	l, source, diags := c.openAll(ctx, path, e, logger)
	l, err := goodOrReported(l, diags, path, e)
	return l, source, err
}

// openAll is open for a command that reports the diagnostics itself.
func (c *compiler) openAll(ctx context.Context, path string, e *env, logger *slog.Logger) (*loaded, *bundleSource, hcl.Diagnostics) {
	l, _, diags := c.load(ctx, path, e)
	if l == nil || l.config.Policy.Bundle == nil {
		return l, nil, diags
	}
	source, more := c.openBundle(ctx, l, logger)
	if source == nil {
		return nil, nil, append(diags, more...)
	}
	return source.now().loaded, source, diags
}

// now is the bundle of this moment.
func (s *bundleSource) now() *accepted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest
}

// serve hands each further bundle to use, and returns the one of now.
func (s *bundleSource) serve(use func(context.Context, *bundleSource, bundle.Bundle) error) *accepted {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use = use
	return s.latest
}

// close ends the source. Whoever calls it must not hold what use waits for.
func (s *bundleSource) close() {
	if s != nil {
		s.source.Close()
	}
}

// withBundle is l with the policies that come from a bundle. The others are those of l.
func (c *compiler) withBundle(ctx context.Context, l *loaded, b bundle.Bundle) (*loaded, hcl.Diagnostics) {
	next := *l
	next.parts.GroupPolicies = maps.Clone(l.parts.GroupPolicies)
	next.candidates = maps.Clone(l.candidates)
	diags := c.compilePolicies(ctx, &next, &b)
	return &next, diags
}

// firstError is the first error of diagnostics, with their number.
func firstError(diags hcl.Diagnostics) error {
	diags.Sort()
	errs, _ := diags.Count()
	for _, d := range diags {
		if d.Severity == hcl.Error {
			return invalidPolicy{d, errs}
		}
	}
	return nil
}

// invalidPolicy is why a bundle is refused.
type invalidPolicy struct {
	first  hcl.Diagnostic
	errors int
}

func (e invalidPolicy) Error() string {
	if e.errors == 1 {
		return e.first.String()
	}
	return e.first.String() + " (the first of " + count(e.errors, "error") + ")"
}
