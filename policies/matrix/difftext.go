package matrix

import (
	"fmt"
	"io"
	"strings"
)

// WriteText writes the diff for a terminal of 80 columns, collapsed as the matrix is.
func (d *Diff) WriteText(w io.Writer) error {
	var b strings.Builder
	if d.Same() {
		fmt.Fprintf(&b, "%s and %s give the same answer in all of %d cells.\n", d.From, d.To, d.Asked)
		// Who has just written a rule about one caller would take this for a mistake of theirs.
		d.Facts.write(&b)
		b.WriteString("A rule about another caller, channel or time shows with the fact that it is about,\nsuch as -fact request.caller=NAME.\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "A %s\nB %s\n%s", d.From, d.To, wrapped(d.summary(), ""))
	d.Facts.write(&b)
	from, to := rulesBehind(d.Moved)
	if len(d.Moved) > 0 {
		b.WriteString("\nanother action:\n")
		views := make([]view, len(d.Moved))
		for i := range d.Moved {
			c := &d.Moved[i]
			views[i] = view{c.From.Cell, "-", []string{
				joined(c.From.marked(), from.mark(c.From.Decision.Rule)),
				joined(c.To.marked(), to.mark(c.To.Decision.Rule)),
				reasons(c, &d.Facts),
			}}
		}
		for _, block := range blocks(views) {
			d.Facts.writeBlock(&b, &block, []any{"A", "B", "REASON"})
			b.WriteString("\n")
		}
	}
	if len(d.Others) > 0 {
		if len(d.Moved) == 0 {
			b.WriteString("\n")
		}
		b.WriteString("same action, other reason, delay, effects or gates:\n")
		views := make([]view, len(d.Others))
		for i := range d.Others {
			c := &d.Others[i]
			views[i] = view{c.From.Cell, "-", []string{strings.Join(c.details(&d.Facts), "; ")}}
		}
		for _, block := range blocks(views) {
			d.Facts.writeBlock(&b, &block, []any{"CHANGE"})
			b.WriteString("\n")
		}
	}
	text := strings.TrimSuffix(b.String(), "\n")
	b.Reset()
	b.WriteString(text)
	from.write(&b, "rules of A")
	to.write(&b, "rules of B")
	_, err := io.WriteString(w, b.String())
	return err
}

// summary is the diff in one sentence.
func (d *Diff) summary() string {
	s := fmt.Sprintf("%d of %d cells have another action", len(d.Moved), d.Asked)
	if len(d.Others) > 0 {
		s += fmt.Sprintf(", %d the same with another reason, delay, effects or gates", len(d.Others))
	}
	return s
}

// rulesBehind are those that have answered, on both sides.
func rulesBehind(changes []Change) (from, to rules) {
	a, b := make([]Answer, len(changes)), make([]Answer, len(changes))
	for i := range changes {
		a[i], b[i] = changes[i].From, changes[i].To
	}
	return rulesOf(a, "A"), rulesOf(b, "B")
}

func joined(action, mark string) string {
	if mark == "" {
		return action
	}
	return action + " " + mark
}

// reasons are both where they differ.
func reasons(c *Change, f *Facts) string {
	from, to := c.From.reason(f), c.To.reason(f)
	if from == to {
		return to
	}
	return from + " → " + to
}
