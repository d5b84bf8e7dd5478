package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/policies"
)

// decisionForm, insteadForm and explanationForm are the JSON of policy explain.
type decisionForm struct {
	Action  string       `json:"action"`
	Channel string       `json:"channel,omitempty"`
	Reason  string       `json:"reason"`
	DelayMS *int64       `json:"delay_ms,omitempty"`
	Effects []effectForm `json:"effects"`
	Rule    string       `json:"rule"`
	Fault   string       `json:"fault,omitempty"`
	Why     string       `json:"why,omitempty"`
}

type effectForm struct {
	Kind  string `json:"kind"`
	ForMS int64  `json:"for_ms,omitempty"`
	After int    `json:"after,omitempty"`
}

type gateForm struct {
	Gate string `json:"gate"`
	Mark string `json:"mark"`
	Rule string `json:"rule"`
}

type insteadForm struct {
	Path string         `json:"path"`
	From any            `json:"from"`
	To   any            `json:"to"`
	With map[string]any `json:"with,omitempty"`
	decisionForm
}

type ruleForm struct {
	Place string `json:"place"`
	Title string `json:"title,omitempty"`
	Text  string `json:"text"`
}

type explanationForm struct {
	Input     json.RawMessage `json:"input"`
	Assumed   []string        `json:"assumed,omitempty"`
	Decision  decisionForm    `json:"decision"`
	Recorded  *recordedForm   `json:"recorded,omitempty"`
	Rule      ruleForm        `json:"rule"`
	Gates     []gateForm      `json:"gates"`
	Interlock string          `json:"interlock"`
	Outcome   string          `json:"outcome"`
	Changes   []insteadForm   `json:"changes"`
	Idle      []string        `json:"idle"`
	Unread    []string        `json:"unread"`
}

type recordedForm struct {
	Action    string `json:"action"`
	Reason    string `json:"reason"`
	Rule      string `json:"rule"`
	Interlock string `json:"interlock"`
	Same      bool   `json:"same"`
}

func decisionJSON(d engine.Decision) decisionForm {
	form := decisionForm{
		Action: d.Action.String(), Channel: d.Channel, Reason: d.Reason.String(), Effects: []effectForm{},
		Rule: d.Rule, Fault: d.Fault, Why: d.Why,
	}
	if wait, given := d.Delay.Get(); given {
		ms := wait.Milliseconds()
		form.DelayMS = &ms
	}
	for _, e := range d.Effects {
		form.Effects = append(form.Effects, effectForm{e.Kind.String(), e.For.Milliseconds(), e.After})
	}
	return form
}

func explanationJSON(x *explained, why *policies.Explanation) explanationForm {
	lock, outcome := foreseen(&why.Question, why.Decision)
	form := explanationForm{
		Input: policies.AppendQuestion(nil, &why.Question), Assumed: x.assumed, Decision: decisionJSON(why.Decision),
		Rule:      ruleForm{why.Rule.Place, why.Rule.Title, why.Rule.Text},
		Interlock: lock.String(), Outcome: outcome,
		Changes: []insteadForm{}, Idle: append([]string{}, why.Idle...), Unread: append([]string{}, why.Unread...),
	}
	if r := x.recorded; r != nil {
		form.Recorded = &recordedForm{r.Action().String(), r.Reason().String(), r.Rule(), r.Interlock().String(), sameAsRecorded(r, why.Decision)}
	}
	for _, g := range why.Gates {
		form.Gates = append(form.Gates, gateForm{g.Name, g.Mark.String(), g.Rule})
	}
	for _, c := range why.Changes {
		change := insteadForm{Path: c.Path, From: c.From, To: c.To, decisionForm: decisionJSON(c.Decision)}
		for _, w := range c.With {
			if change.With == nil {
				change.With = map[string]any{}
			}
			change.With[w.Path] = w.Value
		}
		form.Changes = append(form.Changes, change)
	}
	return form
}

// sameAsRecorded says whether the policy still decides what was recorded.
func sameAsRecorded(r *engine.DecisionRecord, d engine.Decision) bool {
	return r.Action() == d.Action && r.Reason() == d.Reason && r.Fault() == d.Fault && (r.Channel() == d.Channel || d.Channel == "")
}

// explainer writes lines with a name on the left.
type explainer struct{ b strings.Builder }

const nameWidth = 11

func (w *explainer) line(name, format string, args ...any) {
	fmt.Fprintf(&w.b, "%-*s%s\n", nameWidth, name, fmt.Sprintf(format, args...))
}

func drawExplanation(out io.Writer, x *explained, why *policies.Explanation) error {
	var w explainer
	w.facts(&why.Question)
	// What the policy can't look at may as well be assumed.
	assumed := slices.DeleteFunc(slices.Clone(x.assumed), func(path string) bool { return slices.Contains(why.Unread, path) })
	if len(assumed) > 0 {
		w.wrapped("assumed", strings.Join(assumed, ", "))
	}
	w.b.WriteByte('\n')
	w.decision(x, why)
	w.b.WriteByte('\n')
	w.changes(why)
	_, err := io.WriteString(out, w.b.String())
	return err
}

