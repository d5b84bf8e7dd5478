package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/plugins"
	"github.com/fourgate-dev/fourgate/policies/bundle"
)

// What brings another configuration or policy, for the record.
const (
	byHangup = "SIGHUP"
	byFile   = "changed file"
	byBundle = "bundle"
)

// changeWatch is what makes the proxy reload: SIGHUP, and a change of a file that the
// configuration was made of.
type changeWatch struct {
	hangup  chan os.Signal
	files   []string
	changes <-chan struct{}
	stop    func()
}

func (a *app) watchChanges() *changeWatch {
	w := &changeWatch{hangup: make(chan os.Signal, 1), files: filesOf(a.config)}
	signal.Notify(w.hangup, syscall.SIGHUP)
	w.changes, w.stop = watchFiles(w.files, digest(w.files), a.logger)
	return w
}

// reloadOnChange reloads until ctx is done, and ends the watch then.
func (a *app) reloadOnChange(ctx context.Context, w *changeWatch, e *env, path string) {
	defer func() {
		signal.Stop(w.hangup)
		w.stop()
	}()
	for {
		asked, by := false, byFile
		select {
		case <-ctx.Done():
			return
		case <-w.hangup:
			asked, by = true, byHangup
		case <-w.changes:
		}
		config := a.reload(ctx, e, path, by)
		if asked {
			a.askForBundle(ctx)
		}
		if config == nil || slices.Equal(filesOf(config), w.files) {
			continue
		}
		// The first look at other files counts as a change: they may have been written
		// since they were read.
		w.stop()
		w.files = filesOf(config)
		w.changes, w.stop = watchFiles(w.files, nil, a.logger)
	}
}

// reload swaps the configuration and the listener's certificate. A bad one is refused with
// its diagnostics, and the running one stays; requests in flight end under the one that
// they began with. It returns the configuration that serves now, nil for a refused one.
func (a *app) reload(ctx context.Context, e *env, path, by string) *hcl.Config {
	a.turn.Lock()
	old := a.source
	l, source, diags := a.prepare(ctx, e, path)
	if err := report(e.stderr, diags, false); err != nil {
		a.logger.Error("cannot report the diagnostics of a reload", "error", err)
	}
	if l != nil {
		if err := a.server.Swap(a.partsOf(l)); err != nil {
			a.logger.Error("configuration cannot be used", "error", err)
			l = nil
		}
	}
	if l == nil {
		a.turn.Unlock()
		if source != old {
			source.close()
		}
		errs, _ := diags.Count()
		a.logger.Error("reload refused: the running configuration stays", "errors", errs)
		return nil
	}
	a.put(l, by)
	if source != old {
		a.take(source)
	}
	a.shareNames(l.config)
	a.renew(l.config.Server.Certificate)
	a.logger.Info("reloaded", "config", path)
	if old, now := a.config, l.config; serverOf(old) != serverOf(now) || old.Ledger != now.Ledger || old.State != now.State {
		a.logger.Warn("the server, ledger or state block has changed, which counts at a restart only")
	}
	a.turn.Unlock()
	if source != old {
		old.close() // which may wait for a bundle that waits for its turn
	}
	return l.config
}

// prepare loads a configuration with its bundle: the one in force if it comes from the
// same place, or else one from a new source.
func (a *app) prepare(ctx context.Context, e *env, path string) (*loaded, *bundleSource, hcl.Diagnostics) {
	l, diags := a.compiler.load(ctx, path, e)
	if l == nil || l.config.Policy.Bundle == nil {
		return l, nil, diags
	}
	var source *bundleSource
	var more hcl.Diagnostics
	if a.source != nil && a.source.spec == *l.config.Policy.Bundle {
		source = a.source
		l, more = a.compiler.withBundle(ctx, l, a.bundle)
	} else if source, more = a.compiler.openBundle(ctx, l, a.logger); source != nil {
		l = source.now().loaded
	}
	if diags = append(diags, more...); diags.HasErrors() {
		l = nil
	}
	return l, source, diags
}

// useBundle puts a new bundle in force under the configuration that serves. Its error
// refuses the bundle.
func (a *app) useBundle(ctx context.Context, from *bundleSource, b bundle.Bundle) error {
	a.turn.Lock()
	defer a.turn.Unlock()
	if a.source != from {
		return errors.New("another configuration serves by now")
	}
	l, diags := a.compiler.withBundle(ctx, a.serving, b)
	if diags.HasErrors() {
		return firstError(diags)
	}
	if err := a.server.Swap(a.partsOf(l)); err != nil {
		return err
	}
	a.bundle = b
	a.put(l, byBundle)
	return nil
}

// askForBundle asks for the policy bundle now, as somebody who sends SIGHUP wants it. The
// source tells the log what came of it.
func (a *app) askForBundle(ctx context.Context) {
	a.turn.Lock()
	source := a.source
	a.turn.Unlock()
	if source != nil {
		_, _ = source.source.Poll(ctx) // its error is in the log
	}
}

// follow takes up the source of the configuration that the app was made with.
func (a *app) follow(source *bundleSource) {
	a.turn.Lock()
	defer a.turn.Unlock()
	a.take(source)
}

// take puts the source's bundles in force from now on; nil takes none. It has the turn.
func (a *app) take(source *bundleSource) {
	a.source, a.bundle = source, bundle.Bundle{}
	if source == nil {
		return
	}
	now := source.serve(a.useBundle)
	a.bundle = now.bundle
	if now.loaded == a.serving {
		return
	}
	// Another one has come since the configuration was loaded.
	if err := a.server.Swap(a.partsOf(now.loaded)); err != nil {
		a.logger.Error("policy bundle not used", "error", err)
		return
	}
	a.put(now.loaded, byBundle)
}

// unfollow ends the source that is followed, if any.
func (a *app) unfollow() {
	a.turn.Lock()
	source := a.source
	a.source = nil
	a.turn.Unlock()
	source.close()
}

// serverOf is the server block without the certificate, which a reload renews.
func serverOf(c *hcl.Config) hcl.Server {
	s := c.Server
	s.Certificate = nil
	return s
}

// filesOf are the files and directories that a configuration was made of.
func filesOf(c *hcl.Config) []string {
	policies := []hcl.NamedPolicy{{Policy: c.Policy}}
	for _, g := range c.Spec.Groups {
		policies = append(policies, hcl.NamedPolicy{Policy: c.PolicyOf(g.Name)})
	}
	files := append(slices.Clone(c.Files), namedFiles(hcl.Named{Policies: policies, Classifiers: c.Classifiers})...)
	slices.Sort(files)
	return slices.Compact(files)
}

// namedFiles are the files and directories that a configuration names.
func namedFiles(n hcl.Named) []string {
	var files []string
	for _, p := range n.Policies {
		files = append(files, p.Policy.Paths...)
		if p.Policy.Shadow != nil {
			files = append(files, p.Policy.Shadow.Paths...)
		}
	}
	for _, m := range n.Classifiers {
		if isFile(m.Module) {
			files = append(files, m.Module)
		}
		if m.Shadow != nil && isFile(m.Shadow.Module) {
			files = append(files, m.Shadow.Module)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// isFile says whether a module is a file, which may change, and neither part of the program
// nor an artifact.
func isFile(module string) bool {
	return !strings.HasPrefix(module, plugins.BuiltinPrefix) && !strings.Contains(module, "://")
}
