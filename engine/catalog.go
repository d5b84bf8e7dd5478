package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"
)

// Catalog is a configuration whose rules all hold. It doesn't change; a reload makes
// another one, and a request keeps the one that it began with.
type Catalog struct {
	providers []*Provider
	groups    []*Group
	callers   []*Caller
	byKey     map[[sha256.Size]byte]*Caller // by the key's SHA-256
	anonymous *Caller
	retry     RetryBudgetSpec
	adopted   atomic.Pointer[Standing] // the standing that knows the catalog's names
}

// Provider is one vendor account surface of a [Catalog].
type Provider struct {
	spec ProviderSpec
	keys []*Key
	seat providerSeat
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
	print  keyPrint
	seat   keySeat
}

// keyPrint tells the secrets of one key's name apart. It is half of a hash: a secret of
// any use can't be found from it, and two secrets don't share one by accident.
type keyPrint [16]byte

func printOf(s Secret) keyPrint {
	sum := sha256.Sum256([]byte("fourgate key print\x00" + s.text))
	return keyPrint(sum[:16])
}

func (p keyPrint) String() string { return hex.EncodeToString(p[:]) }

// Name returns the key's name, which may be shown.
func (k *Key) Name() string { return k.name }

// Print returns what tells this secret from others of the key's name, as [Fact] carries
// it.
func (k *Key) Print() string { return k.print.String() }

// Secret returns the credential.
func (k *Key) Secret() Secret { return k.secret }

// Channel is one way to fulfil a contract.
type Channel struct {
	spec     ChannelSpec
	group    *Group
	provider *Provider
	seat     channelSeat
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
	ordered  []*Channel // by priority
	callers  int        // how many may use it
	seat     rateSeat
}

// among is the caller as one of several who may use the group, and nil if it is the only
// one: then nothing has to be kept apart from what others meet there.
func (g *Group) among(c *Caller) *Caller {
	if g.callers < 2 {
		return nil
	}
	return c
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

// HealthCheck returns how open channels of the group are looked at.
func (g *Group) HealthCheck() HealthCheckSpec { return g.spec.HealthCheck }

// Channels returns the group's channels in file order. Don't change the slice.
func (g *Group) Channels() []*Channel { return g.channels }

// Caller is an application that may call.
type Caller struct {
	spec   CallerSpec
	groups []*Group
	routes *routes
	seat   rateSeat
}

// routes are the lanes of all contracts that a list of groups serves. Callers with the
// same list share them.
type routes struct {
	lanes map[Contract]*lane
	order []Contract // as the groups list them
	cost  bool       // some group's strategy is cost
}

// lane is what serves one contract of a caller.
type lane struct {
	groups []*Group
	all    []*Channel // smart routing: of all groups, by priority; nil otherwise
}

// Name returns the caller's name.
func (c *Caller) Name() string { return c.spec.Name }

// Routing returns how the caller's groups are walked.
func (c *Caller) Routing() Routing { return c.spec.Routing }

// Compares says whether the chain of a request of this caller may depend on what the
// request will cost. Where it doesn't, nobody needs its [Request.Estimate].
func (c *Caller) Compares() bool { return c.routes.cost || c.spec.Budget.MaxCostUSD > 0 }

// Groups returns the groups that the caller may use, primary first. Don't change the
// slice.
func (c *Caller) Groups() []*Group { return c.groups }

// Keys returns the provider's keys in file order. Don't change the slice.
func (p *Provider) Keys() []*Key { return p.keys }
