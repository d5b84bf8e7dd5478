package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

func ledgerChangesCommand(e *env) *cobra.Command {
	var where ledgerFlags
	var since moment
	var asJSON bool
	cmd := &cobra.Command{
		Use: "changes -c FILE", Short: "List what hands and reloads have changed, the newest first", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := where.open(e, "")
			if err != nil {
				return err
			}
			defer r.Close()
			list := []ledger.Change{}
			for c, err := range r.Changes(cmd.Context(), since.at(e.now())) {
				if err != nil {
					return err
				}
				list = append(list, c)
			}
			if asJSON {
				return json.NewEncoder(e.stdout).Encode(map[string]any{"changes": list})
			}
			return drawChanges(e.stdout, list)
		},
	}
	where.add(cmd)
	cmd.Flags().Var(&since, "since", "only changes of the last such time, such as 24h, or since a time such as 2026-03-01T12:00:00Z")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func drawChanges(w io.Writer, list []ledger.Change) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "nothing was changed")
		return err
	}
	t := newTable("AT", "ACTION", "WHAT", "BEFORE", "BY")
	for _, c := range list {
		by := c.By
		if c.From != "" {
			by += " from " + c.From
		}
		before := "-"
		if len(c.Before) > 0 {
			before = asidesText(c.Before)
		}
		t.AppendRow(table.Row{c.At.Local().Format(time.DateTime), c.Action, changeText(c), before, by})
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}

// changeText is what a change was about.
func changeText(c ledger.Change) string {
	if c.Action == "reload" {
		return fmt.Sprintf("generation %d", c.Generation)
	}
	var words []string
	for _, v := range []struct{ name, value string }{
		{"", c.Kind}, {"group ", c.Group}, {"channel ", c.Channel}, {"provider ", c.Provider}, {"key ", c.Key}, {"model ", c.Model},
	} {
		if v.value != "" {
			words = append(words, v.name+v.value)
		}
	}
	if len(words) == 0 {
		words = append(words, "everything")
	}
	if c.Until != nil {
		words = append(words, "until "+c.Until.Local().Format(time.DateTime))
	}
	return strings.Join(words, ", ")
}
