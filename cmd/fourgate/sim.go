package main

import (
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/proxy/sim"
)

func simCommand(e *env) *cobra.Command {
	var listen string
	var scripts []string
	cmd := &cobra.Command{
		Use:   "sim [-listen ADDR] [-channel NAME=FAULT,FAULT...]...",
		Short: "Run a simulated provider with scripted faults",
		Long: "Run a simulated provider. Each channel has its own base URL, http://ADDR/NAME/v1, and\n" +
			"follows its script: one fault a request, the last one from then on. See docs/sim.md for\n" +
			"the faults. A channel without a script answers well.",
		Example: "  fourgate sim -listen 127.0.0.1:9101 -channel 'a=status=503,ok' -channel 'b=cut after=3'",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := sim.New(sim.Options{Log: slog.New(slog.NewTextHandler(e.stderr, nil))})
			for _, text := range scripts {
				name, script, ok := strings.Cut(text, "=")
				if !ok || name == "" {
					return usageError{fmt.Errorf("cannot read channel %q; write NAME=FAULT,FAULT…", text)}
				}
				faults, err := sim.ParseScript(script)
				if err != nil {
					return usageError{fmt.Errorf("channel %q: %w", name, err)}
				}
				s.Channel(name).Script(faults...)
			}
			ln, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("cannot listen on %s: %w; choose another address with -listen", listen, err)
			}
			fmt.Fprintf(e.stdout, "simulated provider on http://%s\n", ln.Addr())
			stopped := make(chan error, 1)
			go func() { stopped <- s.Serve(ln) }()
			select {
			case err := <-stopped:
				return err
			case <-cmd.Context().Done():
				if err := s.Close(); err != nil {
					return err
				}
				return <-stopped
			}
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:9101", "address to listen on")
	cmd.Flags().StringArrayVar(&scripts, "channel", nil, "a channel's script; may be given several times")
	return cmd
}
