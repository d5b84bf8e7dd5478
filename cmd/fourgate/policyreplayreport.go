package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fourgate-dev/fourgate/policies/replay"
)

const (
	// replayRows is how many kinds of changes a text shows, and replayIDs how many
	// requests of each.
	replayRows = 20
	replayIDs  = 3
)

// replayReport writes what a replay says. JSON goes out as it comes; a text keeps counts
// and the newest ids of each kind of change.
type replayReport struct {
	w      *bufio.Writer
	flags  *replayFlags
	source string

	listed int // changes in JSON so far
	err    error

	counts map[move]int
	ids    map[move][]string
}

func newReplayReport(w io.Writer, flags *replayFlags, source string) *replayReport {
	r := &replayReport{w: bufio.NewWriter(w), flags: flags, source: source, counts: map[move]int{}, ids: map[move][]string{}}
	if flags.json {
		fmt.Fprint(r.w, `{"changes":[`)
	}
	return r
}

// changeForm is a change as JSON has it.
type changeForm struct {
	RequestID     string          `json:"request_id"`
	At            string          `json:"at"`
	Seq           int             `json:"seq"`
	Group         string          `json:"group"`
	Cell          json.RawMessage `json:"cell"`
	From          string          `json:"from"`
	To            string          `json:"to"`
	FromChannel   *string         `json:"from_channel"`
	ToChannel     *string         `json:"to_channel"`
	FromReason    *string         `json:"from_reason"`
	ToReason      *string         `json:"to_reason"`
	FromRule      *string         `json:"from_rule"`
	Rule          *string         `json:"rule"`
	FromInterlock *string         `json:"from_interlock"`
	Interlock     *string         `json:"interlock"`
	PolicyError   string          `json:"policy_error,omitempty"`
	Hypothetical  bool            `json:"hypothetical"`
	AttemptsSaved int             `json:"attempts_saved"`
	AttemptsAdded int             `json:"attempts_added"`
	LostSuccess   bool            `json:"lost_success"`
	RiskedSuccess bool            `json:"success_at_risk"`
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (r *replayReport) add(c replay.Change) {
	if !r.flags.json {
		m := move{c.Cell, c.From.Action.String(), c.To.Action.String()}
		if c.From.Action == c.To.Action {
			m.from, m.to = m.from+" to "+c.From.Channel, m.to+" to "+c.To.Channel
		}
		r.counts[m]++
		if ids := r.ids[m]; (r.flags.all || len(ids) < replayIDs) && (len(ids) == 0 || ids[len(ids)-1] != c.RequestID) {
			r.ids[m] = append(ids, c.RequestID)
		}
		return
	}
	if r.listed++; r.listed > 1 {
		fmt.Fprint(r.w, ",")
	}
	text, err := json.Marshal(changeForm{
		RequestID: c.RequestID, At: c.At.UTC().Format("2006-01-02T15:04:05.999999Z07:00"), Seq: c.Seq, Group: c.Group,
		Cell: c.Cell.AppendJSON(nil), From: c.From.Action.String(), To: c.To.Action.String(),
		FromChannel: orNull(c.From.Channel), ToChannel: orNull(c.To.Channel),
		FromReason: orNull(c.From.Reason.String()), ToReason: orNull(c.To.Reason.String()),
		FromRule: orNull(c.From.Rule), Rule: orNull(c.To.Rule),
		FromInterlock: orNull(c.From.Interlock.String()), Interlock: orNull(c.To.Interlock.String()),
		PolicyError: c.To.Fault, Hypothetical: c.Hypothetical,
		AttemptsSaved: c.AttemptsSaved, AttemptsAdded: c.AttemptsAdded, LostSuccess: c.LostSuccess, RiskedSuccess: c.RiskedSuccess,
	})
	r.err = cmp.Or(r.err, err)
	_, _ = r.w.Write(text) // the writer keeps its error for the flush
}

// stop ends a report of a replay that ended early. A text would only look like a whole one;
// JSON says so and has what is there.
func (r *replayReport) stop(t replay.Totals, why string) error {
	if r.flags.json {
		r.finishJSON(t, why)
	}
	return firstOf(r.err, r.w.Flush())
}

func (r *replayReport) finish(t replay.Totals) error {
	if r.flags.json {
		r.finishJSON(t, "")
	} else {
		r.draw(t)
	}
	return firstOf(r.err, r.w.Flush())
}

func (r *replayReport) finishJSON(t replay.Totals, stopped string) {
	text, err := json.Marshal(struct {
		Policy          string         `json:"policy"`
		Requests        int            `json:"requests"`
		Decisions       int            `json:"decisions"`
		Changed         int            `json:"changed"`
		Hypothetical    int            `json:"hypothetical"`
		AttemptsSaved   int            `json:"attempts_saved"`
		SavedUSD        float64        `json:"saved_usd"`
		CostsUnknown    int            `json:"costs_unknown"`
		AttemptsAdded   int            `json:"attempts_added"`
		SuccessesLost   int            `json:"successes_lost"`
		Redirected      int            `json:"redirected"`
		SuccessesAtRisk int            `json:"successes_at_risk"`
		EffectsChanged  int            `json:"effects_changed"`
		WaitsChanged    int            `json:"waits_changed"`
		PolicyErrors    map[string]int `json:"policy_errors"`
		Skipped         map[string]int `json:"skipped"`
		Stopped         string         `json:"stopped,omitempty"`
	}{
		r.source, t.Requests, t.Decisions, t.Changed, t.Hypothetical, t.AttemptsSaved, t.SavedUSD, t.CostsUnknown, t.AttemptsAdded,
		t.SuccessesLost, t.Redirected, t.SuccessesAtRisk, t.EffectsChanged, t.WaitsChanged, t.Faults, t.Skipped, stopped,
	})
	r.err = cmp.Or(r.err, err)
	if err == nil {
		fmt.Fprintf(r.w, "],%s\n", text[1:])
	}
}

func (r *replayReport) draw(t replay.Totals) {
	fmt.Fprintf(r.w, "%s, %s asked again, %d changed\n", count(t.Requests, "request"), count(t.Decisions, "decision"), t.Changed)
	if t.Decisions == 0 {
		fmt.Fprintln(r.w, "The ledger has no decision that could be asked again and matches.")
	} else {
		fmt.Fprintln(r.w, otherwise(t))
	}
	if t.Changed > 0 {
		r.drawChanges()
	}
	for _, note := range r.notes(t) {
		fmt.Fprintf(r.w, "\n%s\n", note)
	}
}

// otherwise is what would have gone otherwise, in one sentence.
func otherwise(t replay.Totals) string {
	var parts []string
	add := func(n int, one, many string) {
		switch n {
		case 0:
		case 1:
			parts = append(parts, "1 "+one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	saved := ""
	switch {
	case t.AttemptsSaved == 0:
	case t.CostsUnknown == t.AttemptsSaved:
		saved = " (of unknown cost)"
	case t.CostsUnknown > 0:
		saved = fmt.Sprintf(" (%.6f USD and what %d of unknown cost came to)", t.SavedUSD, t.CostsUnknown)
	default:
		saved = fmt.Sprintf(" (%.6f USD)", t.SavedUSD)
	}
	add(t.AttemptsSaved, "attempt saved"+saved, "attempts saved"+saved)
	add(t.AttemptsAdded, "attempt or more added", "attempts or more added")
	add(t.SuccessesLost, "success lost", "successes lost")
	risk := ""
	if t.SuccessesAtRisk > 0 {
		risk = fmt.Sprintf(", %d of which ended as a success", t.SuccessesAtRisk)
	}
	add(t.Redirected, "request sent another way"+risk, "requests sent another way"+risk)
	if len(parts) == 0 {
		return "With this policy nothing would have gone otherwise."
	}
	if t.SuccessesLost == 0 && t.Redirected == 0 {
		parts = append(parts, "no success lost")
	}
	if last := len(parts) - 1; last > 0 {
		return "With this policy: " + strings.Join(parts[:last], ", ") + " and " + parts[last] + "."
	}
	return "With this policy: " + parts[0] + "."
}

func (r *replayReport) drawChanges() {
	rows := byCount(r.counts)
	hidden := 0
	if !r.flags.all && len(rows) > replayRows {
		hidden = len(rows) - replayRows
		rows = rows[:replayRows]
	}
	t := newTable(append(slices.Clone(cellColumns), "TIMES", "REQUESTS")...)
	for _, m := range rows {
		ids := r.ids[m.move]
		text := strings.Join(ids, " ")
		if !r.flags.all && len(ids) == replayIDs && m.n > replayIDs {
			text += " …"
		}
		t.AppendRow(append(m.row(), m.n, text))
	}
	fmt.Fprintf(r.w, "\n%s\n", t.Render())
	if hidden > 0 {
		fmt.Fprintf(r.w, "… and %s; -all prints them\n", count(hidden, "more kind"))
	}
}

// notes are what a reader should know besides.
func (r *replayReport) notes(t replay.Totals) []string {
	var notes []string
	if t.Hypothetical > 0 {
		notes = append(notes, fmt.Sprintf("%d of the changed decisions come after an earlier change of the same request: they might not have come up,\n"+
			"and count for nothing in the sentence above.", t.Hypothetical))
	}
	if t.EffectsChanged > 0 || t.WaitsChanged > 0 {
		notes = append(notes, fmt.Sprintf("Of the unchanged decisions %d would do something else to keys and channels, and %d would wait shorter or longer.",
			t.EffectsChanged, t.WaitsChanged))
	}
	for _, kind := range slices.Sorted(maps.Keys(t.Faults)) {
		notes = append(notes, fmt.Sprintf("The policy gave no usable answer %s (%s): such a decision aborts.", howOften(t.Faults[kind]), kind))
	}
	for _, why := range slices.Sorted(maps.Keys(t.Skipped)) {
		switch n := t.Skipped[why]; why {
		case replay.SkippedNoQuestion:
			notes = append(notes, fmt.Sprintf("%s not asked again: an older Fourgate recorded what was decided, not what was asked.", were(n, "decision")))
		case skippedUnreadable:
			notes = append(notes, fmt.Sprintf("%s not asked about: changed by hand, or written by another version.", were(n, "record")))
		}
	}
	if r.flags.where.config == "" {
		notes = append(notes, "Asked without params; with -c FILE those of its groups are used.")
	}
	return notes
}

func were(n int, what string) string {
	if n == 1 {
		return "1 " + what + " was"
	}
	return fmt.Sprintf("%d %ss were", n, what)
}

func howOften(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
