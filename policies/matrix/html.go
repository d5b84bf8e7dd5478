package matrix

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/fourgate-dev/fourgate/engine"
)

//go:embed page.gohtml
var pageText string

// page is what the template shows.
type page struct {
	Title    string
	Policies []policyHead
	Summary  string
	Counts   []actionCount
	Diff     bool
	Same     bool // a diff without a difference
	// Overruled says that an interlock stops some answer.
	Overruled bool
	Facts     []factLine
	Notes     []string
	Maps      []classMap
	Rules     []ruleList
}

type policyHead struct{ Letter, Name, Revision string }

type actionCount struct {
	Kind, Icon, Name, Help string
	Cells                  int
	Percent                string
}

type factLine struct{ Name, Value string }

type ruleList struct {
	Title string
	Rules []ruleLine
}

type ruleLine struct {
	Number, Place string
	Source        string // its text, if it is known
	Cells         int
}

// icons stand beside the words, so that colour isn't the only sign.
var icons = map[string]string{
	"retry": "↻", "fallback": "→", "substitute": "⇄", "abort": "×", "fault": "!", "same": "",
}

var helps = map[string]string{
	"retry":      "the same route again",
	"fallback":   "another route of the same contract",
	"substitute": "another model, declared and accepted",
	"abort":      "no further attempt",
	"fault":      "no usable answer: an abort that is counted",
}

// WriteHTML writes the matrix as one page that needs nothing else: no file, no network,
// and no script to be read.
func (m *Matrix) WriteHTML(w io.Writer) error {
	r := rulesOf(m.Answers, "")
	tiles := map[engine.Cell]tile{}
	cells := map[string]int{}
	overruled := false
	for i := range m.Answers {
		a := &m.Answers[i]
		tiles[a.Cell] = a.tile(&r)
		cells[a.Decision.Rule]++
		overruled = overruled || a.Interlock != engine.InterlockNone
	}
	p := page{
		Overruled: overruled,
		Title:     "Decision matrix", Policies: []policyHead{{"", m.Policy, m.Revision}}, Summary: m.count(),
		Counts: countsOf(m.Answers), Maps: maps(&m.Facts, tiles),
		Rules: []ruleList{{"Rules", r.lines(cells, m.Sources)}},
	}
	return p.write(w, &m.Facts)
}

// WriteHTML writes the diff as such a page, with maps of the classes that have a
// difference.
func (d *Diff) WriteHTML(w io.Writer) error {
	all := slices.Concat(d.Moved, d.Others)
	from, to := rulesBehind(all)
	tiles := map[engine.Cell]tile{}
	for _, c := range Cells() {
		tiles[c] = tile{Kind: "same"}
	}
	cellsFrom, cellsTo := map[string]int{}, map[string]int{}
	overruled := false
	for i := range all {
		c := &all[i]
		t := c.To.tile(&to)
		t.RuleWas = from.name(c.From.Decision.Rule)
		if c.moved() {
			t.Was = c.From.marked()
		}
		t.Changes, t.Minor = c.details(&d.Facts), t.Was == ""
		tiles[c.To.Cell] = t
		overruled = overruled || c.To.Interlock != engine.InterlockNone
		cellsFrom[c.From.Decision.Rule]++
		cellsTo[c.To.Decision.Rule]++
	}
	p := page{
		Title: "Policy diff", Diff: true, Same: d.Same(), Overruled: overruled, Summary: d.summary(),
		Policies: []policyHead{{"A", d.From, d.FromRevision}, {"B", d.To, d.ToRevision}},
		Maps:     maps(&d.Facts, tiles),
		Rules: []ruleList{
			{"Rules of A", from.lines(cellsFrom, d.FromSources)}, {"Rules of B", to.lines(cellsTo, d.ToSources)},
		},
	}
	return p.write(w, &d.Facts)
}

func (p *page) write(w io.Writer, f *Facts) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return fmt.Errorf("BUG: cannot parse the page: %w", err)
	}
	for _, fact := range facts {
		if fact.value == nil {
			continue
		}
		if s := factText(fact.value(f)); s != "" {
			p.Facts = append(p.Facts, factLine{fact.name, s})
		}
	}
	p.Notes = f.notes()
	var b bytes.Buffer // a page is whole or it isn't written
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("cannot draw the page: %w", err)
	}
	_, err = b.WriteTo(w)
	return err
}

// tile is an answer as a map shows it.
func (a *Answer) tile(r *rules) tile {
	kind, d := a.kind(), &a.Decision
	brief, reason := d.Action.String(), d.Reason.String()
	if d.Channel != "" {
		brief += " " + printable(d.Channel)
	}
	if d.Fault != "" {
		reason = d.Fault
	}
	return tile{
		Kind: kind, Icon: icons[kind], Brief: brief, Does: a.does(), Reason: reason, Rule: r.name(d.Rule), RulePlace: d.Rule,
		Effects: a.effects(), Interlock: a.Interlock.String(), Why: d.Why,
	}
}

// kind is the style of an answer.
func (a *Answer) kind() string {
	if a.Decision.Fault != "" {
		return "fault"
	}
	return a.Decision.Action.String()
}

// countsOf counts the cells of each kind.
func countsOf(answers []Answer) []actionCount {
	n := map[string]int{}
	for i := range answers {
		n[answers[i].kind()]++
	}
	var counts []actionCount
	for _, kind := range []string{"retry", "fallback", "substitute", "abort", "fault"} {
		if n[kind] > 0 {
			share := 100 * float64(n[kind]) / float64(len(answers))
			counts = append(counts, actionCount{kind, icons[kind], kind, helps[kind], n[kind], fmt.Sprintf("%.1f", share)})
		}
	}
	return counts
}

// lines are the rules for the page.
func (r *rules) lines(cells map[string]int, sources map[string]string) []ruleLine {
	lines := make([]ruleLine, len(r.places))
	for i, place := range r.places {
		lines[i] = ruleLine{Number: r.name(place), Place: place, Source: sources[place], Cells: cells[place]}
	}
	return lines
}
