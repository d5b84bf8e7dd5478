package matrix

import (
	"encoding/json"
	"io"
)

type (
	changeForm struct {
		cellForm
		From        string       `json:"from"`
		To          string       `json:"to"`
		FromChannel string       `json:"from_channel,omitempty"`
		ToChannel   string       `json:"to_channel,omitempty"`
		FromReason  string       `json:"from_reason"`
		ToReason    string       `json:"to_reason"`
		FromRule    string       `json:"from_rule"`
		ToRule      string       `json:"to_rule"`
		FromDelay   *int64       `json:"from_delay_ms,omitempty"`
		ToDelay     *int64       `json:"to_delay_ms,omitempty"`
		FromEffects []effectForm `json:"from_effects"`
		ToEffects   []effectForm `json:"to_effects"`
		FromGates   gatesForm    `json:"from_gates"`
		ToGates     gatesForm    `json:"to_gates"`
		FromFault   string       `json:"from_fault,omitempty"`
		ToFault     string       `json:"to_fault,omitempty"`
		FromLock    string       `json:"from_interlock,omitempty"`
		ToLock      string       `json:"to_interlock,omitempty"`
		// Changed names what differs beside the action.
		Changed []string `json:"changed,omitempty"`
	}
	diffForm struct {
		From    string         `json:"from"`
		To      string         `json:"to"`
		Facts   map[string]any `json:"facts"`
		Asked   int            `json:"asked"`
		Cells   []changeForm   `json:"cells"`
		Others  []changeForm   `json:"others"`
		Stopped string         `json:"stopped,omitempty"`
	}
)

// WriteJSON writes the diff as one object. Its list "cells" has the cells with another
// action; "others" those with the same action and something else that differs.
func (d *Diff) WriteJSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(diffForm{
		d.From, d.To, d.Facts.form(), d.Asked, changeForms(d.Moved), changeForms(d.Others), d.Stopped,
	})
}

func changeForms(list []Change) []changeForm {
	forms := make([]changeForm, len(list))
	for i := range list {
		c := &list[i]
		a, b := c.From.form(), c.To.form()
		forms[i] = changeForm{
			a.cellForm, a.Action, b.Action, a.Channel, b.Channel, a.Reason, b.Reason, a.Rule, b.Rule,
			a.DelayMS, b.DelayMS, a.Effects, b.Effects, a.Gates, b.Gates, a.Fault, b.Fault, a.Interlock, b.Interlock,
			c.what(),
		}
	}
	return forms
}
