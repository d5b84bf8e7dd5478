package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/policies"
	"github.com/fourgate-dev/fourgate/proxy/admin"
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
	// Until is when it ends by itself, as far as that is known.
	Until *time.Time `json:"until,omitempty"`
	// Abroad says that only another instance knows of it.
	Abroad bool `json:"abroad,omitempty"`
}

type chainAnswer struct {
	Caller   string `json:"caller"`
	Model    string `json:"model"`
	Endpoint string `json:"endpoint"`
	Routing  string `json:"routing"`  // ordered or smart
	Strategy string `json:"strategy"` // of the primary group
	Live     bool   `json:"live"`     // of a running proxy, as it stands now
	// Refused is why the running proxy takes no request at all now, empty if it does.
	Refused string       `json:"refused,omitempty"`
	Chain   []chainLink  `json:"chain"`
	Out     []chainOut   `json:"out"`
	Policy  *chainPolicy `json:"policy,omitempty"`
}

// chainPolicy is what the policy made of the chain, if it had a say.
type chainPolicy struct {
	Rule       string   `json:"rule"`
	Reason     string   `json:"reason"`
	Fault      string   `json:"policy_error,omitempty"`
	Reordered  bool     `json:"reordered"`
	Attempts   int      `json:"attempts,omitempty"` // where it was tightened, as the next two
	PerRoute   int      `json:"per_route,omitempty"`
	DeadlineMS int64    `json:"deadline_ms,omitempty"`
	Refused    []string `json:"refused,omitempty"` // what would have widened the chain
}

