package matrix

import (
	"fmt"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// Fault is one way in which a policy gives no usable answer.
type Fault struct {
	Fault string // in the words of [engine.Decision.Fault]
	Why   string // may be empty, and have several lines
	// File and Line are those of the rule; File is empty where no rule is known.
	File  string
	Line  int
	First engine.Cell // the first of the cells that are answered so
	Cells int         // how many there are
}

// FaultsOf gathers what is wrong with answers, in the order in which it is met.
func FaultsOf(answers []Answer) []Fault {
	var faults []Fault
	known := map[Fault]int{}
	for i := range answers {
		d := &answers[i].Decision
		if d.Fault == "" {
			continue
		}
		f := Fault{Fault: d.Fault, Why: d.Why}
		f.File, f.Line = cutPlace(d.Rule)
		at, met := known[f]
		if !met {
			at = len(faults)
			known[f] = at
			f.First = answers[i].Cell
			faults = append(faults, f)
		}
		faults[at].Cells++
	}
	return faults
}

// maxFaults bounds the kinds that a text lists: a fault may name a value of each cell.
const maxFaults = 12

// writeFaults says why there is no usable answer.
func writeFaults(b *strings.Builder, answers []Answer) {
	faults := FaultsOf(answers)
	if len(faults) == 0 {
		return
	}
	b.WriteString("\nwithout a usable answer:\n")
	for i, f := range faults {
		if i == maxFaults {
			fmt.Fprintf(b, "  … and %d more kinds; -json has each cell's\n", len(faults)-maxFaults)
			break
		}
		text := fmt.Sprintf("  %s in %d cells", f.Fault, f.Cells)
		if f.Why == "" {
			b.WriteString(text + "\n")
			continue
		}
		text += ":"
		for line := range strings.Lines(f.Why) {
			text += " " + printable(strings.TrimSpace(line))
		}
		b.WriteString("  " + wrapped(text, "    "))
	}
}
