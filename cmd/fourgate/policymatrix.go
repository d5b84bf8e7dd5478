package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/policies"
	"github.com/fourgate-dev/fourgate/policies/matrix"
)

func policyMatrixCommand(e *env) *cobra.Command {
	var ask matrixFlags
	var out matrixOutput
	cmd := &cobra.Command{
		Use: "matrix [-c FILE [-group NAME]] [-json | -html[=FILE]] [POLICY]", Short: "Show what a policy decides in every case",
		Args: cobra.ArbitraryArgs,
		Long: "Show what a policy decides for every combination of failure class, phase, completion, replay safety and\n" +
			"budget. On a terminal classes that are treated alike stand together, and equal cells in one row: each of\n" +
			"the cells is in exactly one. Without POLICY it is the group's own with -c, and else the default policy.\n\n" +
			sourceHelp + "\n\n" +
			"Everything beside the cell is a fixed fact, shown with the answers, and can be set: the same matrix with\n" +
			"no other route left is -fact routes.fallback= and that of a network failure is\n" +
			"-fact failure.status=0 -fact failure.reason=network. The facts are:\n  " + wrappedNames(matrix.FactNames()),
		RunE: func(cmd *cobra.Command, list []string) error {
			list = out.take(list)
			if err := args(cobra.MaximumNArgs(1))(cmd, list); err != nil {
				return err
			}
			if err := out.check(); err != nil {
				return err
			}
			q, err := ask.open(e)
			if err != nil {
				return err
			}
			q.sources = out.html != ""
			source := embeddedSource
			if q.ground != nil {
				source = configSource
			}
			if len(list) == 1 {
				source = list[0]
			}
			m, err := q.matrixOf(cmd.Context(), e, source)
			if err != nil {
				return err
			}
			return out.write(e, m, m.Stopped)
		},
	}
	ask.add(cmd)
	out.add(cmd)
	return cmd
}

