package engine

import "time"

// Spec is a configuration as plain data: what a file says, before any rule was
// checked. [NewCatalog] checks it.
type Spec struct {
	Providers   []ProviderSpec
	Groups      []GroupSpec
	Callers     []CallerSpec
	RetryBudget RetryBudgetSpec
}

// Auth is how a provider wants to be shown a credential.
type Auth uint8

// The auth styles that can be sent. The zero value sends nothing.
const (
	AuthNone        Auth = iota
	AuthBearer           // Authorization: Bearer SECRET
	AuthXAPIKey          // x-api-key: SECRET
	AuthAPIKey           // api-key: SECRET
	AuthXGoogAPIKey      // x-goog-api-key: SECRET
)

// Limits are a provider's time limits, each of one phase of an attempt.
type Limits struct {
	Connect time.Duration // name lookup and TCP connect, all addresses together
	TLS     time.Duration // TLS handshake; 0 means as long as Connect
	Headers time.Duration // request written, no response headers yet
	Gate    time.Duration // headers read, nothing decisive yet; then the attempt commits
	Idle    time.Duration // silence between two reads of a body
}

// KeySpec is one named credential of a provider.
type KeySpec struct {
	Name   string
	Secret Secret
}

// TLSSpec is what a provider's TLS needs beyond the defaults. Certificates are always
// verified; there is no way to say otherwise.
type TLSSpec struct {
	// CertificatesPEM are authorities that are trusted besides the system's.
	CertificatesPEM string
	// ServerName is sent as SNI and must be in the certificate; empty means the host of
	// the base URL.
	ServerName string
}

// ProviderSpec is one vendor account surface.
type ProviderSpec struct {
	Name       string
	BaseURL    string // http or https, with a path if the provider needs one, without a final slash
	Classifier string // the classifier's name in the configuration
	Auth       Auth
	Keys       []KeySpec
	Limits     Limits
	TLS        TLSSpec
	// GateFallback makes an elapsed gate a failure while another route is left
	// (on_gate = "fallback") instead of a commit.
	GateFallback bool
}

// Strategy is how a group orders its channels.
type Strategy uint8

// The strategies. The zero value walks the channels by priority, then file order.
const (
	StrategyFailover   Strategy = iota
	StrategyCost                // cheapest first, for what this request will probably use
	StrategyRoundRobin          // each request starts one channel further
	StrategyWeighted            // each starts as many requests as its weight says, evenly spread
	StrategyShuffle             // drawn evenly
)

var strategyNames = [...]string{"failover", "cost", "round_robin", "weighted", "shuffle"}

func (s Strategy) String() string { return name(strategyNames[:], s) }

// ParseStrategy reads a strategy's name.
func ParseStrategy(s string) (Strategy, error) {
	return parse[Strategy]("strategy", strategyNames[:], s)
}

// Cost is a price in USD per million tokens. A channel without a cost block has none.
type Cost struct {
	Given                      bool
	Input, Output, CachedInput float64
	CachedInputGiven           bool
}

// ChannelSpec is one independent way to serve a group's models.
type ChannelSpec struct {
	Name      string
	Provider  string            // the provider's name
	SendAs    map[string]string // the group's model → the provider's own name for it
	Serves    string            // the statement that the sent name is this model
	AnswersAs []string          // model names that are accepted in the answer, too
	Cost      Cost
	Priority  int // lower is earlier; 0 means "in file order after all priorities"; decides between equal prices, too
	Weight    int // for the strategy weighted; 0 means 1
	// Labels are the configuration's own words for the channel, such as region = "eu".
	// Nothing but a policy reads them.
	Labels map[string]string
}

// BudgetSpec bounds one caller request.
type BudgetSpec struct {
	Attempts    int           // all upstream calls
	PerRoute    int           // of them on one channel
	Deadline    time.Duration // queueing and backoff included
	MinUseful   time.Duration // no attempt starts with less left
	BackoffBase time.Duration
	BackoffMax  time.Duration
}

