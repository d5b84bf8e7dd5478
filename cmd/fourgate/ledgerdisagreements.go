package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

func ledgerDisagreementsCommand(e *env) *cobra.Command {
	var where ledgerFlags
	var filter ledger.DisagreementFilter
	var since moment
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "disagreements -c FILE", Short: "Show where a candidate policy would have decided otherwise", Args: args(cobra.NoArgs),
		Long: "Show where a candidate policy, asked beside the one that decides, would have decided otherwise: how often in\n" +
			"which cell of the decision matrix, and the newest cases with their requests.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usageError{fmt.Errorf("-limit is %d; ask for at least 1", limit)}
			}
			filter.Since = since.at(e.now())
			r, err := where.open(e, filter.Group)
			if err != nil {
				return err
			}
			defer r.Close()
			list := disagreements{limit: limit, byMove: map[move]int{}}
			var bad []error
			for d, err := range r.Disagreements(cmd.Context(), filter) {
				if err != nil {
					bad = append(bad, err)
					continue
				}
				list.add(d)
			}
			unread := errors.Join(bad...)
			if list.total == 0 && unread != nil {
				return unread
			}
			if asJSON {
				return firstOf(list.writeJSON(e.stdout), unread)
			}
			return firstOf(list.draw(e.stdout), unread)
		},
	}
	where.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.IntVar(&limit, "limit", ledger.DefaultLimit, "list at most so many; all are counted")
	flags.Var(&since, "since", "only those of the last such time, such as 24h, or since a time such as 2026-03-01T12:00:00Z")
	flags.StringVar(&filter.Group, "group", "", "only about attempts of this route group")
	return cmd
}

// move is a cell of the decision matrix with what one policy answers and the other one.
type move struct {
	cell     engine.Cell
	from, to string
}

// moved is a move with how often it was.
type moved struct {
	move
	n int
}

// byCount sorts moves, the most frequent first.
func byCount(counts map[move]int) []moved {
	list := make([]moved, 0, len(counts))
	for m, n := range counts {
		list = append(list, moved{m, n})
	}
	slices.SortFunc(list, func(a, b moved) int {
		return cmp.Or(
			cmp.Compare(b.n, a.n), cmp.Compare(a.cell.Class, b.cell.Class), cmp.Compare(a.cell.Phase, b.cell.Phase),
			cmp.Compare(a.cell.Completion, b.cell.Completion), cmp.Compare(yesNo(a.cell.ReplaySafe), yesNo(b.cell.ReplaySafe)),
			cmp.Compare(a.cell.Budget, b.cell.Budget), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to),
		)
	})
	return list
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// cellColumns are the titles of what [move.row] puts into a table.
var cellColumns = []any{"CLASS", "PHASE", "COMPLETION", "REPLAY SAFE", "BUDGET", "FROM", "TO"}

func (m move) row() table.Row {
	c := m.cell
	return table.Row{c.Class.String(), c.Phase.String(), c.Completion.String(), yesNo(c.ReplaySafe), c.Budget.String(), m.from, m.to}
}

// disagreements are what a ledger says of candidate policies: all of them counted, the
// newest listed.
type disagreements struct {
	limit  int
	total  int
	byMove map[move]int
	newest []engine.Disagreement
}

func (l *disagreements) add(d engine.Disagreement) {
	l.total++
	l.byMove[moveOf(&d)]++
	if len(l.newest) < l.limit {
		l.newest = append(l.newest, d)
	}
}

// moveOf names what differs where the action doesn't.
func moveOf(d *engine.Disagreement) move {
	m := move{d.Cell, d.From.Word(), d.To.Word()}
	if m.from == m.to {
		m.to += ", other " + d.From.Differs(d.To).String()
	}
	return m
}

func (l *disagreements) draw(w io.Writer) error {
	if l.total == 0 {
		_, err := fmt.Fprintln(w, "no candidate policy has disagreed")
		return err
	}
	counts := newTable(append(slices.Clone(cellColumns), "TIMES")...)
	for _, m := range byCount(l.byMove) {
		counts.AppendRow(append(m.row(), m.n))
	}
	list := newTable("AT", "REQUEST", "ATTEMPT", "GROUP", "CLASS", "FROM", "TO", "CANDIDATE'S REASON")
	for _, d := range l.newest {
		m := moveOf(&d)
		list.AppendRow(table.Row{
			d.At.Local().Format(time.DateTime), d.RequestID, d.Seq, d.Group, d.Cell.Class.String(), m.from, m.to, cmp.Or(d.To.Reason.String(), "-"),
		})
	}
	title := "the newest:"
	if len(l.newest) == l.total {
		title = "the newest first:"
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s\n\n%s\n%s\n", count(l.total, "disagreement"), counts.Render(), title, list.Render())
	return err
}

func (l *disagreements) writeJSON(w io.Writer) error {
	type cell struct {
		Cell  json.RawMessage `json:"cell"`
		From  string          `json:"from"`
		To    string          `json:"to"`
		Count int             `json:"count"`
	}
	out := struct {
		Total         int               `json:"total"`
		Cells         []cell            `json:"cells"`
		Disagreements []json.RawMessage `json:"disagreements"`
	}{l.total, []cell{}, make([]json.RawMessage, len(l.newest))}
	for _, m := range byCount(l.byMove) {
		out.Cells = append(out.Cells, cell{m.cell.AppendJSON(nil), m.from, m.to, m.n})
	}
	for i := range l.newest {
		out.Disagreements[i] = l.newest[i].AppendJSON(nil)
	}
	return json.NewEncoder(w).Encode(out)
}
