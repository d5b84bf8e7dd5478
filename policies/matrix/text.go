package matrix

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/fourgate-dev/fourgate/engine"
)

// width is that of a terminal in the text's mind: no line of the default policy's matrix
// is longer.
const width = 80

// minColumn is the width from which a column isn't narrowed.
const minColumn = 14

// WriteText writes the matrix for a terminal of 80 columns: classes that are treated
// alike together, equal cells in one row, and each cell in exactly one row.
func (m *Matrix) WriteText(w io.Writer) error {
	var b strings.Builder
	title := m.Policy
	if m.Revision != "" {
		title += ", revision " + m.Revision
	}
	fmt.Fprintf(&b, "%s: %s\n", title, m.count())
	m.Facts.write(&b)
	r := rulesOf(m.Answers, "")
	views := make([]view, len(m.Answers))
	overruled := false
	for i := range m.Answers {
		a := &m.Answers[i]
		overruled = overruled || a.Interlock != engine.InterlockNone
		views[i] = view{a.Cell, a.effects(), []string{a.marked(), r.mark(a.Decision.Rule), a.reason(&m.Facts)}}
	}
	for _, block := range blocks(views) {
		b.WriteString("\n")
		m.Facts.writeBlock(&b, &block, []any{"ACTION", "RULE", "REASON"})
	}
	if overruled {
		b.WriteString("\n! An interlock overrules this answer: there is no other attempt.\n")
	}
	r.write(&b, "rules")
	writeFaults(&b, m.Answers)
	_, err := io.WriteString(w, b.String())
	return err
}

// marked is an answer's action, and the interlock that overrules it.
func (a *Answer) marked() string {
	if a.Interlock == engine.InterlockNone {
		return a.does()
	}
	return a.does() + " !" + a.Interlock.String()
}

// count says how many cells have which action, in the order of what a caller hopes for.
func (m *Matrix) count() string {
	n := map[engine.Action]int{}
	faults := 0
	for _, a := range m.Answers {
		if a.Decision.Fault != "" {
			faults++
			continue
		}
		n[a.Decision.Action]++
	}
	if len(m.Answers) == 0 {
		return "no such cell"
	}
	parts := []string{fmt.Sprintf("%d cells", len(m.Answers))}
	for _, action := range []engine.Action{engine.Retry, engine.Fallback, engine.Substitute, engine.Abort} {
		if n[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[action], action))
		}
	}
	if faults > 0 {
		parts = append(parts, fmt.Sprintf("%d without a usable answer", faults))
	}
	return parts[0] + ": " + strings.Join(parts[1:], ", ")
}

// write puts the facts in a paragraph, without those that say nothing.
func (f *Facts) write(b *strings.Builder) {
	var words []string
	for _, fact := range facts {
		if fact.value == nil {
			continue
		}
		if s := factText(fact.value(f)); s != "" {
			words = append(words, fact.name+"="+s)
		}
	}
	b.WriteString(wrapped("facts: "+strings.Join(words, " "), "  "))
	for _, note := range f.notes() {
		b.WriteString(note + "\n")
	}
}

// notes say which marks of the budget can't be met.
func (f *Facts) notes() []string {
	var notes []string
	for _, mark := range budgets {
		if f.Absent(mark) {
			notes = append(notes, fmt.Sprintf("A request of %d attempts has no failure with budget %s.", f.attempts, mark))
		}
	}
	return notes
}

// factText writes a fact's value as [Facts.Set] reads it, empty for nothing, no and 0.
func factText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []string:
		return strings.Join(v, ",")
	case bool:
		if !v {
			return ""
		}
	case int:
		if v == 0 {
			return ""
		}
	}
	return fmt.Sprint(v)
}

// writeBlock writes the classes of a block with the failures that stand for them, and its
// rows.
func (f *Facts) writeBlock(b *strings.Builder, block *block, columns []any) {
	heads := plainTable()
	header := table.Row{"CLASS", "ASKED AS", "SCOPE"}
	if slices.ContainsFunc(block.effects, func(e string) bool { return e != "" && e != "-" }) {
		header = append(header, "EFFECTS")
	}
	heads.AppendHeader(header)
	for i, class := range block.classes {
		t := f.failures[class]
		heads.AppendRow(table.Row{class.String(), t.asked(), t.Scope.String(), block.effects[i]}[:len(header)])
	}
	b.WriteString(heads.Render() + "\n")

	rows := plainTable()
	header = table.Row{"  PHASE", "COMPLETION", "SAFE", "BUDGET"}
	withEffects := slices.Contains(block.effects, "")
	header = append(header, columns...)
	if withEffects {
		header = append(header, "EFFECTS")
	}
	rows.AppendHeader(header)
	widths := make([]int, len(header))
	for i, c := range header {
		widths[i] = text.StringWidth(c.(string))
	}
	for _, l := range block.rows {
		row := table.Row{"  " + l.phaseText(), l.completionText(), l.safetyText(), l.budgetText()}
		for _, c := range l.columns {
			row = append(row, c)
		}
		for i, c := range row {
			widths[i] = max(widths[i], text.StringWidth(c.(string)))
		}
		rows.AppendRow(row)
	}
	// The last column takes what is left of the line.
	left := width
	for _, w := range widths[:len(widths)-1] {
		left -= w + 2
	}
	rows.SetColumnConfigs([]table.ColumnConfig{{Number: len(widths), WidthMax: max(left, minColumn), WidthMaxEnforcer: text.WrapSoft}})
	b.WriteString(rows.Render() + "\n")
}

// write lists the rules behind the numbers.
func (r *rules) write(b *strings.Builder, title string) {
	if len(r.places) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, place := range r.places {
		fmt.Fprintf(b, "  %s %s\n", r.mark(place), printable(place))
	}
}

// plainTable is the look of every table of the command line: columns, nothing around them.
func plainTable() table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	return t
}

// wrapped breaks a paragraph of words at the width, with an indent from its second line.
func wrapped(s, indent string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(s) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String() + "\n"
}
