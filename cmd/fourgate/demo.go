package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/plugins"
	"github.com/fourgate-dev/fourgate/proxy/sim"
)

//go:embed demo.hcl
var demoConfig []byte

// demoScripts are the faults of the three channels, one a request, round and round. The
// first fails in every way that a request can meet, the second now and then as well.
var demoScripts = map[string]string{
	"amber": "status=503, error-in-stream status=500, cut before-output, status=429 retry-after=2, status=401 again",
	"birch": "ok times=2, status=503, ok times=2, error-in-stream after=3 again",
	"cedar": "ok",
}

const demoAddress = "127.0.0.1:8080"

func demoCommand(e *env) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use: "demo", Short: "Run the proxy over three simulated channels that fail in turn", Args: args(cobra.NoArgs),
		Long: "Run the proxy over three simulated channels that fail in turn: no key, no configuration,\nnothing leaves the machine. It prints what to send, and a line for each attempt.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo(cmd.Context(), e, address, cmd.Flags().Changed("listen"))
		},
	}
	cmd.Flags().StringVar(&address, "listen", demoAddress, "address to listen on; without the flag, a free port if it is in use")
	return cmd
}

func demo(ctx context.Context, e *env, address string, exactly bool) error {
	began := time.Now()
	ln, err := net.Listen("tcp", address)
	if err != nil && !exactly {
		ln, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w; choose another address with -listen", address, err)
	}
	defer ln.Close()
	upstreams, err := sim.Start(sim.Options{})
	if err != nil {
		return err
	}
	defer upstreams.Close()
	for name, text := range demoScripts {
		script, err := sim.ParseScript(text)
		if err != nil {
			return err
		}
		upstreams.Channel(name).Script(script...)
	}
	dir, err := os.MkdirTemp("", "fourgate-demo-")
	if err != nil {
		return fmt.Errorf("cannot make a directory for the demo's ledger: %w", err)
	}
	defer os.RemoveAll(dir)
	store := filepath.Join(dir, "demo.db")

	host, err := plugins.Open(ctx, plugins.Options{})
	if err != nil {
		return err
	}
	defer host.Close(context.WithoutCancel(ctx))
	c := newCompiler(host)
	l, err := loadDemo(ctx, e, c, map[string]string{
		"DEMO_LISTEN": ln.Addr().String(), "DEMO_KEY": "demo-key", "DEMO_LEDGER": store,
		"DEMO_AMBER_URL": upstreams.URL("amber"), "DEMO_BIRCH_URL": upstreams.URL("birch"), "DEMO_CEDAR_URL": upstreams.URL("cedar"),
	})
	if err != nil {
		return err
	}
	lines := &narrator{out: e.stdout, told: map[string]int{}}
	a, err := newApp(c, l, e.now, quietLogger(e), lines)
	if err != nil {
		return err
	}
	printDemo(e.stdout, "http://"+ln.Addr().String(), store, time.Since(began))
	return a.run(ctx, ln, nil)
}

// loadDemo reads the embedded configuration as if it were a file.
func loadDemo(ctx context.Context, e *env, c *compiler, vars map[string]string) (*loaded, error) {
	const name = "demo.hcl"
	config, diags := hcl.Load(name, hcl.Environment{
		LookupEnv: func(v string) (string, bool) { text, ok := vars[v]; return text, ok },
		ReadFile:  func(string) ([]byte, error) { return demoConfig, nil },
		ReadDir:   func(string) ([]fs.DirEntry, error) { return nil, fs.ErrNotExist },
	})
	if !diags.HasErrors() {
		l, more := c.assemble(ctx, config)
		if diags = append(diags, more...); !diags.HasErrors() {
			return l, nil
		}
	}
	return nil, reported(e, diags)
}

func printDemo(w io.Writer, base, store string, took time.Duration) {
	fmt.Fprintf(w, `Fourgate is ready on %[1]s after %[2]d ms. Three simulated channels serve
demo-model and fail in turn: a 503, an error inside a 200 stream, a cut, a 429 with
Retry-After, a dead key. Send requests from another terminal and watch this one:

  curl -s %[1]s/v1/chat/completions -H 'content-type: application/json' \
    -d '{"model":"demo-model","messages":[{"role":"user","content":"hello"}]}'

  curl -sN %[1]s/v1/chat/completions -H 'content-type: application/json' \
    -d '{"model":"demo-model","stream":true,"messages":[{"role":"user","content":"hello"}]}'

  curl -sN %[1]s/v1/messages -H 'content-type: application/json' -H 'anthropic-version: 2023-06-01' \
    -d '{"model":"demo-model","max_tokens":64,"stream":true,"messages":[{"role":"user","content":"hello"}]}'

What happened is in the ledger as long as the demo runs:

  go run ./cmd/fourgate ledger list -ledger %[3]s

Ctrl-C ends it.

`, base, took.Milliseconds(), store)
}

// narrator tells of each attempt in one line once it is clear what follows it.
type narrator struct {
	mu   sync.Mutex
	out  io.Writer
	told map[string]int // attempts told of, by request
}

// Observe is called at each step of a request, from the request's goroutine.
func (n *narrator) Observe(r *engine.Record) {
	attempts := r.Attempts()
	n.mu.Lock()
	defer n.mu.Unlock()
	told := n.told[r.RequestID()]
	over := r.Terminal() != engine.TerminalNone
	for told < len(attempts) {
		a := &attempts[told]
		d, decided := a.Decision()
		// A decided attempt is told of when its next attempt is known, or the end.
		if next := told+1 < len(attempts); !over && !(decided && (next || d.Delay() > 0 && a.Ended())) {
			break
		}
		n.tell(r, a, over && told+1 == len(attempts))
		told++
	}
	n.told[r.RequestID()] = told
	if over {
		delete(n.told, r.RequestID())
		if len(attempts) == 0 {
			fmt.Fprintf(n.out, "%s  %s  no attempt: %s %d\n", clock(r), short(r), ending(r), r.Status())
		}
	}
}

func (n *narrator) tell(r *engine.Record, a *engine.AttemptRecord, last bool) {
	line := fmt.Sprintf("%s  %s #%d %-6s", clock(r), short(r), a.Seq(), a.Channel())
	if !a.Failed() {
		fmt.Fprintf(n.out, "%s  ok, status %d%s\n", line, a.Status(), usage(a))
		return
	}
	class := a.Class().String()
	if reason := a.Reason().String(); reason != class {
		class += "/" + reason
	}
	line += fmt.Sprintf("  %-32s %-14s", class, a.Phase())
	if d, ok := a.Decision(); ok {
		line += "  " + gates(d.Gates()) + "  => " + decision(d)
	}
	if last {
		line += "  (" + ending(r) + ")"
	}
	fmt.Fprintln(n.out, line)
}

func clock(r *engine.Record) string { return r.At().Local().Format("15:04:05") }

// short is enough of a request's id to tell requests apart: its random end.
func short(r *engine.Record) string {
	id := r.RequestID()
	return id[max(0, len(id)-6):]
}
