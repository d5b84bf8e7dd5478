package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/plugins"
)

func serveCommand(e *env) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "serve -c FILE", Short: "Run the proxy", Args: args(cobra.NoArgs),
		Long: "Run the proxy until it gets SIGINT or SIGTERM, then let running requests end within\nserver.drain_timeout. SIGHUP, or a change of its files, reloads the configuration,\nall or nothing.",
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), e, path) },
	}
	configFlag(cmd, &path)
	return cmd
}

func serve(ctx context.Context, e *env, path string) error {
	logger := slog.New(slog.NewTextHandler(e.stderr, nil))
	options := hostOptions(e)
	options.Logger = logger
	host, err := plugins.Open(ctx, options)
	if err != nil {
		return err
	}
	defer host.Close(context.WithoutCancel(ctx))
	l, err := loadOrReport(ctx, path, e, host)
	if err != nil {
		return err
	}
	ln, err := listen(l.config.Server.Listen, "server.listen")
	if err != nil {
		return err
	}
	defer ln.Close()
	var adminLn net.Listener
	if l.config.Server.AdminListen != "" {
		if adminLn, err = listen(l.config.Server.AdminListen, "server.admin_listen"); err != nil {
			return err
		}
		defer adminLn.Close()
	}
	a, err := newApp(l, e.now, logger, nil)
	if err != nil {
		return err
	}
	a.registry.MustRegister(host)
	for _, g := range l.config.Catalog.Groups() {
		logger.Info("route group", "group", g.Name(), "models", g.Models(), "channels", len(g.Channels()), "strategy", g.Strategy().String())
	}
	// From here on no change goes by unseen, whoever reads the next line.
	seen := a.watchChanges()
	fmt.Fprintf(e.stdout, "fourgate serves on %s://%s\n", a.scheme(), ln.Addr())
	if adminLn != nil {
		fmt.Fprintf(e.stdout, "metrics and health on http://%s\n", adminLn.Addr())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reloaded := make(chan struct{})
	go func() {
		defer close(reloaded)
		a.reloadOnChange(ctx, seen, e, path, host)
	}()
	err = a.run(ctx, ln, adminLn)
	stop()
	<-reloaded
	return err
}

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
func (a *app) reloadOnChange(ctx context.Context, w *changeWatch, e *env, path string, host *plugins.Host) {
	defer func() {
		signal.Stop(w.hangup)
		w.stop()
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.hangup:
		case <-w.changes:
		}
		config := a.reload(ctx, e, path, host)
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
func (a *app) reload(ctx context.Context, e *env, path string, host *plugins.Host) *hcl.Config {
	l, diags := load(ctx, path, e, host)
	if err := report(e.stderr, diags, false); err != nil {
		a.logger.Error("cannot report the diagnostics of a reload", "error", err)
	}
	if l == nil {
		errs, _ := diags.Count()
		a.logger.Error("reload refused: the running configuration stays", "errors", errs)
		return nil
	}
	if err := a.server.Swap(l.parts); err != nil {
		a.logger.Error("reload refused: the running configuration stays", "error", err)
		return nil
	}
	a.renew(l.config.Server.Certificate)
	a.logger.Info("reloaded", "config", path)
	if old, now := a.config, l.config; serverOf(old) != serverOf(now) || old.Ledger != now.Ledger {
		a.logger.Warn("the server and ledger blocks have changed, which counts at a restart only")
	}
	return l.config
}

// serverOf is the server block without the certificate, which a reload renews.
func serverOf(c *hcl.Config) hcl.Server {
	s := c.Server
	s.Certificate = nil
	return s
}

// filesOf are the files and directories that a configuration was made of.
func filesOf(c *hcl.Config) []string {
	files := slices.Clone(c.Files)
	policies := []hcl.Policy{c.Policy}
	for _, g := range c.Spec.Groups {
		policies = append(policies, c.PolicyOf(g.Name))
	}
	for _, p := range policies {
		files = append(files, p.Paths...)
		if p.Shadow != nil {
			files = append(files, p.Shadow.Paths...)
		}
	}
	for _, m := range c.Classifiers {
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
