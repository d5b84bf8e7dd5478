package matrix

import (
	"math/bits"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// Whatever the cells say, the rows say it again: each cell is in one row, no more.
func TestRowsGiveBackEveryCell(t *testing.T) {
	t.Parallel()
	c := newCollapser()
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		var says [perClass]string
		words := 1 + round%6
		for i := range says {
			if n := rnd.IntN(words + 1); n > 0 || round%2 == 0 {
				says[i] = strconv.Itoa(n)
			}
		}
		checkRows(t, c, &says)
	}
}

// Policies decide by a few conditions one after the other. Such regions come back in as few
// rows as their conditions.
func TestRowsOfConditions(t *testing.T) {
	t.Parallel()
	c := newCollapser()
	f := func(name string, say func(engine.Cell) string, want ...string) {
		t.Helper()
		var says [perClass]string
		for i := range says {
			says[i] = say(cellAt(engine.ClassUnknown, i))
		}
		checkRows(t, c, &says)
		var got []string
		for _, r := range c.rows(&says) {
			got = append(got, r.phaseText()+" "+r.completionText()+" "+r.safetyText()+" "+r.budgetText()+" "+r.says)
		}
		if len(got) != len(want) {
			t.Fatalf("%s: got %q, want %q", name, got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: row %d is %q, want %q", name, i+1, got[i], want[i])
			}
		}
	}
	f("always", func(engine.Cell) string { return "x" }, "any any any any x")
	f("one dimension", func(c engine.Cell) string { return c.Budget.String() },
		"any any any left left", "any any any last last", "any any any spent spent")
	f("phase first", func(c engine.Cell) string {
		if c.Phase == engine.AfterOutput {
			return "late"
		}
		return strconv.FormatBool(c.ReplaySafe)
	}, "before_* any yes any true", "before_* any no any false", "after_output any any any late")
	f("an L", func(c engine.Cell) string {
		if c.Completion == engine.CompletionNone || c.ReplaySafe {
			return "go"
		}
		return "stop"
	}, "any any yes any go", "any none no any go", "any unknown,partial no any stop")
	f("a few cells", func(c engine.Cell) string {
		if c.Phase == engine.BeforeOutput && c.Budget != engine.BudgetSpent {
			return "x"
		}
		return ""
	}, "before_output any any left,last x")
}

func checkRows(t *testing.T, c *collapser, says *[perClass]string) {
	t.Helper()
	var back [perClass]string
	held := 0
	for _, r := range c.rows(says) {
		held += bits.OnesCount64(r.mask())
		for i := range perClass {
			if r.holds(cellAt(engine.ClassUnknown, i)) {
				if back[i] != "" {
					t.Errorf("cell %d is in two rows", i)
				}
				back[i] = r.says
			}
		}
	}
	if back != *says {
		t.Errorf("got %q, want %q", back, *says)
	}
	said := 0
	for _, s := range says {
		if s != "" {
			said++
		}
	}
	if held != said {
		t.Errorf("the rows hold %d cells, want %d", held, said)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	seen := map[engine.Cell]bool{}
	for _, cell := range Cells() {
		if seen[cell] {
			t.Errorf("%v comes twice", cell)
		}
		seen[cell] = true
		if back := cellAt(cell.Class, place(cell)); back != cell {
			t.Errorf("%v has the place of %v", cell, back)
		}
	}
	if len(seen) != Size || Size != 702 {
		t.Errorf("there are %d cells, want 702", len(seen))
	}
}
