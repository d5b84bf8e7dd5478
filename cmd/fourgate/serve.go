package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/plugins"
)

func serveCommand(e *env) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "serve -c FILE", Short: "Run the proxy", Args: args(cobra.NoArgs),
		Long: "Run the proxy until it gets SIGINT or SIGTERM, then let running requests end within\nserver.drain_timeout. SIGHUP reloads the configuration, all or nothing.",
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), e, path) },
	}
	configFlag(cmd, &path)
	return cmd
}

func serve(ctx context.Context, e *env, path string) error {
	logger := slog.New(slog.NewTextHandler(e.stderr, nil))
	host, err := plugins.Open(ctx, plugins.Options{FetchedDir: fetchedDir(e), Logger: logger})
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
	fmt.Fprintf(e.stdout, "fourgate serves on %s://%s\n", a.scheme(), ln.Addr())
	if adminLn != nil {
		fmt.Fprintf(e.stdout, "metrics and health on http://%s\n", adminLn.Addr())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reloaded := make(chan struct{})
	go func() {
		defer close(reloaded)
		a.reloadOnHangup(ctx, e, path, host)
	}()
	err = a.run(ctx, ln, adminLn)
	stop()
	<-reloaded
	return err
}

// reloadOnHangup reloads at each SIGHUP.
func (a *app) reloadOnHangup(ctx context.Context, e *env, path string, host *plugins.Host) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			a.reload(ctx, e, path, host)
		}
	}
}

// reload swaps the configuration and the listener's certificate. A bad one is refused with
// its diagnostics, and the running one stays; requests in flight end under the one that
// they began with.
func (a *app) reload(ctx context.Context, e *env, path string, host *plugins.Host) {
	l, diags := load(ctx, path, e, host)
	if err := report(e.stderr, diags, false); err != nil {
		a.logger.Error("cannot report the diagnostics of a reload", "error", err)
	}
	if l == nil {
		errs, _ := diags.Count()
		a.logger.Error("reload refused: the running configuration stays", "errors", errs)
		return
	}
	if err := a.server.Swap(l.parts); err != nil {
		a.logger.Error("reload refused: the running configuration stays", "error", err)
		return
	}
	a.renew(l.config.Server.Certificate)
	a.logger.Info("reloaded; server, but for its certificate, ledger and listen addresses change at a restart only", "config", path)
}
