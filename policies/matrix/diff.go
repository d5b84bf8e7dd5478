package matrix

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// Change is a cell that two policies answer differently.
type Change struct{ From, To Answer }

// Diff are the differences between two policies, asked with the same facts.
type Diff struct {
	From, To string // how the user has named the policies
	// FromRevision and ToRevision are of the policies' content.
	FromRevision, ToRevision string
	FromSources, ToSources   map[string]string // as Matrix.Sources
	Facts                    Facts
	Asked                    int // cells that were compared
	// Moved are the cells where something else happens: another action, another channel,
	// a fault that came or went, an interlock that comes to act or doesn't any more.
	Moved []Change
	// Others are the cells with the same action and another reason, delay, effects or
	// gates. The place of the rule is no difference: lines move with every edit.
	Others []Change
	// Stopped is why one of the policies was not asked about all cells; see [Matrix.Stopped].
	Stopped string
}

// Compare makes a diff of two matrices of the same cells with the same facts. With
// actions it has only the changes from or to one of them. Of matrices that ended early it
// compares what both have.
func Compare(from, to *Matrix, actions []engine.Action) *Diff {
	d := &Diff{
		From: from.Policy, To: to.Policy, FromRevision: from.Revision, ToRevision: to.Revision,
		FromSources: from.Sources, ToSources: to.Sources, Facts: from.Facts, Asked: min(len(from.Answers), len(to.Answers)),
		Stopped: cmp.Or(from.Stopped, to.Stopped),
	}
	for i := range d.Asked {
		c := Change{from.Answers[i], to.Answers[i]}
		if len(actions) > 0 && !slices.Contains(actions, c.From.Decision.Action) && !slices.Contains(actions, c.To.Decision.Action) {
			continue
		}
		switch {
		case c.moved():
			d.Moved = append(d.Moved, c)
		case len(c.what()) > 0:
			d.Others = append(d.Others, c)
		}
	}
	return d
}

// Same says that the policies answer everything alike.
func (d *Diff) Same() bool { return len(d.Moved)+len(d.Others) == 0 }

func (c *Change) moved() bool {
	a, b := &c.From.Decision, &c.To.Decision
	return a.Action != b.Action || a.Channel != b.Channel || a.Fault != b.Fault || c.From.Interlock != c.To.Interlock
}

// what names the other things that differ, in a policy's words.
func (c *Change) what() []string {
	a, b := &c.From.Decision, &c.To.Decision
	var names []string
	for _, part := range []struct {
		name   string
		differ bool
	}{
		{"reason", a.Reason != b.Reason},
		{"delay_ms", a.Delay != b.Delay},
		{"effects", !sameEffects(a.Effects, b.Effects)},
		{"gates", a.Gates != b.Gates},
	} {
		if part.differ {
			names = append(names, part.name)
		}
	}
	return names
}

// sameEffects compares without order, which has no meaning.
func sameEffects(a, b []engine.Effect) bool {
	return slices.Equal(sortedEffects(a), sortedEffects(b))
}

func sortedEffects(effects []engine.Effect) []engine.Effect {
	return slices.SortedFunc(slices.Values(effects), func(x, y engine.Effect) int {
		return strings.Compare(effectText(x), effectText(y))
	})
}

// details say of each thing that differs what it was and what it is. Gates, which another
// reason mostly goes with, are told only where nothing else differs.
func (c *Change) details(f *Facts) []string {
	var parts []string
	what := c.what()
	for _, name := range what {
		if name == "gates" && len(what) > 1 {
			continue
		}
		from, to := c.From.detail(name, f), c.To.detail(name, f)
		parts = append(parts, name+" "+from+" → "+to)
	}
	return parts
}

func (a *Answer) detail(name string, f *Facts) string {
	switch name {
	case "reason":
		return cmp.Or(a.reason(f), "none")
	case "delay_ms":
		if d, given := a.Decision.Delay.Get(); given {
			return short(d)
		}
		return "not given"
	case "effects":
		return a.effects()
	}
	return stopping(a.Decision.Gates)
}

// stopping names the gates that stop.
func stopping(g engine.Gates) string {
	var names []string
	for _, gate := range []struct {
		name string
		mark engine.GateMark
	}{
		{"failure_class", g.FailureClass}, {"response_phase", g.ResponsePhase},
		{"idempotency", g.Idempotency}, {"attempt_budget", g.AttemptBudget},
	} {
		if gate.mark == engine.GateStop {
			names = append(names, gate.name)
		}
	}
	switch {
	case len(names) > 0:
		return strings.Join(names, "+") + " stop"
	case g == engine.Gates{}:
		return "silent"
	}
	return "pass"
}
