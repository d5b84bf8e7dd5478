package matrix

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fourgate-dev/fourgate/engine"
)

// Answer is what a policy says about a cell.
type Answer struct {
	Cell     engine.Cell
	Decision engine.Decision
	// Interlock would overrule the decision, so that it isn't what happens.
	Interlock engine.Interlock
}

// Matrix is a policy's answers with what they rest on.
type Matrix struct {
	Policy   string // how the user has named it
	Revision string // of its content; may be empty
	Facts    Facts
	Answers  []Answer // of all cells, or of those that were asked for, in the order of [Cells]
	Stopped  string   // why the asking has ended early, with the answers until then; or empty
	// Sources are the texts of rules by their place, for the page; may lack some.
	Sources map[string]string
}

// Ask asks a policy about every cell of these classes, of all if there are none, in the
// order of [Cells]. Its error is ctx's cause, which comes with the answers until then. After
// each answer it calls progress, if that isn't nil, with how many of all cells are done.
func Ask(ctx context.Context, p engine.Policy, f Facts, classes []engine.Class, progress func(done, all int)) ([]Answer, error) {
	cells := slices.DeleteFunc(Cells(), func(c engine.Cell) bool {
		return len(classes) > 0 && !slices.Contains(classes, c.Class)
	})
	answers := make([]Answer, 0, len(cells))
	for _, c := range cells {
		if ctx.Err() != nil {
			return answers, context.Cause(ctx)
		}
		answers = append(answers, answer(p, &f, c))
		if progress != nil {
			progress(len(answers), len(cells))
		}
	}
	return answers, nil
}

// answer asks about one cell.
func answer(p engine.Policy, f *Facts, c engine.Cell) Answer {
	q := f.Question(c)
	a := Answer{Cell: c, Decision: p.Decide(&q)}
	// A same-route attempt that is put off by the upstream's wait does happen.
	if _, follows := engine.Follows(&q, a.Decision); !follows {
		a.Interlock = engine.Foresee(&q, a.Decision)
	}
	return a
}

// Only leaves the answers with these actions; none of them means all.
func Only(answers []Answer, actions []engine.Action) []Answer {
	if len(actions) == 0 {
		return answers
	}
	var kept []Answer
	for _, a := range answers {
		if slices.Contains(actions, a.Decision.Action) {
			kept = append(kept, a)
		}
	}
	return kept
}

// does is an answer's action as people read it: with its channel, its wait and its fault,
// and with a mark where an interlock overrules it.
func (a *Answer) does() string {
	d := &a.Decision
	if d.Fault != "" {
		return "abort (" + d.Fault + ")"
	}
	text := d.Action.String()
	if d.Channel != "" {
		text += " " + printable(d.Channel)
	}
	if delay, given := d.Delay.Get(); given && delay > 0 {
		text += " in " + short(delay)
	}
	return text
}

// printable is a text of the policy's that a terminal can be given: quoted if it has
// anything in it but letters, marks and spaces.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(s)
	}
	return s
}

// ownReason stands for the reason of the failure itself, so that classes which are treated
// alike look alike.
const ownReason = "(its own)"

// reason is an answer's reason, or that it is the failure's.
func (a *Answer) reason(f *Facts) string {
	if r := a.Decision.Reason; r != f.failures[a.Cell.Class].Reason {
		return r.String()
	}
	if a.Decision.Fault != "" {
		return ""
	}
	return ownReason
}

// effects writes an answer's effects, "-" for none.
func (a *Answer) effects() string {
	if len(a.Decision.Effects) == 0 {
		return "-"
	}
	words := make([]string, len(a.Decision.Effects))
	for i, e := range a.Decision.Effects {
		words[i] = effectText(e)
	}
	slices.Sort(words) // a set has no order of its own
	return strings.Join(words, ", ")
}

func effectText(e engine.Effect) string {
	text := e.Kind.String()
	if e.For > 0 {
		text += " " + short(e.For)
	}
	if e.After > 1 {
		text += " (" + number(e.After) + "x)"
	}
	return text
}

// short writes a time without the zeros that Go adds: 10m, not 10m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
