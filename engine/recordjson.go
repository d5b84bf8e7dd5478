package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// RecordRefusal is the evidence of a request that got no chain, so made no attempt.
func RecordRefusal(now time.Time, req *Request, why *Refusal, status int) *Record {
	r := &Record{
		requestID: req.ID, caller: req.Caller.spec.Name, contract: req.Contract, sdkRetry: req.SDKRetry, at: req.Arrived, policy: req.Policy,
		terminal: TerminalPolicyStop, status: status, elapsed: now.Sub(req.Arrived),
		route: why.Narrowing,
	}
	if why.Kind == RefusalNoChannel {
		r.terminal = TerminalExhausted
	}
	return r
}

// AppendJSON appends the record's public form, one JSON object without a final newline
// (docs/ledger.md). Times are milliseconds, unknown numbers are null.
func (r *Record) AppendJSON(b []byte) []byte {
	b = append(b, `{"request_id":`...)
	b = appendString(b, r.requestID)
	b = append(b, `,"at":"`...)
	b = r.at.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","caller":`...)
	b = appendString(b, r.caller)
	b = append(b, `,"contract":{"model":`...)
	b = appendString(b, r.contract.Model)
	b = append(b, `,"endpoint":"`...)
	b = append(b, r.contract.Endpoint.String()...)
	b = append(b, `"},"sdk_retry":`...)
	b = strconv.AppendInt(b, int64(r.sdkRetry), 10)
	if r.policy != "" {
		b = appendString(append(b, `,"policy":`...), r.policy)
	}
	if r.route != nil {
		b = r.route.appendJSON(append(b, `,"route":`...))
	}
	b = append(b, `,"attempts":[`...)
	for i := range r.attempts {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.attempts[i].appendJSON(b)
	}
	b = append(b, `],"terminal":`...)
	b = appendWord(b, r.terminal.String())
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(r.status), 10)
	b = append(b, `,"elapsed_ms":`...)
	b = appendMS(b, r.elapsed)
	return append(b, '}')
}

func (a *AttemptRecord) appendJSON(b []byte) []byte {
	b = append(b, `{"seq":`...)
	b = strconv.AppendInt(b, int64(a.seq), 10)
	for _, f := range [...]struct{ name, value string }{
		{`,"group":`, a.group}, {`,"channel":`, a.channel}, {`,"provider":`, a.provider}, {`,"key":`, a.key}, {`,"model":`, a.model},
	} {
		b = append(b, f.name...)
		b = appendString(b, f.value)
	}
	b = append(b, `,"endpoint":"`...)
	b = append(b, a.endpoint.String()...)
	b = append(b, `","action":"`...)
	b = append(b, a.actionName()...)
	b = append(b, `","status":`...)
	if a.status == 0 {
		b = append(b, `null`...)
	} else {
		b = strconv.AppendInt(b, int64(a.status), 10)
	}
	b = append(b, `,"class":`...)
	b = appendWord(b, a.className())
	b = append(b, `,"reason":`...)
	b = appendWord(b, a.reason.text)
	b = append(b, `,"scope":`...)
	if a.failed {
		b = appendWord(b, a.scope.String())
	} else {
		b = append(b, `null`...)
	}
	b = append(b, `,"phase":"`...)
	b = append(b, a.phase.String()...)
	b = append(b, `","completion":`...)
	if a.failed {
		b = appendWord(b, a.completion.String())
	} else {
		b = append(b, `null`...)
	}
	b = append(b, `,"output_started":`...)
	b = strconv.AppendBool(b, a.outputStarted)
	b = append(b, `,"cancelled":`...)
	b = strconv.AppendBool(b, a.cancelled)
	if a.fault != "" {
		b = append(b, `,"classifier_fault":`...)
		b = appendString(b, a.fault)
	}
	if a.shape != (Shape{}) {
		b = append(b, `,"shape":`...)
		b = append(b, a.shape.text...)
	}
	b = a.timing.appendJSON(append(b, `,"timing_ms":`...))
	b = append(b, `,"usage":`...)
	b = a.usage.appendJSON(b)
	b = append(b, `,"cost_usd":`...)
	if a.costKnown {
		b = strconv.AppendFloat(b, a.costUSD, 'g', -1, 64)
	} else {
		b = append(b, `null`...)
	}
	b = append(b, `,"decision":`...)
	if a.decided {
		b = a.decision.appendJSON(b)
	} else {
		b = append(b, `null`...)
	}
	return append(b, '}')
}

// actionName says how an attempt came about; abort stands for the first.
func (a *AttemptRecord) actionName() string {
	if a.action == Abort {
		return "first"
	}
	return a.action.String()
}

// className is empty while an attempt runs.
func (a *AttemptRecord) className() string {
	if !a.ended {
		return ""
	}
	return a.class.String()
}

