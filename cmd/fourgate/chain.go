package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/hcl"
)

type chainLink struct {
	Channel  string   `json:"channel"`
	Group    string   `json:"group"`
	Provider string   `json:"provider"`
	SendsAs  string   `json:"sends_as"`
	CostUSD  *costUSD `json:"cost_usd_per_million,omitempty"`
}

type costUSD struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
}

type chainOut struct {
	Channel string `json:"channel"`
	Group   string `json:"group"`
	Why     string `json:"why"`
}

type chainAnswer struct {
	Caller   string      `json:"caller"`
	Model    string      `json:"model"`
	Endpoint string      `json:"endpoint"`
	Chain    []chainLink `json:"chain"`
	Out      []chainOut  `json:"out"`
}

func chainCommand(e *env) *cobra.Command {
	var path, callerName, endpointName string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "chain -c FILE [-caller NAME] [-endpoint NAME] MODEL",
		Short: "Show the exact chain that a request would walk",
		Long: "Show the exact chain that a request for MODEL would walk when everything is well, and\n" +
			"why each other channel is out. Nothing is sent anywhere.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, list []string) error {
			config, diags := hcl.Load(path, hcl.Environment{LookupEnv: e.lookup})
			if diags.HasErrors() {
				if err := report(e.stderr, diags, false); err != nil {
					return err
				}
				return reportedError{}
			}
			answer, err := explainChain(config.Catalog, callerName, endpointName, list[0])
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(e.stdout).Encode(answer)
			}
			return drawChain(e.stdout, answer)
		},
	}
	configFlag(cmd, &path)
	cmd.Flags().StringVar(&callerName, "caller", "", "whose chain (default: the only caller)")
	cmd.Flags().StringVar(&endpointName, "endpoint", "", "over which endpoint (default: the first that serves the model)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// explainChain asks the engine, as a request would.
func explainChain(catalog *engine.Catalog, callerName, endpointName, model string) (chainAnswer, error) {
	caller, err := findCaller(catalog, callerName)
	if err != nil {
		return chainAnswer{}, err
	}
	endpoint, err := findEndpoint(catalog, caller, endpointName, model)
	if err != nil {
		return chainAnswer{}, err
	}
	want := engine.Contract{Model: model, Endpoint: endpoint}
	rnd := rand.New(rand.NewPCG(1, 1))
	chain, outs, refusal := catalog.Explain(time.Now(), engine.NewStanding(), &engine.Request{Caller: caller, Contract: want}, rnd)
	if refusal != nil {
		return chainAnswer{}, fmt.Errorf("%s", refusal.Message)
	}
	answer := chainAnswer{caller.Name(), model, endpoint.String(), []chainLink{}, []chainOut{}}
	for _, ch := range chain.Channels() {
		link := chainLink{ch.Name(), ch.Group().Name(), ch.Provider().Name(), ch.ModelSent(model), nil}
		if c := ch.Cost(); c.Given {
			link.CostUSD = &costUSD{c.Input, c.Output}
		}
		answer.Chain = append(answer.Chain, link)
	}
	for _, o := range outs {
		answer.Out = append(answer.Out, chainOut{o.Channel.Name(), o.Channel.Group().Name(), o.Why.String()})
	}
	for _, g := range catalog.Groups() {
		for _, ch := range g.Channels() {
			if why := outOfContract(caller, g, want); why != "" {
				answer.Out = append(answer.Out, chainOut{ch.Name(), g.Name(), why})
			}
		}
	}
	return answer, nil
}

// outOfContract says why a whole group is not asked, or nothing.
func outOfContract(caller *engine.Caller, g *engine.Group, want engine.Contract) string {
	switch {
	case !slices.Contains(g.Models(), want.Model):
		return "group serves another model"
	case !slices.Contains(g.Endpoints(), want.Endpoint):
		return "group doesn't serve " + want.Endpoint.String()
	case !slices.Contains(caller.Groups(), g):
		return "group is not in the caller's list"
	}
	return ""
}

func findCaller(catalog *engine.Catalog, name string) (*engine.Caller, error) {
	callers := catalog.Callers()
	if name == "" {
		if len(callers) > 1 {
			return nil, usageError{fmt.Errorf("there are %d callers; choose one with -caller: %s", len(callers), callerNames(callers))}
		}
		return callers[0], nil
	}
	for _, c := range callers {
		if c.Name() == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no caller %q; there are: %s", name, callerNames(callers))
}

func callerNames(callers []*engine.Caller) string {
	names := ""
	for i, c := range callers {
		if i > 0 {
			names += ", "
		}
		names += c.Name()
	}
	return names
}

// findEndpoint reads the endpoint's name, or takes the first over which the caller can
// have the model.
func findEndpoint(catalog *engine.Catalog, caller *engine.Caller, name, model string) (engine.Endpoint, error) {
	if name != "" {
		endpoint, err := engine.ParseEndpoint(name)
		if err != nil {
			return 0, usageError{err}
		}
		return endpoint, nil
	}
	for _, groups := range [][]*engine.Group{caller.Groups(), catalog.Groups()} {
		for _, g := range groups {
			if slices.Contains(g.Models(), model) {
				return g.Endpoints()[0], nil
			}
		}
	}
	var models []string
	for _, g := range caller.Groups() {
		models = append(models, g.Models()...)
	}
	return 0, fmt.Errorf("model %q is not served; caller %s can have: %s", model, caller.Name(), strings.Join(models, ", "))
}

func drawChain(w io.Writer, a chainAnswer) error {
	fmt.Fprintf(w, "%s over %s for %s\n", a.Model, a.Endpoint, a.Caller)
	t := newTable("#", "CHANNEL", "GROUP", "PROVIDER", "SENDS AS", "USD/M IN", "USD/M OUT")
	for i, l := range a.Chain {
		in, out := "-", "-"
		if l.CostUSD != nil {
			in, out = fmt.Sprintf("%.2f", l.CostUSD.Input), fmt.Sprintf("%.2f", l.CostUSD.Output)
		}
		t.AppendRow(table.Row{i + 1, l.Channel, l.Group, l.Provider, l.SendsAs, in, out})
	}
	fmt.Fprintln(w, t.Render())
	if len(a.Out) == 0 {
		return nil
	}
	t = newTable("OUT", "GROUP", "WHY")
	for _, o := range a.Out {
		t.AppendRow(table.Row{o.Channel, o.Group, o.Why})
	}
	_, err := fmt.Fprintf(w, "\n%s\n", t.Render())
	return err
}

// newTable is the plain look of every table: columns and nothing around them.
func newTable(columns ...any) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.AppendHeader(columns)
	t.SuppressTrailingSpaces()
	return t
}
