package policies

import (
	"context"
	"reflect"
	"slices"

	"github.com/fourgate-dev/fourgate/engine"
)

// Change is one other value of one fact, and what the policy would decide then.
type Change struct {
	Path     string
	From, To any // a string, a bool, an int64, a []string, or nil for null
	// With are the facts that can't stay as they are then, such as routes.same when no
	// attempt is left, by path in the order of the documentation.
	With     []FactValue
	Decision engine.Decision
}

// FactValue is a fact's path with a value as in [Change].
type FactValue struct {
	Path  string
	Value any
}

// explore tries other values of each fact that the policy can look at.
func (s *Set) explore(ctx context.Context, x *Explanation) {
	if x.Decision.Fault == faultTimeout {
		return
	}
	all := facts()
	known := s.constants()
	read := s.readPaths()
	var milder []Change // that leave the action as it is
	for i := range all {
		f := &all[i]
		if !slices.Contains(read, f.path) {
			if f.path != familyPath {
				x.Unread = append(x.Unread, f.path)
			}
			continue
		}
		if f.path == familyPath {
			continue // class and scope are tried
		}
		found := s.changesOf(ctx, x, f, known)
		if len(found) == 0 {
			x.Idle = append(x.Idle, f.path)
		}
		for _, c := range found {
			if c.Decision.Action != x.Decision.Action || c.Decision.Fault != x.Decision.Fault {
				x.Changes = append(x.Changes, c)
			} else {
				milder = append(milder, c)
			}
		}
	}
	x.Changes = append(x.Changes, milder...)
}

// readPaths are the facts that the decision can depend on. Who looks at the family looks at
// the class and the scope that it follows from.
func (s *Set) readPaths() []string {
	var paths []string
	for _, f := range s.decision.reads.fields {
		paths = append(paths, dotted(f.path))
	}
	if slices.Contains(paths, familyPath) {
		paths = append(paths, "failure.class", "failure.scope")
	}
	return paths
}

// changesOf asks for each other value of one fact. Of numbers that lead to the same decision,
// but for times that may follow the number, only the nearest is kept, and of texts and codes
// none that decides the same as any unknown one.
func (s *Set) changesOf(ctx context.Context, x *Explanation, f *fact, known constants) []Change {
	base, d, all := &x.Question, x.Decision, facts()
	var found []Change
	var unknown *engine.Decision // the answer for a text or a code that no policy knows
	for _, to := range f.alternatives(f.get(base), known) {
		q := *base
		if ctx.Err() != nil || f.set(&q, to) != nil || reflect.DeepEqual(f.get(&q), f.get(base)) || !settle(&q, f.path) {
			continue
		}
		got := s.Decide(&q)
		if to == otherText || f.codes && to == otherStatus {
			unknown = &got
		} else if (f.kind == factText || f.codes) && to != nil && unknown != nil && sameOutcome(got, *unknown) {
			continue
		}
		if sameOutcome(got, d) {
			continue
		}
		c := Change{Path: f.path, From: f.get(base), To: to, Decision: got}
		for i := range all {
			other := &all[i]
			if v := other.get(&q); other.path != f.path && !follows(other.path) && !reflect.DeepEqual(v, other.get(base)) {
				c.With = append(c.With, FactValue{other.path, v})
			}
		}
		if n, isNumber := to.(int64); isNumber && !f.codes {
			if i := slices.IndexFunc(found, func(o Change) bool {
				_, number := o.To.(int64)
				return number && sameButForTimes(o.Decision, got)
			}); i >= 0 {
				if nearer(f.get(base), n, found[i].To.(int64)) {
					found[i] = c
				}
				continue
			}
		}
		found = append(found, c)
	}
	return found
}

// follows says whether a fact is nothing but another form of others.
func follows(path string) bool {
	return path == familyPath || path == weekdayPath || path == "clock.date"
}

// nearer says whether a is nearer to the number than b is; null is as good as zero.
func nearer(from any, a, b int64) bool {
	n, _ := from.(int64)
	return max(a-n, n-a) < max(b-n, n-b)
}

// sameOutcome says whether two decisions lead to the same. The reason and the rule may
// differ: they say why.
func sameOutcome(a, b engine.Decision) bool {
	return a.Action == b.Action && a.Channel == b.Channel && a.Delay == b.Delay && a.Fault == b.Fault &&
		slices.Equal(a.Effects, b.Effects)
}

// sameButForTimes is as sameOutcome, but takes no notice of how long anything lasts.
func sameButForTimes(a, b engine.Decision) bool {
	return a.Action == b.Action && a.Channel == b.Channel && a.Fault == b.Fault &&
		slices.EqualFunc(a.Effects, b.Effects, func(a, b engine.Effect) bool { return a.Kind == b.Kind })
}

// settle brings the facts in line that the engine never lets contradict the changed one. It
// returns false if the change makes a question that the engine never asks.
func settle(q *engine.Question, changed string) bool {
	f := &q.Failure
	after := f.Phase() == engine.AfterOutput
	switch changed {
	case "phase":
		if after {
			changeFailure(q, func(p *failureParts) {
				p.completion = engine.CompletionPartial
				if p.class != engine.ClassCancelled {
					p.class, p.scope = engine.ClassPartial, engine.ScopeNone
				}
			})
			break
		}
		if f.Class() == engine.ClassPartial {
			return false
		}
		if f.Completion() == engine.CompletionPartial {
			changeFailure(q, func(p *failureParts) { p.completion = engine.CompletionUnknown })
		}
	case "failure.completion":
		if after != (f.Completion() == engine.CompletionPartial) {
			return false
		}
	case "failure.class":
		if after != (f.Class() == engine.ClassPartial) && f.Class() != engine.ClassCancelled {
			return false
		}
	case "budget.remaining_ms", "budget.min_useful_ms":
		q.Time = q.Remaining > 0 && q.Remaining >= q.MinUseful
	case "routes.same":
		if q.Same && (q.AttemptsLeft == 0 || !q.Time) {
			return false
		}
	case "routes.spare_key":
		if q.SpareKey && (!q.Same || q.Key == "") {
			return false
		}
	case "routes.fallback":
		if q.AttemptsLeft == 0 {
			return false
		}
	}
	if q.AttemptsLeft == 0 || !q.Time {
		q.Same = false
	}
	if !q.Same {
		q.SpareKey = false
	}
	if q.AttemptsLeft == 0 && len(q.Fallback) > 0 {
		q.Fallback = []string{}
	}
	return true
}