func (m Timing) appendJSON(b []byte) []byte {
	b = append(b, `{"started":`...)
	b = appendMS(b, m.Started)
	for _, f := range [...]struct {
		name string
		at   time.Duration
	}{
		{`,"connected":`, m.Connected}, {`,"sent":`, m.Sent}, {`,"headers":`, m.Headers},
		{`,"first_byte":`, m.FirstByte}, {`,"committed":`, m.Committed}, {`,"ended":`, m.Ended},
	} {
		if f.at != 0 {
			b = append(b, f.name...)
			b = appendMS(b, f.at)
		}
	}
	return append(b, '}')
}

func (u Usage) appendJSON(b []byte) []byte {
	if u == (Usage{}) {
		return append(b, `null`...)
	}
	sep := byte('{')
	for _, f := range [...]struct {
		name string
		n    Tokens
	}{{`"input_tokens":`, u.Input}, {`"output_tokens":`, u.Output}, {`"cached_input_tokens":`, u.CachedInput}} {
		b = append(append(b, sep), f.name...)
		sep = ','
		if n, known := f.n.Get(); known {
			b = strconv.AppendInt(b, n, 10)
		} else {
			b = append(b, `null`...)
		}
	}
	return append(b, '}')
}

func (d *DecisionRecord) appendJSON(b []byte) []byte {
	b = append(b, `{"action":"`...)
	b = append(b, d.action.String()...)
	b = append(b, `","channel":`...)
	b = appendWord(b, d.channel)
	b = append(b, `,"reason":`...)
	b = appendWord(b, d.reason.text)
	b = append(b, `,"rule":`...)
	b = appendWord(b, d.rule)
	b = append(b, `,"gates":{`...)
	sep := ""
	for _, g := range [...]struct {
		name string
		mark GateMark
	}{
		{"failure_class", d.gates.FailureClass}, {"response_phase", d.gates.ResponsePhase},
		{"idempotency", d.gates.Idempotency}, {"attempt_budget", d.gates.AttemptBudget},
	} {
		if g.mark != GateSilent {
			b = append(append(append(b, sep...), '"'), g.name...)
			b = append(append(append(b, `":"`...), g.mark.String()...), '"')
			sep = ","
		}
	}
	b = append(b, `},"delay_ms":`...)
	b = appendMS(b, d.delay)
	b = append(b, `,"interlock":`...)
	b = appendWord(b, d.interlock.String())
	if d.fault != "" {
		b = append(b, `,"policy_error":`...)
		b = appendString(b, d.fault)
	}
	if len(d.effects) > 0 {
		b = appendEffects(append(b, `,"effects":`...), d.effects)
	}
	if d.asked != nil {
		b = d.asked.appendJSON(append(b, `,"asked":`...))
	}
	return append(b, '}')
}

// maxMicros bounds a recorded time to 35 years either way: up to there, microseconds
// come back exactly from a JSON number of milliseconds.
const maxMicros = 1 << 50

// appendMS writes milliseconds with at most three decimals. Their whole part is the one
// that policies see.
func appendMS(b []byte, d time.Duration) []byte {
	us := min(max(d.Microseconds(), -maxMicros), maxMicros)
	if us < 0 {
		b, us = append(b, '-'), -us
	}
	b = strconv.AppendInt(b, us/1000, 10)
	if us %= 1000; us == 0 {
		return b
	}
	b = append(b, '.', byte('0'+us/100), byte('0'+us/10%10), byte('0'+us%10))
	return bytes.TrimRight(b, "0") // there is one digit at least that isn't
}

// appendWord writes a word, or null for none.
func appendWord(b []byte, s string) []byte {
	if s == "" {
		return append(b, `null`...)
	}
	return appendString(b, s)
}

// appendString writes s as a JSON string. Names with anything but plain characters are
// rare, so they may take the slow way.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...)
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// recordForm is the public form as [ParseRecord] reads it.
type recordForm struct {
	RequestID string    `json:"request_id"`
	At        time.Time `json:"at"`
	Caller    string    `json:"caller"`
	Contract  struct {
		Model    string `json:"model"`
		Endpoint string `json:"endpoint"`
	} `json:"contract"`
	SDKRetry  int            `json:"sdk_retry"`
	Policy    string         `json:"policy"`
	Route     *narrowingForm `json:"route"`
	Attempts  []attemptForm  `json:"attempts"`
	Terminal  string         `json:"terminal"`
	Status    int            `json:"status"`
	ElapsedMS float64        `json:"elapsed_ms"`
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
	if f.Route != nil {
		r.route = f.Route.narrowing()
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
		a.decision = DecisionRecord{channel: d.Channel, rule: d.Rule, delay: fromMS(d.DelayMS), fault: cmp.Or(d.Fault, d.OldFault), effects: effectsOf(d.Effects)}
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
