package engine

// Catalog is a configuration whose rules all hold. It doesn't change; a reload makes
// another one, and a request keeps the one that it began with.
type Catalog struct {
	providers []*Provider
	groups    []*Group
	callers   []*Caller
	byKey     map[string]*Caller // by the key's SHA-256 in lower-case hex
	anonymous *Caller
	retry     RetryBudgetSpec
}

// Provider is one vendor account surface of a [Catalog].
type Provider struct {
	spec ProviderSpec
	keys []*Key
}

// Name returns the provider's name.
func (p *Provider) Name() string { return p.spec.Name }

// BaseURL returns the provider's base URL without a final slash.
func (p *Provider) BaseURL() string { return p.spec.BaseURL }

// Classifier returns the name of the provider's classifier.
func (p *Provider) Classifier() string { return p.spec.Classifier }

// Auth returns how the provider wants to be shown a credential.
func (p *Provider) Auth() Auth { return p.spec.Auth }

// Limits returns the provider's time limits.
func (p *Provider) Limits() Limits { return p.spec.Limits }

// TLS returns what the provider's TLS needs beyond the defaults.
func (p *Provider) TLS() TLSSpec { return p.spec.TLS }

// Key is one named credential.
type Key struct {
	name   string
	secret Secret
}

// Name returns the key's name, which may be shown.
func (k *Key) Name() string { return k.name }

// Secret returns the credential.
func (k *Key) Secret() Secret { return k.secret }

// Channel is one way to fulfil a contract.
type Channel struct {
	spec     ChannelSpec
	group    *Group
	provider *Provider
}

// Name returns the channel's name, unique in its group.
func (c *Channel) Name() string { return c.spec.Name }

// Group returns the group that the channel belongs to.
func (c *Channel) Group() *Group { return c.group }

// Provider returns the provider that the channel uses.
func (c *Channel) Provider() *Provider { return c.provider }

// Cost returns the channel's price.
func (c *Channel) Cost() Cost { return c.spec.Cost }

// gateFallsOver says what an elapsed gate is: the group's choice, or else the provider's.
func (c *Channel) gateFallsOver() bool {
	if c.group.spec.OnGate != GateUnsaid {
		return c.group.spec.OnGate == GateFallsOver
	}
	return c.provider.spec.GateFallback
}

// ModelSent returns the name under which the model goes upstream. It is the model
// itself unless the channel declares send_as.
func (c *Channel) ModelSent(model string) string {
	if as, ok := c.spec.SendAs[model]; ok {
		return as
	}
	return model
}

// Group is a route group.
type Group struct {
	spec     GroupSpec
	channels []*Channel // in file order
	ordered  []*Channel // in the strategy's order, as far as that is fixed
}

// Name returns the group's name.
func (g *Group) Name() string { return g.spec.Name }

// Strategy returns how the group orders its channels.
func (g *Group) Strategy() Strategy { return g.spec.Strategy }

// Models returns the models that the group serves. Don't change the slice.
func (g *Group) Models() []string { return g.spec.Models }

// Endpoints returns the endpoints that the group serves. Don't change the slice.
func (g *Group) Endpoints() []Endpoint { return g.spec.Endpoints }

// Budget returns the budget of a request to the group.
func (g *Group) Budget() BudgetSpec { return g.spec.Budget }

// Hold returns how long the group's streams are held back.
func (g *Group) Hold() Hold { return g.spec.Hold }

// Channels returns the group's channels in file order. Don't change the slice.
func (g *Group) Channels() []*Channel { return g.channels }

// Caller is an application that may call.
type Caller struct {
	spec   CallerSpec
	groups []*Group
	routes map[Contract][]*Group
}

// Name returns the caller's name.
func (c *Caller) Name() string { return c.spec.Name }

// Groups returns the groups that the caller may use, primary first. Don't change the
// slice.
func (c *Caller) Groups() []*Group { return c.groups }

// Keys returns the provider's keys in file order. Don't change the slice.
func (p *Provider) Keys() []*Key { return p.keys }
