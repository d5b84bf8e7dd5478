package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"

	"github.com/spf13/cobra"

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
	c := newCompiler(host)
	l, source, err := c.open(ctx, path, e, logger)
	if err != nil {
		return err
	}
	defer source.close()
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
	a, err := newApp(c, l, e.now, logger, nil)
	if err != nil {
		return err
	}
	if err := a.share(e); err != nil {
		return errors.Join(err, a.close())
	}
	a.registry.MustRegister(host, c.bundles)
	a.follow(source)
	defer a.unfollow()
	for _, g := range l.config.Catalog.Groups() {
		logger.Info("route group", "group", g.Name(), "models", g.Models(), "channels", len(g.Channels()), "strategy", g.Strategy().String())
	}
	debug.FreeOSMemory() // reading a large configuration takes several times what it leaves
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
		a.reloadOnChange(ctx, seen, e, path)
	}()
	err = a.run(ctx, ln, adminLn)
	stop()
	<-reloaded
	return err
}
