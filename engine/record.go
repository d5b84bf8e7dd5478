package engine

import "time"

// Record is the evidence of one request with all its attempts. It has no field that
// could hold a prompt, an answer or a key: numbers, times, closed words and bounded
// names only. Only the engine makes and completes one; see [Record.AppendJSON] for
// its public form and [ParseRecord] to read it back.
type Record struct {
	requestID string
	caller    string
	contract  Contract
	sdkRetry  int
	policy    string // the revision of the one that decides
	at        time.Time
	route     *Narrowing
	attempts  []AttemptRecord
	terminal  Terminal
	status    int
	elapsed   time.Duration

	sdkRetrySource RetrySource
	unserved       *Unserved
}

// AttemptRecord is the evidence of one upstream call.
type AttemptRecord struct {
	seq           int
	group         string
	channel       string
	provider      string
	key           string
	model         string // as it was sent
	endpoint      Endpoint
	action        Action // how it came about: abort (the zero value) stands for the first attempt
	status        int
	failed        bool
	class         Class
	reason        Reason
	scope         Scope
	phase         Phase
	completion    Completion
	fault         string // of the classifier
	shape         Shape  // of an unknown failure
	outputStarted bool
	cancelled     bool
	timing        Timing
	ended         bool
	usage         Usage
	costUSD       float64
	costKnown     bool
	decided       bool
	decision      DecisionRecord
}

// DecisionRecord is what was decided after a failed attempt.
type DecisionRecord struct {
	action    Action
	channel   string
	picked    string // of the question's fallbacks, by the policy
	reason    Reason
	rule      string
	gates     Gates
	delay     time.Duration
	interlock Interlock
	fault     string // of the policy
	effects   []Effect
	asked     *asked // nil in records of older versions
}

// RequestID returns the id that callers and upstreams have seen.
func (r *Record) RequestID() string { return r.requestID }

// At returns when the request arrived.
func (r *Record) At() time.Time { return r.at }

// Caller returns the caller's name.
func (r *Record) Caller() string { return r.caller }

// Contract returns the model and endpoint that the caller asked for.
func (r *Record) Contract() Contract { return r.contract }

// Route returns what a route policy made of the request's chain, nil if none had a say.
func (r *Record) Route() *Narrowing { return r.route }

// Unserved returns why no attempt was made, nil if one was or if that isn't known.
func (r *Record) Unserved() *Unserved { return r.unserved }

// SDKRetry returns how many times the caller's SDK has sent the request before, and how
// that is known. A record of an older version doesn't say how.
func (r *Record) SDKRetry() (int, RetrySource) { return r.sdkRetry, r.sdkRetrySource }

// Policy returns the revision of the policy that decides for the request, empty if it has
// none or no group was found.
func (r *Record) Policy() string { return r.policy }

// Terminal returns how the request ended, [TerminalNone] while it runs.
func (r *Record) Terminal() Terminal { return r.terminal }

// Status returns the HTTP status that the caller got.
func (r *Record) Status() int { return r.status }

// Elapsed returns how long the request took.
func (r *Record) Elapsed() time.Duration { return r.elapsed }

// Attempts returns the attempts in order. Don't change the slice.
func (r *Record) Attempts() []AttemptRecord { return r.attempts }

// Seq returns the attempt's number within its request, from 1.
func (a *AttemptRecord) Seq() int { return a.seq }

// Group returns the route group.
func (a *AttemptRecord) Group() string { return a.group }

// Channel returns the channel.
func (a *AttemptRecord) Channel() string { return a.channel }

// Provider returns the provider.
func (a *AttemptRecord) Provider() string { return a.provider }

// Key returns the name of the key.
func (a *AttemptRecord) Key() string { return a.key }

// Status returns the upstream's HTTP status, 0 if there was none.
func (a *AttemptRecord) Status() int { return a.status }

// Failed says whether the attempt failed.
func (a *AttemptRecord) Failed() bool { return a.failed }

// Class returns the failure class of a failed attempt.
func (a *AttemptRecord) Class() Class { return a.class }

// Scope returns the failure scope of a failed attempt.
func (a *AttemptRecord) Scope() Scope { return a.scope }

// Reason returns the failure's reason.
func (a *AttemptRecord) Reason() Reason { return a.reason }

// Phase returns how far the attempt had come.
func (a *AttemptRecord) Phase() Phase { return a.phase }

// Ended says whether the attempt is over.
func (a *AttemptRecord) Ended() bool { return a.ended }

// Timing returns the attempt's milestones.
func (a *AttemptRecord) Timing() Timing { return a.timing }

// Model returns the model's name as it was sent.
func (a *AttemptRecord) Model() string { return a.model }

// Endpoint returns the endpoint that was called.
func (a *AttemptRecord) Endpoint() Endpoint { return a.endpoint }

// Action returns how the attempt came about; abort stands for the first attempt.
func (a *AttemptRecord) Action() Action { return a.action }

// Completion returns what is known of the upstream's work after a failure.
func (a *AttemptRecord) Completion() Completion { return a.completion }

// OutputStarted says whether anything of the attempt has reached the caller.
func (a *AttemptRecord) OutputStarted() bool { return a.outputStarted }

// Cancelled says whether the attempt ended because the caller had gone.
func (a *AttemptRecord) Cancelled() bool { return a.cancelled }

// ClassifierFault returns what was wrong with the classifier's verdict, if anything.
func (a *AttemptRecord) ClassifierFault() string { return a.fault }

// Shape returns the shape of a failure whose class is unknown, the zero shape of others.
func (a *AttemptRecord) Shape() Shape { return a.shape }

// Usage returns what the upstream said it has used.
func (a *AttemptRecord) Usage() Usage { return a.usage }

// CostUSD returns the attempt's cost, and whether it is known.
func (a *AttemptRecord) CostUSD() (float64, bool) { return a.costUSD, a.costKnown }

// Decision returns what was decided after the attempt, and whether anything was.
func (a *AttemptRecord) Decision() (DecisionRecord, bool) { return a.decision, a.decided }

// Action returns what the policy answered.
func (d DecisionRecord) Action() Action { return d.action }

// Channel returns the channel of the next attempt, empty if there is none.
func (d DecisionRecord) Channel() string { return d.channel }

// Picked returns the channel that the policy named for a fallback, empty if it named none
// and so took the next one, and in records of older versions.
func (d DecisionRecord) Picked() string { return d.picked }

// Reason returns the policy's reason.
func (d DecisionRecord) Reason() Reason { return d.reason }

// Gates returns the marks of the four gates.
func (d DecisionRecord) Gates() Gates { return d.gates }

// Rule returns where the decision came from.
func (d DecisionRecord) Rule() string { return d.rule }

// Delay returns the wait before the next attempt.
func (d DecisionRecord) Delay() time.Duration { return d.delay }

// Interlock returns the interlock that acted, if one did.
func (d DecisionRecord) Interlock() Interlock { return d.interlock }

// Effects returns the changes to keys and channels that the policy asked for. Those of a
// failure that only its request is to blame for were not made. Don't change the slice.
func (d DecisionRecord) Effects() []Effect { return d.effects }

// Fault returns what was wrong with the policy's answer, if anything; the reason is
// policy_error then.
func (d DecisionRecord) Fault() string { return d.fault }

// Ledger keeps records. Both calls return at once, never fail a request, and read the
// record only before they return.
type Ledger interface {
	// Opened is called before an attempt goes out; the record's last attempt is open.
	Opened(r *Record)
	// Closed is called when the request is over.
	Closed(r *Record)
}
