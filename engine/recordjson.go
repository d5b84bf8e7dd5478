package engine

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// RecordRefusal is the evidence of a request that got no chain, so made no attempt.
func RecordRefusal(now time.Time, req *Request, why *Refusal, status int) *Record {
	r := &Record{
		requestID: req.ID, caller: req.Caller.spec.Name, contract: req.Contract, sdkRetry: req.SDKRetry, sdkRetrySource: req.sourceOfRetry(), at: req.Arrived, policy: req.Policy,
		terminal: TerminalPolicyStop, status: status, elapsed: now.Sub(req.Arrived),
		route: why.Narrowing, unserved: why.unserved(),
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
	if r.sdkRetrySource != RetrySourceNone {
		b = append(b, `,"sdk_retry_source":"`...)
		b = append(append(b, r.sdkRetrySource.String()...), '"')
	}
	if r.policy != "" {
		b = appendString(append(b, `,"policy":`...), r.policy)
	}
	if r.route != nil {
		b = r.route.appendJSON(append(b, `,"route":`...))
	}
	if r.unserved != nil {
		b = r.unserved.appendJSON(append(b, `,"unserved":`...))
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
	if d.picked != "" {
		b = appendString(append(b, `,"picked":`...), d.picked)
	}
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
