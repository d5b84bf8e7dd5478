package engine

import "time"

// Request is a caller's request after it was judged: what the engine needs of it.
type Request struct {
	ID       string
	Caller   *Caller
	Contract Contract
	Stream   bool
	Tools    bool
	SDKRetry int // retries that the caller's SDK says it has made already
	// MaxAttempts allows fewer attempts than the budget does; 0 is no limit of its own.
	MaxAttempts int
	Idempotency Idempotency
	Arrived     time.Time
	// Policy is the revision of the policy that decides, for the record; it may be empty.
	Policy string
	// TimeLimit is the caller's own hint of its deadline; it shortens the budget's
	// deadline and never lengthens it.
	TimeLimit Wait
	// Estimate is what the request will probably use, for choosing between prices.
	Estimate Estimate
	// BodyHash is the SHA-256 of the body, by which a replay of a failed request is known;
	// all zeros if the body wasn't hashed. It must be set before the request ends for the
	// request to be remembered, and before [Begin] for it to be recognised.
	BodyHash [32]byte
	// Uncut says that a route policy is asked before the first attempt: max_hops counts
	// among the channels that it leaves, so the chain that it sees has all of them.
	Uncut bool
	// Room is memory for the chain's channels, which the caller of [Catalog.Route] may use
	// again once the call is over. It may be nil.
	Room []*Channel

	replay      replayMark
	retrySource RetrySource
}

// Timing are the milestones of one attempt as times since the request arrived. A zero
// milestone was not reached.
type Timing struct {
	Started, Connected, Sent, Headers, FirstByte, Committed, Ended time.Duration
}

// Instruction is what the driver must do next. Exactly one is outstanding; the driver
// answers with an [Event]. It is a pointer into the [Call] and valid until the next
// Step.
//
//sumtype:decl
type Instruction interface{ instruction() }

// Send: make one upstream call. Answer with [Held], [Failed] or [Gone].
type Send struct {
	Attempt int // 1, 2, …
	Channel *Channel
	Key     *Key // nil if the provider takes none
	// ModelSent is the name of the model to send; where it differs from the
	// contract's, the body's model member is replaced and nothing else.
	ModelSent string
	Limits    Limits
	Deadline  time.Time // of the whole request; before commit only
	// Last is set on the last attempt that the budget and the chain allow: it has no
	// limit but the deadline and the idle limit.
	Last bool
	// GateFallback: an elapsed gate is a failure, not a commit.
	GateFallback bool
	// Hold says how much of a stream is held back before [Held] is told.
	Hold Hold
}

// Classify: ask the classifier of the attempt's provider. Answer with [Classified].
type Classify struct {
	Attempt  int
	Channel  *Channel
	Evidence *Evidence
}

// Ask: ask the policy. Answer with [Decided].
type Ask struct {
	Attempt  int
	Question *Question
}

// WaitUntil: do nothing until the time has come. Answer with [Woke] or [Gone].
type WaitUntil struct{ At time.Time }

// Relay: the attempt is committed; pass its bytes to the caller. Answer with [Ended].
type Relay struct{ Attempt int }

// Finish: the request is over and its record complete. Nothing answers it.
type Finish struct {
	Terminal Terminal
	Reply    Reply
}

func (*Send) instruction()      {}
func (*Classify) instruction()  {}
func (*Ask) instruction()       {}
func (*WaitUntil) instruction() {}
func (*Relay) instruction()     {}
func (*Finish) instruction()    {}

// ReplyKind says what the caller gets at the end.
type ReplyKind uint8

// The kinds of reply. The zero value is none: the caller has it all, or has gone.
const (
	ReplyNone     ReplyKind = iota
	ReplyUpstream           // the failed attempt's own status and body, unchanged
	ReplyOwn                // an error of ours in the caller's protocol
	ReplyPartial            // one error event that ends a broken stream
)