func chainCommand(e *env) *cobra.Command {
	var where adminFlags
	var q admin.ChainQuestion
	var live, asJSON bool
	cmd := &cobra.Command{
		Use:   "chain -c FILE [-live] [-caller NAME] [-endpoint NAME] MODEL",
		Short: "Show the exact chain that a request would walk",
		Long: "Show the exact chain that a request for MODEL would walk when everything is well, and\n" +
			"why each other channel is out. A policy that chooses channels is asked, about a plain\n" +
			"request of this moment. Nothing is sent to a provider.\n\n" +
			"With -live the running proxy is asked instead, through its admin listener: what it would\n" +
			"do now, with what is open, cooling, quarantined, evicted, disabled or spent.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, list []string) error {
			q.Model = list[0]
			if live || where.url != "" {
				return liveChain(cmd.Context(), e, &where, q, asJSON)
			}
			l, source, diags := newInspector(nil).openAll(cmd.Context(), where.config, e, quietLogger(e))
			source.close()
			if l == nil {
				return reported(e, diags)
			}
			answer, err := explainChain(l, engine.NewStanding(), e.now(), q)
			if err != nil {
				return err
			}
			return showChain(e.stdout, answer, asJSON)
		},
	}
	where.add(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "ask the running proxy; implied by -admin")
	cmd.Flags().StringVar(&q.Caller, "caller", "", "whose chain (default: the only caller)")
	cmd.Flags().StringVar(&q.Endpoint, "endpoint", "", "over which endpoint (default: the first that serves the model)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// liveChain asks a running proxy.
func liveChain(ctx context.Context, e *env, where *adminFlags, q admin.ChainQuestion, asJSON bool) error {
	client, err := where.client(e)
	if err != nil {
		return err
	}
	query := url.Values{"model": {q.Model}, "caller": {q.Caller}, "endpoint": {q.Endpoint}}
	var answer chainAnswer
	if err := client.get(ctx, "/api/chain?"+query.Encode(), &answer); err != nil {
		return err
	}
	return showChain(e.stdout, answer, asJSON)
}

// explainChain asks the engine, as a request would.
func explainChain(l *loaded, standing *engine.Standing, now time.Time, q admin.ChainQuestion) (chainAnswer, error) {
	catalog, model := l.config.Catalog, q.Model
	caller, err := findCaller(catalog, q.Caller)
	if err != nil {
		return chainAnswer{}, err
	}
	endpoint, err := findEndpoint(catalog, caller, q.Endpoint, model)
	if err != nil {
		return chainAnswer{}, err
	}
	want := engine.Contract{Model: model, Endpoint: endpoint}
	rnd := rand.New(rand.NewPCG(1, 1))
	req := &engine.Request{ID: "chain", Caller: caller, Contract: want, Idempotency: engine.Idempotency{ReplaySafe: true, Effects: engine.EffectsNone}, Arrived: now, Uncut: l.routed()}
	chain, outs, refusal := catalog.Explain(now, standing, req, rnd)
	if refusal != nil {
		return chainAnswer{}, fmt.Errorf("%s", refusal.Message)
	}
	answer := chainAnswer{
		Caller: caller.Name(), Model: model, Endpoint: endpoint.String(), Chain: []chainLink{}, Out: []chainOut{},
		Routing: caller.Routing().String(), Strategy: chain.Group().Strategy().String(),
	}
	asked, chain := answer.narrow(l, chain, req, func(c engine.Chain) (engine.Chain, bool) { return standing.Doubt(now, req, c, rnd) })
	chain, beyond := chain.Cut()
	for _, ch := range beyond {
		outs = append(outs, engine.Out{Channel: ch, Why: engine.BarHops})
	}
	for _, ch := range chain.Channels() {
		link := chainLink{ch.Name(), ch.Group().Name(), ch.Provider().Name(), ch.ModelSent(model), nil}
		if c := ch.Cost(); c.Given {
			link.CostUSD = &costUSD{c.Input, c.Output}
		}
		answer.Chain = append(answer.Chain, link)
	}
	for _, o := range outs {
		if o.Why != engine.BarHops && slices.Contains(asked.Channels(), o.Channel) {
			continue // what others know of it wasn't believed for this request
		}
		out := chainOut{Channel: o.Channel.Name(), Group: o.Channel.Group().Name(), Why: o.Why.String(), Abroad: o.Abroad}
		if !o.Until.IsZero() {
			until := o.Until.UTC()
			out.Until = &until
		}
		answer.Out = append(answer.Out, out)
	}
	for _, g := range catalog.Groups() {
		for _, ch := range g.Channels() {
			if why := outOfContract(caller, g, want); why != "" {
				answer.Out = append(answer.Out, chainOut{Channel: ch.Name(), Group: g.Name(), Why: why})
			}
		}
	}
	return answer, nil
}

// routed says whether any policy has a say before the first attempt.
func (l *loaded) routed() bool {
	has := func(p engine.Policy) bool {
		set, ok := p.(*policies.Set)
		return ok && set.HasRoute()
	}
	for _, p := range l.parts.GroupPolicies {
		if has(p) {
			return true
		}
	}
	return has(l.parts.Policy)
}

// narrow asks the policy that decides for the chain, if it has a say before the first
// attempt, and notes what it leaves out. It returns the chain that the policy was asked
// about, which is another one where it leaves nobody of the first, and what is left.
func (a *chainAnswer) narrow(l *loaded, chain engine.Chain, req *engine.Request, doubt func(engine.Chain) (engine.Chain, bool)) (asked, left engine.Chain) {
	policy := l.parts.Policy
	if own, ok := l.parts.GroupPolicies[chain.Group().Name()]; ok {
		policy = own
	}
	set, ok := policy.(*policies.Set)
	if !ok || !set.HasRoute() {
		return chain, chain
	}
	ask := func(c engine.Chain) (engine.RouteAnswer, engine.Chain, *engine.Narrowing, *engine.Refusal) {
		q := c.RouteQuestion(req, req.Arrived)
		answer := set.Route(&q)
		next, n, refusal := c.Narrow(answer)
		return answer, next, n, refusal
	}
	answer, next, n, refusal := ask(chain)
	if refusal != nil && answer.Fault == "" {
		if wider, more := doubt(chain); more {
			chain = wider
			answer, next, n, _ = ask(chain)
		}
	}
	if n == nil {
		return chain, chain
	}
	a.Policy = &chainPolicy{
		Rule: n.Rule(), Reason: n.Reason().String(), Fault: n.Fault(), Reordered: n.Reordered(),
		Attempts: n.Attempts(), PerRoute: n.PerRoute(), DeadlineMS: n.Deadline().Milliseconds(),
	}
	for _, w := range n.Refused() {
		a.Policy.Refused = append(a.Policy.Refused, w.String())
	}
	why := "dropped by policy " + cmp.Or(n.Rule(), n.Reason().String())
	if n.Fault() != "" {
		why = "policy_error: " + n.Fault() + ": " + answer.Why
	}
	for _, ch := range chain.Channels() {
		if !slices.Contains(next.Channels(), ch) {
			a.Out = append(a.Out, chainOut{Channel: ch.Name(), Group: ch.Group().Name(), Why: why})
		}
	}
	return chain, next
}

// text says what the policy made of the chain besides what it has left out.
func (p *chainPolicy) text() string {
	var parts []string
	add := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(p.Reordered, "reordered the chain")
	add(p.Attempts > 0, "allows %s", count(p.Attempts, "attempt"))
	add(p.PerRoute > 0, "allows %s on one channel", count(p.PerRoute, "attempt"))
	add(p.DeadlineMS > 0, "shortens the deadline to %s", time.Duration(p.DeadlineMS)*time.Millisecond)
	add(len(p.Refused) > 0, "was refused what would widen the chain: %s", strings.Join(p.Refused, ", "))
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("policy %s (%s) %s\n", p.Rule, p.Reason, strings.Join(parts, ", "))
}

// otherModel is why most channels of a large configuration are out.
const otherModel = "group serves another model"

// outOfContract says why a whole group is not asked, or nothing.
func outOfContract(caller *engine.Caller, g *engine.Group, want engine.Contract) string {
	switch {
	case !slices.Contains(g.Models(), want.Model):
		return otherModel
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
			return 0, usageError{fmt.Errorf("%w; the groups serve %s", err, strings.Join(endpointsOf(catalog), ", "))}
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
		for _, m := range g.Models() {
			if !slices.Contains(models, m) {
				models = append(models, m)
			}
		}
	}
	return 0, fmt.Errorf("model %q is not served; caller %s can have: %s", model, caller.Name(), strings.Join(models, ", "))
}

// endpointsOf names the endpoints that any group serves.
func endpointsOf(catalog *engine.Catalog) []string {
	var names []string
	for _, g := range catalog.Groups() {
		for _, e := range g.Endpoints() {
			if !slices.Contains(names, e.String()) {
				names = append(names, e.String())
			}
		}
	}
	return names
}
