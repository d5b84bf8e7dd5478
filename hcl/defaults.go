package hcl

import "time"

// The defaults of attributes that a configuration leaves out. Nothing outside this
// file knows one.
const (
	// defaultListen keeps a first start on this machine: without callers, a public
	// address would be an open proxy.
	defaultListen = "127.0.0.1:8080"
	// defaultAdminListen is none: a second proxy on a machine would find any fixed port
	// taken.
	defaultAdminListen = ""
	// defaultMaxBody, in bytes, takes a request with several inline images: 20 MB is
	// what vendors accept for one image.
	defaultMaxBody = 32 << 20
	// defaultDrainTimeout is what Kubernetes gives a pod to end
	// (terminationGracePeriodSeconds).
	defaultDrainTimeout = 30 * time.Second

	// defaultClassifier serves a provider that names none.
	defaultClassifier = "builtin:generic"
	// defaultClassifierTimeout is a thousand times what a small module needs, and short
	// enough that one which doesn't end holds nobody else up for long.
	defaultClassifierTimeout = 25 * time.Millisecond
	// defaultBuiltinTimeout is for modules that are known to end. It is time on the
	// wall: a process that is throttled, for which Linux' periods are 100 ms, must not
	// turn a known failure into an unknown one.
	defaultBuiltinTimeout = 250 * time.Millisecond
	// defaultProfileTimeout allows for the beginning of a Go program, 6 ms, on a busy
	// machine.
	defaultProfileTimeout = 250 * time.Millisecond
	// defaultClassifierMemory, in bytes, holds a module, its stack and a 1 MiB body
	// several times.
	defaultClassifierMemory = 16 << 20

	// defaultConnect covers two lost SYN packets (1 s and 2 s of retransmission).
	defaultConnect = 5 * time.Second
	// defaultHeaders lets a reasoning model think before a whole answer, and stays
	// under the 300 s after which Node's fetch gives up without headers.
	defaultHeaders = 240 * time.Second
	// defaultGate is when an undecided stream is taken for a slow model and commits.
	defaultGate = 30 * time.Second
	// defaultIdle is well above the 15 to 60 s between vendors' keep-alives.
	defaultIdle = 120 * time.Second

	// defaultCompleteMax, in bytes, is a stream of some hundred thousand tokens: what the
	// longest answers have.
	defaultCompleteMax = 8 << 20

	// defaultAttempts is one call and two more, as the official SDKs do (max_retries 2).
	defaultAttempts = 3
	// defaultPerRoute leaves one of three attempts to another channel.
	defaultPerRoute = 2
	// defaultDeadline is what a person at a screen still waits for.
	defaultDeadline = 60 * time.Second
	// defaultMinUseful is the time in which a fast model has given its first token.
	defaultMinUseful = 2 * time.Second
	// defaultBackoffBase and defaultBackoffMax bound the full jitter,
	// random(0, min(max, base*2^n)); both are below the SDKs' 0.5 s and 8 s, because
	// the SDK's own wait comes on top.
	defaultBackoffBase = 200 * time.Millisecond
	defaultBackoffMax  = 5 * time.Second

	// defaultBreakerFailures within defaultBreakerWindow open a channel's breaker for
	// defaultBreakerOpenFor: a vendor's incident is minutes long, and a minute is the
	// window of its rate limits.
	defaultBreakerFailures = 3
	defaultBreakerWindow   = 5 * time.Minute
	defaultBreakerOpenFor  = 60 * time.Second

	// defaultHealthInterval finds a provider that is back within a sixth of
	// defaultBreakerOpenFor. defaultHealthTimeout is two round trips around the world and
	// a lost packet; a provider that needs longer to say hello isn't well.
	defaultHealthInterval = 10 * time.Second
	defaultHealthTimeout  = 2 * time.Second

	// defaultRetryRatio is tokens for each successful first attempt, defaultRetryFloor
	// tokens a second and defaultRetryCap the most that can be saved: with these a
	// group recovers from a brown-out at 80 % load (docs/rationale.md).
	defaultRetryRatio = 0.1
	defaultRetryFloor = 0.1
	defaultRetryCap   = 100

	// defaultPolicyQuery is the rule of the embedded policy.
	defaultPolicyQuery = "data.fourgate.decision"
	// defaultPolicyTimeout is a thousand decisions of the embedded policy. It is time on
	// the wall, too: being throttled must not turn a fallback into an abort.
	defaultPolicyTimeout = 250 * time.Millisecond

	// defaultBundlePoll is how soon a change is wanted everywhere; a question whose answer
	// has not changed costs its server next to nothing (ETag).
	defaultBundlePoll = time.Minute
	// defaultBundleCache is beside the configuration.
	defaultBundleCache = "fourgate-bundle"

	// defaultStatePrefix is short: it is in each key.
	defaultStatePrefix = "fg:"

	// defaultLedgerPath is beside the configuration.
	defaultLedgerPath = "fourgate.db"
	// defaultRetention is thirty days, a billing period.
	defaultRetention = 720 * time.Hour
)

// The bounds of what a configuration may say. They catch slips of the unit, such as
// "5ms" for "5m", and values that nothing could work with.
const (
	maxDuration = 24 * time.Hour // of anything that happens within one request

	minMaxBody = 1 << 10 // a request has at least a model and a message
	maxMaxBody = 1 << 30

	minClassifierTimeout = 100 * time.Microsecond
	maxClassifierTimeout = time.Second // a slower module would be the outage
	minClassifierMemory  = 64 << 10    // one WebAssembly page
	maxClassifierMemory  = 256 << 20
	maxProfileMemory     = 64 << 20 // with profile = "wasi": its memory can be filled at once

	minPolicyTimeout = time.Millisecond
	maxPolicyTimeout = time.Second

	minBundlePoll = time.Second

	minCompleteMax = 1 << 10
	maxCompleteMax = 1 << 30
	minKeepAlive   = 100 * time.Millisecond // a comment costs a write to each caller that waits

	minHealthInterval = time.Second // more often it would be a burden to who is down already
	maxHealthTimeout  = time.Minute

	minLimit    = time.Millisecond
	minDeadline = 10 * time.Millisecond

	maxAttempts    = 20 // more would be an attack on the upstreams
	minCostCeiling = 1e-6
	maxCostCeiling = 10_000 // USD; no request costs as much
	maxHops        = 100
	maxRPM         = 10_000_000
	maxPriority    = 1000
	maxWeight      = 1_000_000
	maxPrice       = 1_000_000 // USD per million tokens
	maxFailures    = 10_000
	maxProbes      = 100
	maxRetryRatio  = 1
	maxRetryFloor  = 1000
	maxRetryCap    = 1_000_000
	minRetention   = time.Minute
	maxRetention   = 10 * 365 * 24 * time.Hour
	maxDrain       = time.Hour
	maxNameBytes   = 64  // of a label: labels go into headers, metrics and records
	maxModelBytes  = 256 // of a model's name
	maxSecretBytes = 8 << 10
	maxLabels      = 32  // of a channel: each is copied into each question that reads them
	maxLabelBytes  = 256 // of a label's value
)

// The bounds of a file, looked at before it is parsed: the parser recurses, and a
// stack overflow can't be recovered from.
const (
	maxFileBytes = 1 << 20
	maxNesting   = 100
	// maxOperators bounds what nests without brackets: operators, conditionals,
	// splats, template controls. A configuration needs none of them.
	maxOperators = 1000
)