// wrappedNames is a list for a help text.
func wrappedNames(names []string) string {
	var b strings.Builder
	column := 0
	for i, name := range names {
		switch {
		case i > 0 && column > 80:
			b.WriteString(",\n  ")
			column = 0
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(name)
		column += len(name) + 2
	}
	return b.String()
}

// matrixFlags say what a policy is asked.
type matrixFlags struct {
	ground           groundFlags
	facts            []string
	classes, actions []string
}

func (f *matrixFlags) add(cmd *cobra.Command) {
	f.ground.add(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.facts, "fact", nil, "set a fact, NAME=VALUE; may be given several times")
	flags.StringSliceVar(&f.classes, "class", nil, "only these failure classes, with commas")
	flags.StringSliceVar(&f.actions, "action", nil, "only cells with these actions, with commas")
}

// inquiry is what a policy is asked, and which answers are wanted.
type inquiry struct {
	ground  *policyGround
	facts   matrix.Facts
	classes []engine.Class
	actions []engine.Action
	sources bool // the texts of rules are wanted
}

// open reads the flags and the configuration that they name.
func (f *matrixFlags) open(e *env) (*inquiry, error) {
	var q inquiry
	var err error
	if q.classes, err = parseAll("class", f.classes, engine.ParseClass); err != nil {
		return nil, err
	}
	if q.actions, err = parseAll("action", f.actions, engine.ParseAction); err != nil {
		return nil, err
	}
	if q.ground, err = f.ground.open(e); err != nil {
		return nil, err
	}
	q.facts = matrix.Default()
	if q.ground != nil {
		q.facts = matrix.OfGroup(q.ground.group, q.ground.caller())
	}
	for _, fact := range f.facts {
		if err := q.facts.Set(fact); err != nil {
			return nil, usageError{err}
		}
	}
	return &q, nil
}

func parseAll[W engineWord](flag string, words []string, parse func(string) (W, error)) ([]W, error) {
	var list []W
	for _, word := range words {
		v, err := readWord(flag, word, parse)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// matrixOf asks the policy that a command line names.
func (q *inquiry) matrixOf(ctx context.Context, e *env, source string) (*matrix.Matrix, error) {
	set, err := loadPolicy(ctx, e, source, q.ground)
	if err != nil {
		return nil, err
	}
	limited, asker, end := withLimit(ctx, set, lateInRow)
	defer end()
	p := newProgress(e, "asking "+source)
	answers, err := matrix.Ask(limited, asker, q.facts, q.classes, p.cells)
	p.end()
	if err != nil && asker.why == nil {
		return nil, err
	}
	m := &matrix.Matrix{Policy: source, Revision: set.Revision(), Facts: q.facts}
	if asker.why != nil {
		m.Stopped = asker.why.Error()
	}
	if source == configSource && q.ground != nil {
		m.Policy = fmt.Sprintf("%s group %s", q.ground.path, q.ground.group.Name())
	}
	m.Answers = matrix.Only(answers, q.actions)
	if q.sources {
		m.Sources = sourcesOf(set, m)
	}
	return m, nil
}

// sourcesOf are the texts of the rules that have answered.
func sourcesOf(set *policies.Set, m *matrix.Matrix) map[string]string {
	texts := map[string]string{}
	for _, a := range m.Answers {
		if _, known := texts[a.Decision.Rule]; !known && a.Decision.Rule != "" {
			texts[a.Decision.Rule] = set.RuleAt(a.Decision.Rule).Text
		}
	}
	return texts
}

// patience is how long work goes on without a word on a terminal.
const patience = 2 * time.Second

// progressEvery is how often a terminal is told how far the work is: as fast as one reads.
const progressEvery = 200 * time.Millisecond

// progress says on a terminal how far the asking is.
type progress struct {
	w     io.Writer // nil if it is no terminal
	now   func() time.Time
	what  string
	since time.Time
	said  time.Time
}

func newProgress(e *env, what string) *progress {
	p := &progress{now: e.now, what: what, since: e.now()}
	if f, ok := e.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.w = f
	}
	return p
}

// cells says how many of a matrix's cells were asked about.
func (p *progress) cells(n, all int) {
	if p.due() {
		fmt.Fprintf(p.w, "\r%s: %d of %d cells", p.what, n, all)
	}
}

// decisions says how many decisions were asked again.
func (p *progress) decisions(n int) {
	if p.due() {
		fmt.Fprintf(p.w, "\r%s: %s", p.what, count(n, "decision"))
	}
}

// due says whether it is time to say something, which the caller then does.
func (p *progress) due() bool {
	if p.w == nil {
		return false
	}
	now := p.now()
	if now.Sub(p.since) <= patience || now.Sub(p.said) <= progressEvery {
		return false
	}
	p.said = now
	return true
}

func (p *progress) end() {
	if !p.said.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// report is what the matrix commands can write: a matrix or a diff.
type matrixReport interface {
	WriteText(w io.Writer) error
	WriteJSON(w io.Writer) error
	WriteHTML(w io.Writer) error
}

// matrixOutput says in which form a report is written, and where to.
type matrixOutput struct {
	json bool
	html string // empty for none, "-" for standard output, or a file
}

func (o *matrixOutput) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.StringVar(&o.html, "html", "", "write a self-contained page: to FILE, or to standard output without one")
	flags.Lookup("html").NoOptDefVal = "-"
}

// take lets the page's file be written without "=": it is the argument that ends in
// .html, as no policy does.
func (o *matrixOutput) take(list []string) []string {
	var rest []string
	for _, a := range list {
		if o.html == "-" && strings.HasSuffix(a, ".html") {
			o.html = a
			continue
		}
		rest = append(rest, a)
	}
	return rest
}

func (o *matrixOutput) check() error {
	if o.json && o.html != "" {
		return usageError{errors.New("-json and -html are two forms of the same; choose one")}
	}
	return nil
}

// write writes a report. One that stopped early is an error: only JSON, which says so, has
// what is there.
func (o *matrixOutput) write(e *env, r matrixReport, stopped string) error {
	var early error
	if stopped != "" {
		early = errors.New(stopped)
	}
	switch {
	case o.json:
		return firstOf(r.WriteJSON(e.stdout), early)
	case early != nil:
		return early
	case o.html == "":
		return r.WriteText(e.stdout)
	case o.html == "-":
		return r.WriteHTML(e.stdout)
	}
	f, err := os.Create(o.html)
	if err != nil {
		return fmt.Errorf("cannot write page: %w; name another file with -html=FILE", err)
	}
	if err := errors.Join(r.WriteHTML(f), f.Close()); err != nil {
		return fmt.Errorf("cannot write page %q: %w", o.html, err)
	}
	return nil
}