func (w *explainer) facts(q *engine.Question) {
	f := &q.Failure
	safe := "not replay-safe"
	if q.Idempotency.ReplaySafe {
		safe = "replay-safe"
	}
	w.line("request", "%s: %s of %s for %s, %s, effects %v", q.RequestID, q.Contract.Model, q.Contract.Endpoint, q.Caller, safe, q.Idempotency.Effects)
	key := ""
	if q.Key != "" {
		key = ", key " + q.Key
	}
	w.line("attempt", "%d of %d, on %s (group %s, provider %s%s)", q.Seq, q.AttemptsUsed+q.AttemptsLeft, q.Channel, q.Group, q.Provider, key)
	status := "no answer"
	if f.Status() != 0 {
		status = fmt.Sprintf("status %d", f.Status())
	}
	wait := ""
	if d, given := f.RetryAfter().Get(); given {
		wait = ", retry after " + d.String()
	}
	w.line("failure", "%v (%s), to blame: %v, %s%s, %v, completion %v", f.Class(), f.Reason(), f.Scope(), status, wait, f.Phase(), f.Completion())
	w.line("budget", "%s left, %v of time, retry budget %s", count(q.AttemptsLeft, "attempt"), q.Remaining.Round(time.Millisecond), yesNo(q.RetryBudget))
	w.line("routes", "same %s, fallback %s, spare key %s", yesNo(q.Same), namesOr(q.Fallback, "none"), yesNo(q.SpareKey))
}

func namesOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ", ")
}

func (w *explainer) decision(x *explained, why *policies.Explanation) {
	d := why.Decision
	w.line("decision", "%s", decisionText(d))
	if d.Why != "" {
		w.line("", "%s", d.Why)
	}
	w.line("effects", "%s", effectsText(d.Effects))
	if r := x.recorded; r != nil && !sameAsRecorded(r, d) {
		w.line("recorded", "%v (%s) by %s: this policy decides differently", r.Action(), orNone(r.Reason().String()+r.Fault()), orNone(r.Rule()))
	}
	if r := why.Rule; r.Place != "" {
		title := ""
		if r.Title != "" {
			title = "  " + r.Title
		}
		w.line("rule", "%s%s", r.Place, title)
		for i, line := range strings.Split(r.Text, "\n") {
			if r.Text != "" {
				fmt.Fprintf(&w.b, "%*d | %s\n", nameWidth+3, r.Line+i, line)
			}
		}
	}
	for i, g := range why.Gates {
		name := ""
		if i == 0 {
			name = "gates"
		}
		w.line(name, "%s", strings.TrimRight(fmt.Sprintf("%-15s %-5s %s", g.Name, orNone(g.Mark.String()), g.Rule), " "))
	}
	lock, outcome := foreseen(&why.Question, d)
	w.line("interlock", "%s; %s", orNone(lock.String()), outcome)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// decisionText is an action with all that makes it another one.
func decisionText(d engine.Decision) string {
	if d.Fault != "" {
		return fmt.Sprintf("abort, because the policy is at fault: %s", d.Fault)
	}
	to := ""
	if d.Channel != "" {
		to = " to " + d.Channel
	}
	if wait, given := d.Delay.Get(); given {
		to += " after " + wait.String()
	}
	return fmt.Sprintf("%v%s (%s)", d.Action, to, d.Reason)
}

// changes writes one line for each fact and outcome.
func (w *explainer) changes(why *policies.Explanation) {
	if len(why.Changes) == 0 {
		w.b.WriteString("No single change that was tried would change the decision.\n")
	} else {
		w.b.WriteString("A single change of one of these would change the decision:\n")
	}
	for i, c := range why.Changes {
		if slices.ContainsFunc(why.Changes[:i], func(before policies.Change) bool { return w.together(before, c, why) }) {
			continue
		}
		values := []string{valueText(c.To)}
		for _, after := range why.Changes[i+1:] {
			if w.together(c, after, why) {
				values = append(values, valueText(after.To))
			}
		}
		outcome := decisionText(c.Decision)
		if c.Decision.Action == why.Decision.Action && !slices.Equal(c.Decision.Effects, why.Decision.Effects) {
			outcome += ", effects: " + effectsText(c.Decision.Effects)
		}
		fmt.Fprintf(&w.b, "  %s = %s → %s  %s\n", c.Path, strings.Join(values, " | "), outcome, c.Decision.Rule)
		if len(c.With) > 0 {
			var with []string
			for _, f := range c.With {
				with = append(with, f.Path+" = "+valueText(f.Value))
			}
			fmt.Fprintf(&w.b, "      and so %s\n", strings.Join(with, ", "))
		}
	}
	if len(why.Idle) > 0 {
		w.b.WriteString("Looked at, but no other value that was tried changes it:\n")
		w.wrapped("", strings.Join(why.Idle, ", "))
	}
	if len(why.Unread) > 0 {
		w.b.WriteString("Never looked at:\n")
		w.wrapped("", strings.Join(why.Unread, ", "))
	}
}

// together says whether two changes fit on one line. Where the action is another one, its
// effects aren't told.
func (w *explainer) together(a, b policies.Change, why *policies.Explanation) bool {
	return a.Path == b.Path && len(a.With) == 0 && len(b.With) == 0 && a.Decision.Rule == b.Decision.Rule &&
		decisionText(a.Decision) == decisionText(b.Decision) &&
		(a.Decision.Action != why.Decision.Action || slices.Equal(a.Decision.Effects, b.Decision.Effects))
}

// valueText is a fact's value as JSON, words and names without their quotes.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return v
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// wrapped writes a long line in several.
func (w *explainer) wrapped(name, line string) {
	const width = 100
	indent := nameWidth
	if name == "" {
		indent = 2
	}
	for i, part := range strings.Split(text.WrapSoft(line, width), "\n") {
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(&w.b, "%-*s%s\n", indent, name, strings.TrimRight(part, " "))
	}
}
