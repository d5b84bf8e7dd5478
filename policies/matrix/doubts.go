package matrix

import (
	"fmt"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// Doubt is something in a usable answer that its author hardly wants.
type Doubt struct {
	What  string // with what happens, in a sentence without its full stop
	File  string // the rule's; empty where no rule is known
	Line  int
	First engine.Cell // the first of the cells that are answered so
}

// DoubtsOf finds effects that last longer than the engine lets them, and waits that are
// longer than a whole request. Of each rule it says the same once.
func DoubtsOf(f Facts, answers []Answer) []Doubt {
	deadline := f.question.Elapsed + f.question.Remaining
	var doubts []Doubt
	seen := map[Doubt]bool{}
	for i := range answers {
		a := &answers[i]
		d := &a.Decision
		add := func(format string, args ...any) {
			doubt := Doubt{What: fmt.Sprintf(format, args...)}
			doubt.File, doubt.Line = cutPlace(d.Rule)
			if !seen[doubt] {
				seen[doubt] = true
				doubt.First = a.Cell
				doubts = append(doubts, doubt)
			}
		}
		for _, e := range d.Effects {
			if e.For > engine.MaxSetAside {
				add("for_ms of %s is %d (%s): it ends after %s, which is the most", e.Kind, e.For.Milliseconds(), days(e.For), days(engine.MaxSetAside))
			}
		}
		if delay, given := d.Delay.Get(); given && delay >= deadline && d.Action != engine.Abort {
			add("delay_ms is %d (%s): no attempt follows, because a request has %s in all unless its group's budget says more", delay.Milliseconds(), days(delay), short(deadline))
		}
	}
	return doubts
}

// days writes a long time in days.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 2*day {
		return short(d)
	}
	return fmt.Sprintf("%d days", d/day)
}
