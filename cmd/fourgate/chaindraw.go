package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

func showChain(w io.Writer, a chainAnswer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(a)
	}
	return drawChain(w, a)
}

func drawChain(w io.Writer, a chainAnswer) error {
	when := "when everything is well"
	if a.Live {
		when = "now"
	}
	fmt.Fprintf(w, "%s over %s for %s, %s (routing %s, strategy %s)\n", a.Model, a.Endpoint, a.Caller, when, a.Routing, a.Strategy)
	if a.Refused != "" {
		fmt.Fprintf(w, "every request is refused now: %s\n", a.Refused)
	}
	t := newTable("#", "CHANNEL", "GROUP", "PROVIDER", "SENDS AS", "USD/M IN", "USD/M OUT")
	for i, l := range a.Chain {
		in, out := "-", "-"
		if l.CostUSD != nil {
			in, out = fmt.Sprintf("%.2f", l.CostUSD.Input), fmt.Sprintf("%.2f", l.CostUSD.Output)
		}
		t.AppendRow(table.Row{i + 1, l.Channel, l.Group, l.Provider, l.SendsAs, in, out})
	}
	fmt.Fprintln(w, t.Render())
	if a.Policy != nil {
		fmt.Fprint(w, a.Policy.text())
	}
	t, others := newTable("OUT", "GROUP", "WHY"), 0
	for _, o := range a.Out {
		if o.Why == otherModel {
			others++ // hundreds where there are many models
			continue
		}
		t.AppendRow(table.Row{o.Channel, o.Group, o.text()})
	}
	if t.Length() > 0 {
		fmt.Fprintf(w, "\n%s\n", t.Render())
	}
	if others > 0 {
		fmt.Fprintf(w, "\nnot shown: %s of groups that serve other models (-json lists them)\n", count(others, "channel"))
	}
	return nil
}

// newTable is the plain look of every table: columns and nothing around them.
func newTable(columns ...any) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.AppendHeader(columns)
	t.SuppressTrailingSpaces()
	return t
}

// text is why a channel is out, and until when.
func (o *chainOut) text() string {
	text := o.Why
	if o.Until != nil {
		text += " until " + o.Until.Local().Format(time.DateTime)
	}
	if o.Abroad {
		text += ", as another instance has told"
	}
	return text
}