// Reply is what the caller gets when no attempt was relayed to its end.
type Reply struct {
	Kind    ReplyKind
	Attempt int    // ReplyUpstream: whose
	Status  int    // ReplyOwn
	Code    string // ReplyOwn and ReplyPartial: stable, such as "fourgate_exhausted"
	Message string // ReplyOwn and ReplyPartial: for a person, without a secret
	// Detail names the channels that failed and why. Callers see it only where the
	// configuration lets them see channels.
	Detail string
	// RetryAfter is the earliest time at which the chain has somebody again.
	RetryAfter Wait
}

// Event is what the driver saw. An event with an old attempt number changes nothing.
//
//sumtype:decl
type Event interface{ event() }

// Held: the attempt has a decisive answer, whole or in its first frames, and all of it
// is held back. It answers [Send]; the engine says [Relay].
type Held struct {
	Attempt int
	Status  int
	Model   string // that the answer names; empty if it names none
	Timing  Timing
}

// Failed: the attempt failed before anything of it reached the caller.
type Failed struct {
	Attempt  int
	Evidence *Evidence
	Timing   Timing
}

// Classified carries the verdict on a failed attempt.
type Classified struct {
	Attempt int
	Verdict Verdict
}

// Decided carries the policy's answer.
type Decided struct {
	Attempt  int
	Decision Decision
}

// Woke: the time of [WaitUntil] has come.
type Woke struct{}

// Gone: the caller has gone, and the attempt that ran, if any, is closed. Phase and
// NotStarted say where that attempt was.
type Gone struct {
	Phase      Phase
	NotStarted bool
	Timing     Timing
}

// Ended: the relay of the committed attempt is over. Broken is nil for an orderly end;
// otherwise it says what broke it, with Phase AfterOutput.
type Ended struct {
	Attempt    int
	Broken     *Evidence
	CallerGone bool
	Usage      Usage
	Timing     Timing
}

func (*Held) event()       {}
func (*Failed) event()     {}
func (*Classified) event() {}
func (*Decided) event()    {}
func (*Woke) event()       {}
func (*Gone) event()       {}
func (*Ended) event()      {}

// Call is one caller request on its way: the attempt loop as a state machine. It does
// no I/O, knows no clock and starts no goroutine; the driver tells it what happened and
// does what it says. It belongs to one goroutine at a time.
type Call struct {
	trace trace
	state state
}

// Begin starts a call over the chain that [Catalog.Route] gave its request, and gives
// the first instruction: a [Send], or [Finish] if the request's own time limit leaves no
// useful time, or if it is a replay of a failed request that the retry budget can't pay.
func Begin(now time.Time, req *Request, chain Chain, s *Standing, r Rand) (*Call, Instruction) {
	s.Recognise(now, req)
	chain, _ = chain.Cut()
	c := &Call{trace: trace{
		req: req, standing: s, rnd: r, want: chain.want, group: chain.group, retry: chain.retry,
		record: Record{
			requestID: req.ID, caller: req.Caller.spec.Name, contract: req.Contract, sdkRetry: req.SDKRetry, sdkRetrySource: req.retrySource, at: req.Arrived, policy: req.Policy,
			route: chain.narrowed,
		},
	}}
	t := &c.trace
	p := newPlan(req, chain)
	price := priceOfFirstAttempt
	if req.replay.count > 0 {
		price = priceOfAttempt
	}
	lock := InterlockEligible
	for i := range chain.channels {
		if c.state, t.out, lock = p.launch(t, now, i, Abort, price); lock != InterlockEligible {
			break
		}
	}
	if lock != InterlockNone {
		t.record.unserved = unservedBy(lock)
		c.state, t.out = t.finish(now, TerminalExhausted, p.unstarted(t, now, lock))
	}
	return c, t.out
}

// Step tells the call what happened and gives the next instruction. An event that
// doesn't fit, such as one with an old attempt number, changes nothing: the outstanding
// instruction is given again.
func (c *Call) Step(now time.Time, ev Event) Instruction {
	next, ins := c.state.step(&c.trace, now, ev)
	if ins != nil {
		c.state, c.trace.out = next, ins
	}
	return c.trace.out
}

// Record returns the call's evidence so far. It changes with the next Step.
func (c *Call) Record() *Record { return &c.trace.record }