// BreakerMode is how a breaker counts.
type BreakerMode uint8

// The breaker modes. The zero value never opens.
const (
	BreakerOff         BreakerMode = iota
	BreakerWindow                  // failures within Window
	BreakerConsecutive             // failures in a row
)

// BreakerSpec says when a channel is set aside after failures.
type BreakerSpec struct {
	Mode           BreakerMode
	Failures       int
	Window         time.Duration
	OpenFor        time.Duration
	HalfOpenProbes int // 0: closes by itself after OpenFor; n: n successes in a row close it
}

// HealthCheckSpec says how channels whose breaker is open are looked at, so that they
// come back before their time is over. The zero value looks at none.
type HealthCheckSpec struct {
	Interval time.Duration // between two looks at one channel, before jitter
	Timeout  time.Duration // of one look; 0 is no look that can go well
	// Path is asked for with GET once connected, and any answer below 500 is good; empty
	// is a connection and no more.
	Path string
}

// GateChoice is what happens when the gate's time limit has elapsed and nothing
// decisive has come. The zero value says nothing.
type GateChoice uint8

// The choices. Where the group says nothing, the provider's [ProviderSpec.GateFallback]
// counts.
const (
	GateUnsaid    GateChoice = iota
	GateCommits              // a slow model is no error
	GateFallsOver            // a failure while another route is left
)

// Hold says how long a group's streams are held back. The zero value commits at the
// first decisive frame.
type Hold struct {
	// Complete holds a stream until it is whole, so that a cut in its middle can still
	// fall back.
	Complete bool
	// Max is how many bytes of a stream are held at most; past it the stream commits.
	Max int64
	// KeepAlive is the time between two comments to the caller meanwhile; the first one
	// commits the status. 0 sends none.
	KeepAlive time.Duration
}

// GroupSpec is an ordered set of channels with the same contract.
type GroupSpec struct {
	Name      string
	Models    []string
	Endpoints []Endpoint
	Strategy  Strategy
	MaxHops   int // channels that one request may walk; 0 means all
	RPM       int // requests a minute admitted before any upstream call; 0 means no limit
	Channels  []ChannelSpec
	Budget    BudgetSpec
	Breaker   BreakerSpec
	Hold      Hold
	OnGate    GateChoice

	HealthCheck HealthCheckSpec
}

// Routing is how a caller's groups are walked. The zero value takes them in their order.
type Routing uint8

// The routings.
const (
	RoutingOrdered Routing = iota // the primary group, then each fallback group
	RoutingSmart                  // the channels of all groups together, by the primary group's strategy
)

var routingNames = [...]string{"ordered", "smart"}

func (r Routing) String() string { return name(routingNames[:], r) }

// CallerBudget tightens the budget of a caller's requests. Zeros leave it as the group
// has it; nothing makes it wider.
type CallerBudget struct {
	Attempts int
	Deadline time.Duration
	// MaxCostUSD keeps a request off channels on which one attempt would cost more, by its
	// [Estimate]; 0 is no ceiling.
	MaxCostUSD float64
}

// CallerSpec is one application that may call.
type CallerSpec struct {
	Name      string
	KeySHA256 string   // hex
	Groups    []string // primary first
	Routing   Routing
	RPM       int
	Budget    CallerBudget
}

// RetryBudgetSpec bounds extra attempts of a group, so that an outage isn't amplified
// (docs/rationale.md).
type RetryBudgetSpec struct {
	Ratio float64 // tokens earned by a successful first attempt
	Floor float64 // tokens a second
	Cap   float64 // the most that can be saved, and the start
}

// Problem is one broken rule. Path names the place in the words of the configuration,
// block type and label by block type and label, then the attribute:
// "route_group.gpt-4o.channel.azure-east.serves".
type Problem struct {
	Path    []string
	Warning bool
	Summary string // under ten words
	Detail  string // why it matters and what to write instead
}
