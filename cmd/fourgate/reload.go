package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/fourgate-dev/fourgate/hcl"
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
	read    reading
	changes <-chan struct{}
	stop    func()
}

func (a *app) watchChanges() *changeWatch {
	a.turn.Lock()
	w := &changeWatch{hangup: make(chan os.Signal, 1), read: a.serving.read}
	a.turn.Unlock()
	signal.Notify(w.hangup, syscall.SIGHUP)
	w.changes, w.stop = watchFiles(w.read, a.logger)
	return w
}

// reloadOnChange reloads until ctx is done, and ends the watch then.
func (a *app) reloadOnChange(ctx context.Context, w *changeWatch, e *env, path string) {
	ask := make(chan struct{}, 1)
	var asking sync.WaitGroup
	asking.Go(func() { a.askForBundles(ctx, ask) })
	defer func() {
		signal.Stop(w.hangup)
		w.stop()
		asking.Wait()
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
		serves, read := a.reload(ctx, e, path, by)
		if asked {
			select {
			case ask <- struct{}{}:
			default: // somebody is to ask already
			}
		}
		if !serves {
			// Whoever mends it may do so in a file that only the refused one has.
			read = w.read.with(read)
		}
		if !read.inputs.equal(w.read.inputs) {
			w.stop()
			w.changes, w.stop = watchFiles(read, a.logger)
		}
		w.read = read
	}
}

// reload swaps the configuration and the listener's certificate. A bad one is refused with
// its diagnostics, and the running one stays; requests in flight end under the one that
// they began with. It says whether the configuration serves now, and what it was made of.
func (a *app) reload(ctx context.Context, e *env, path, by string) (serves bool, read reading) {
	a.turn.Lock()
	old := a.source
	l, read, source, diags := a.prepare(ctx, e, path)
	if ctx.Err() != nil {
		l, diags = nil, nil // the program ends, and what is missing now isn't anybody's mistake
	}
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
		if ctx.Err() == nil {
			errs, _ := diags.Count()
			a.logger.Error("reload refused: the running configuration stays", "errors", errs)
		}
		return false, read
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
	return true, read
}

// prepare loads a configuration with its bundle: the one in force if it comes from the
// same place, or else one from a new source.
func (a *app) prepare(ctx context.Context, e *env, path string) (*loaded, reading, *bundleSource, hcl.Diagnostics) {
	l, read, diags := a.compiler.load(ctx, path, e)
	if l == nil || l.config.Policy.Bundle == nil {
		return l, read, nil, diags
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
	return l, read, source, diags
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

// askForBundles asks for the policy bundle whenever somebody wants it, until ctx is done. It
// is beside the reloads because a server that hangs must hold up none of them. The source
// tells the log what came of it.
func (a *app) askForBundles(ctx context.Context, wanted <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-wanted:
		}
		a.turn.Lock()
		source := a.source
		a.turn.Unlock()
		if source != nil {
			_, _ = source.source.Poll(ctx) // its error is in the log
		}
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
		a.compiler.bundles.NoneInForce()
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
