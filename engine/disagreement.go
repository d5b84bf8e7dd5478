package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Difference says in what two answers to one question differ: in the first of these
// that does. Reasons, rules and gates are words for people, no difference.
type Difference uint8

// The differences. The zero value is none.
const (
	DiffersNot     Difference = iota
	DiffersAction             // another action
	DiffersFault              // the same action, but only one of them meant it
	DiffersChannel            // another channel to fall back to
	DiffersDelay              // another wait before the next attempt
	DiffersEffects            // another change to keys and channels
)

var differenceNames = [...]string{"", "action", "fault", "channel", "delay", "effects"}

func (d Difference) String() string { return name(differenceNames[:], d) }

// Answer is what two policies are compared by, and what says where it came from.
type Answer struct {
	Action  Action
	Channel string
	Reason  Reason
	Rule    string // file:line
	Fault   string // in the words of [Decision.Fault]
	Delay   Wait
	Effects []Effect // that change something
}

// AnswerOf is the part of a decision that is compared and kept.
func AnswerOf(d Decision) Answer {
	return Answer{
		Action: d.Action, Channel: d.Channel, Reason: d.Reason, Rule: d.Rule, Fault: d.Fault, Delay: d.Delay,
		Effects: recordedEffects(d.Effects),
	}
}

// Word is the answer in one closed word: the action, or "fault" where the policy gave no
// usable answer.
func (a Answer) Word() string {
	if a.Fault != "" {
		return "fault"
	}
	return a.Action.String()
}

// Differs says in what another answer to the same question differs from this one. A
// channel matters only to a fallback, and a wait only before another attempt.
func (a Answer) Differs(b Answer) Difference {
	switch {
	case a.Action != b.Action:
		return DiffersAction
	case a.Fault != b.Fault:
		return DiffersFault
	case a.Action == Fallback && a.Channel != b.Channel:
		return DiffersChannel
	case a.Action != Abort && a.Delay != b.Delay:
		return DiffersDelay
	case !slices.Equal(a.Effects, b.Effects):
		return DiffersEffects
	}
	return DiffersNot
}

// Disagreement is one question to which a candidate policy has another answer than the
// policy that decides. Like [Record] it has no field that could hold a prompt, an answer
// of a model or a key.
type Disagreement struct {
	RequestID string
	Seq       int       // of the failed attempt
	At        time.Time // when the attempt had failed
	Group     string
	Cell      Cell
	From      Answer // of the policy that decides
	To        Answer // of the candidate
}

// AppendJSON appends the public form, one JSON object without a final newline
// (docs/ledger.md).
func (d *Disagreement) AppendJSON(b []byte) []byte {
	b = append(b, `{"request_id":`...)
	b = appendString(b, d.RequestID)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, int64(d.Seq), 10)
	b = append(b, `,"at":"`...)
	b = d.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","group":`...)
	b = appendString(b, d.Group)
	b = d.Cell.AppendJSON(append(b, `,"cell":`...))
	b = append(b, `,"differs":`...)
	b = appendWord(b, d.From.Differs(d.To).String())
	b = d.From.appendJSON(append(b, `,"from":`...))
	b = d.To.appendJSON(append(b, `,"to":`...))
	return append(b, '}')
}

// AppendJSON appends the cell as an object in the words of the decision matrix.
func (c Cell) AppendJSON(b []byte) []byte {
	b = append(b, `{"class":"`...)
	b = append(b, c.Class.String()...)
	b = append(b, `","phase":"`...)
	b = append(b, c.Phase.String()...)
	b = append(b, `","completion":"`...)
	b = append(b, c.Completion.String()...)
	b = append(b, `","replay_safe":`...)
	b = strconv.AppendBool(b, c.ReplaySafe)
	b = append(b, `,"budget":"`...)
	b = append(b, c.Budget.String()...)
	return append(b, '"', '}')
}

func (a *Answer) appendJSON(b []byte) []byte {
	b = append(b, `{"action":"`...)
	b = append(b, a.Action.String()...)
	b = append(b, `","channel":`...)
	b = appendWord(b, a.Channel)
	b = append(b, `,"reason":`...)
	b = appendWord(b, a.Reason.text)
	b = append(b, `,"rule":`...)
	b = appendWord(b, a.Rule)
	b = append(b, `,"delay_ms":`...)
	if d, given := a.Delay.Get(); given {
		b = appendMS(b, d)
	} else {
		b = append(b, `null`...)
	}
	if len(a.Effects) > 0 {
		b = appendEffects(append(b, `,"effects":`...), a.Effects)
	}
	if a.Fault != "" {
		b = append(b, `,"policy_error":`...)
		b = appendString(b, a.Fault)
	}
	return append(b, '}')
}

type cellForm struct {
	Class      string `json:"class"`
	Phase      string `json:"phase"`
	Completion string `json:"completion"`
	ReplaySafe bool   `json:"replay_safe"`
	Budget     string `json:"budget"`
}

type answerForm struct {
	Action  string       `json:"action"`
	Channel string       `json:"channel"`
	Reason  string       `json:"reason"`
	Rule    string       `json:"rule"`
	DelayMS *float64     `json:"delay_ms"`
	Effects []effectForm `json:"effects"`
	Fault   string       `json:"policy_error"`
}

// ParseDisagreement reads what [Disagreement.AppendJSON] wrote. Words that a later
// version may add are read as their kind's zero value.
func ParseDisagreement(b []byte) (Disagreement, error) {
	var f struct {
		RequestID string     `json:"request_id"`
		Seq       int        `json:"seq"`
		At        time.Time  `json:"at"`
		Group     string     `json:"group"`
		Cell      cellForm   `json:"cell"`
		From      answerForm `json:"from"`
		To        answerForm `json:"to"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return Disagreement{}, fmt.Errorf("cannot read disagreement: %w", err)
	}
	d := Disagreement{RequestID: f.RequestID, Seq: f.Seq, At: writable(f.At), Group: f.Group, From: f.From.answer(), To: f.To.answer()}
	d.Cell.Class, _ = ParseClass(f.Cell.Class)
	d.Cell.Phase, _ = ParsePhase(f.Cell.Phase)
	d.Cell.Completion, _ = ParseCompletion(f.Cell.Completion)
	d.Cell.ReplaySafe = f.Cell.ReplaySafe
	d.Cell.Budget, _ = ParseBudgetMark(f.Cell.Budget)
	return d, nil
}

func (f *answerForm) answer() Answer {
	a := Answer{Channel: f.Channel, Rule: f.Rule, Fault: f.Fault, Effects: effectsOf(f.Effects)}
	a.Action, _ = ParseAction(f.Action)
	a.Reason, _ = ParseReason(f.Reason)
	if f.DelayMS != nil {
		a.Delay = WaitOf(fromMS(*f.DelayMS))
	}
	return a
}

// Clone copies a question, so that it may be kept. No text of the copy shares bytes with
// the request.
func (q *Question) Clone() *Question {
	c := *q
	for _, text := range []*string{
		&c.RequestID, &c.Caller, &c.Contract.Model, &c.Idempotency.Key, &c.Group, &c.Channel, &c.Provider, &c.Key,
		&c.Failure.reason.text, &c.Failure.fault,
	} {
		*text = strings.Clone(*text)
	}
	c.Fallback, c.Substitute = cloneAll(q.Fallback), cloneAll(q.Substitute)
	return &c
}

func cloneAll(list []string) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = strings.Clone(text)
	}
	return out
}
