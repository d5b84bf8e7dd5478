package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// recordForm is the public form as [ParseRecord] reads it.
type recordForm struct {
	RequestID string    `json:"request_id"`
	At        time.Time `json:"at"`
	Caller    string    `json:"caller"`
	Contract  struct {
		Model    string `json:"model"`
		Endpoint string `json:"endpoint"`
	} `json:"contract"`
	SDKRetry    int            `json:"sdk_retry"`
	RetrySource string         `json:"sdk_retry_source"`
	Policy      string         `json:"policy"`
	Route       *narrowingForm `json:"route"`
	Unserved    *unservedForm  `json:"unserved"`
	Attempts    []attemptForm  `json:"attempts"`
	Terminal    string         `json:"terminal"`
	Status      int            `json:"status"`
	ElapsedMS   float64        `json:"elapsed_ms"`
}

type attemptForm struct {
	Seq           int    `json:"seq"`
	Group         string `json:"group"`
	Channel       string `json:"channel"`
	Provider      string `json:"provider"`
	Key           string `json:"key"`
	Model         string `json:"model"`
	Endpoint      string `json:"endpoint"`
	Action        string `json:"action"`
	Status        int    `json:"status"`
	Class         string `json:"class"`
	Reason        string `json:"reason"`
	Scope         string `json:"scope"`
	Phase         string `json:"phase"`
	Completion    string `json:"completion"`
	OutputStarted bool   `json:"output_started"`
	Cancelled     bool   `json:"cancelled"`
	Fault         string `json:"classifier_fault"`

	Shape  json.RawMessage `json:"shape"`
	Timing struct {
		Started   float64 `json:"started"`
		Connected float64 `json:"connected"`
		Sent      float64 `json:"sent"`
		Headers   float64 `json:"headers"`
		FirstByte float64 `json:"first_byte"`
		Committed float64 `json:"committed"`
		Ended     float64 `json:"ended"`
	} `json:"timing_ms"`
	Usage *struct {
		Input       *int64 `json:"input_tokens"`
		Output      *int64 `json:"output_tokens"`
		CachedInput *int64 `json:"cached_input_tokens"`
	} `json:"usage"`
	CostUSD  *float64 `json:"cost_usd"`
	Decision *struct {
		Action    string            `json:"action"`
		Channel   string            `json:"channel"`
		Picked    string            `json:"picked"`
		Reason    string            `json:"reason"`
		Rule      string            `json:"rule"`
		Gates     map[string]string `json:"gates"`
		DelayMS   float64           `json:"delay_ms"`
		Interlock string            `json:"interlock"`
		Fault     string            `json:"policy_error"`
		OldFault  string            `json:"policy_fault"` // an earlier name
		Effects   []effectForm      `json:"effects"`
		Asked     *askedForm        `json:"asked"`
	} `json:"decision"`
}

// ParseRecord reads what [Record.AppendJSON] wrote. Words that a later version may add
// are read as their kind's zero value.
func ParseRecord(b []byte) (*Record, error) {
	var f recordForm
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("cannot read ledger record: %w", err)
	}
	endpoint, _ := ParseEndpoint(f.Contract.Endpoint)
	terminal, _ := ParseTerminal(f.Terminal)
	r := &Record{
		requestID: f.RequestID, caller: f.Caller, contract: Contract{f.Contract.Model, endpoint}, sdkRetry: f.SDKRetry, policy: f.Policy,
		at: writable(f.At), terminal: terminal, status: f.Status, elapsed: fromMS(f.ElapsedMS),
	}
	r.sdkRetrySource, _ = parse[RetrySource]("source of retries", retrySourceNames[:], f.RetrySource)
	if f.Route != nil {
		r.route = f.Route.narrowing()
	}
	if f.Unserved != nil {
		r.unserved = f.Unserved.unserved()
	}
	for i := range f.Attempts {
		r.attempts = append(r.attempts, f.Attempts[i].record())
	}
	return r, nil
}

func (f *attemptForm) record() AttemptRecord {
	a := AttemptRecord{
		seq: f.Seq, group: f.Group, channel: f.Channel, provider: f.Provider, key: f.Key, model: f.Model,
		status: f.Status, failed: f.Scope != "", ended: f.Class != "", outputStarted: f.OutputStarted, cancelled: f.Cancelled, fault: f.Fault,
	}
	a.endpoint, _ = ParseEndpoint(f.Endpoint)
	a.action, _ = ParseAction(f.Action)
	a.class, _ = ParseClass(f.Class)
	a.reason, _ = ParseReason(f.Reason)
	a.scope, _ = ParseScope(f.Scope)
	a.phase, _ = ParsePhase(f.Phase)
	a.completion, _ = ParseCompletion(f.Completion)
	if len(f.Shape) > 0 {
		a.shape, _ = ParseShape(string(f.Shape))
	}
	m := f.Timing
	a.timing = Timing{
		fromMS(m.Started), fromMS(m.Connected), fromMS(m.Sent), fromMS(m.Headers), fromMS(m.FirstByte), fromMS(m.Committed), fromMS(m.Ended),
	}
	if u := f.Usage; u != nil {
		a.usage = Usage{tokensAt(u.Input), tokensAt(u.Output), tokensAt(u.CachedInput)}
	}
	if f.CostUSD != nil {
		a.costUSD, a.costKnown = *f.CostUSD, true
	}
	if d := f.Decision; d != nil {
		a.decided = true
		a.decision = DecisionRecord{
			channel: d.Channel, picked: d.Picked, rule: d.Rule, delay: fromMS(d.DelayMS), fault: cmp.Or(d.Fault, d.OldFault), effects: effectsOf(d.Effects),
		}
		if d.Asked != nil {
			a.decision.asked = d.Asked.asked()
		}
		a.decision.action, _ = ParseAction(d.Action)
		a.decision.reason, _ = ParseReason(d.Reason)
		a.decision.interlock, _ = parse[Interlock]("interlock", interlockNames[:], d.Interlock)
		g := &a.decision.gates
		g.FailureClass, _ = ParseGateMark(d.Gates["failure_class"])
		g.ResponsePhase, _ = ParseGateMark(d.Gates["response_phase"])
		g.Idempotency, _ = ParseGateMark(d.Gates["idempotency"])
		g.AttemptBudget, _ = ParseGateMark(d.Gates["attempt_budget"])
	}
	return a
}

func tokensAt(n *int64) Tokens {
	if n == nil {
		return Tokens{}
	}
	return TokensOf(*n)
}

// writable is t in UTC, or the zero time where that has no year of four digits, which
// RFC 3339 can't say.
func writable(t time.Time) time.Time {
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return time.Time{}
	}
	return t
}

func fromMS(ms float64) time.Duration {
	return time.Duration(math.Round(min(max(ms*1000, -maxMicros), maxMicros))) * time.Microsecond
}
