package matrix

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/fourgate-dev/fourgate/engine"
)

func number(n int) string { return strconv.Itoa(n) }

// The forms in which the matrix is written as JSON. Names are those of a policy's input
// and answer.
type (
	cellForm struct {
		Class      string `json:"class"`
		Phase      string `json:"phase"`
		Completion string `json:"completion"`
		ReplaySafe bool   `json:"replay_safe"`
		Budget     string `json:"budget"`
	}
	effectForm struct {
		Kind  string `json:"kind"`
		ForMS int64  `json:"for_ms,omitempty"`
		After int    `json:"after,omitempty"`
	}
	gatesForm struct {
		FailureClass  string `json:"failure_class,omitempty"`
		ResponsePhase string `json:"response_phase,omitempty"`
		Idempotency   string `json:"idempotency,omitempty"`
		AttemptBudget string `json:"attempt_budget,omitempty"`
	}
	answerForm struct {
		cellForm
		Action    string       `json:"action"`
		Channel   string       `json:"channel,omitempty"`
		Reason    string       `json:"reason"`
		DelayMS   *int64       `json:"delay_ms,omitempty"`
		Effects   []effectForm `json:"effects"`
		Gates     gatesForm    `json:"gates"`
		Rule      string       `json:"rule"`
		Fault     string       `json:"fault,omitempty"`
		Why       string       `json:"why,omitempty"`
		Interlock string       `json:"interlock,omitempty"`
	}
	typicalForm struct {
		Reason string `json:"reason"`
		Scope  string `json:"scope"`
		Status int    `json:"status"`
	}
	matrixForm struct {
		Policy   string         `json:"policy"`
		Revision string         `json:"revision,omitempty"`
		Facts    map[string]any `json:"facts"`
		Cells    []answerForm   `json:"cells"`
		Stopped  string         `json:"stopped,omitempty"`
	}
)

// WriteJSON writes the matrix as one object; its list is "cells".
func (m *Matrix) WriteJSON(w io.Writer) error {
	form := matrixForm{m.Policy, m.Revision, m.Facts.form(), make([]answerForm, len(m.Answers)), m.Stopped}
	for i := range m.Answers {
		form.Cells[i] = m.Answers[i].form()
	}
	return json.NewEncoder(w).Encode(form)
}

// form is all facts by name, and "failures" by class.
func (f *Facts) form() map[string]any {
	form := map[string]any{}
	for _, fact := range facts {
		if fact.value != nil {
			form[fact.name] = fact.value(f)
		}
	}
	failures := map[string]typicalForm{}
	for i, t := range f.failures {
		failures[engine.Class(i).String()] = typicalForm{t.Reason.String(), t.Scope.String(), t.Status}
	}
	form["failures"] = failures
	return form
}

func formOf(c engine.Cell) cellForm {
	return cellForm{c.Class.String(), c.Phase.String(), c.Completion.String(), c.ReplaySafe, c.Budget.String()}
}

func (a *Answer) form() answerForm {
	d := &a.Decision
	form := answerForm{
		cellForm: formOf(a.Cell), Action: d.Action.String(), Channel: d.Channel, Reason: d.Reason.String(),
		Effects: effectForms(d.Effects), Gates: gatesOf(d.Gates), Rule: d.Rule, Fault: d.Fault, Why: d.Why,
		Interlock: a.Interlock.String(),
	}
	if delay, given := d.Delay.Get(); given {
		ms := delay.Milliseconds()
		form.DelayMS = &ms
	}
	return form
}

func effectForms(effects []engine.Effect) []effectForm {
	forms := make([]effectForm, len(effects))
	for i, e := range effects {
		forms[i] = effectForm{e.Kind.String(), e.For.Milliseconds(), e.After}
	}
	return forms
}

func gatesOf(g engine.Gates) gatesForm {
	return gatesForm{g.FailureClass.String(), g.ResponsePhase.String(), g.Idempotency.String(), g.AttemptBudget.String()}
}
