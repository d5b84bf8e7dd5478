package matrix

import (
	"slices"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// The values of each dimension in the order in which people read them. What is replayed
// comes first; `unknown` and `ok`, which hardly need reading, come last.
var (
	classes = [...]engine.Class{
		engine.ClassKeyFault, engine.ClassRateLimited, engine.ClassProviderTransient, engine.ClassBadModel,
		engine.ClassSchemaInvalid, engine.ClassContractViolation, engine.ClassBadRequest, engine.ClassDenied,
		engine.ClassRefusal, engine.ClassCancelled, engine.ClassPartial, engine.ClassUnknown, engine.ClassOK,
	}
	phases      = [...]engine.Phase{engine.BeforeHeaders, engine.BeforeOutput, engine.AfterOutput}
	completions = [...]engine.Completion{engine.CompletionNone, engine.CompletionUnknown, engine.CompletionPartial}
	safeties    = [...]bool{true, false}
	budgets     = [...]engine.BudgetMark{engine.BudgetLeft, engine.BudgetLast, engine.BudgetSpent}
)

// perClass is how many cells a class has.
const perClass = len(phases) * len(completions) * len(safeties) * len(budgets)

// Size is how many cells the matrix has.
const Size = len(classes) * perClass

// Cells returns every cell in the order of the engine's words: class, phase, completion,
// replay safety, budget.
func Cells() []engine.Cell {
	cells := make([]engine.Cell, 0, Size)
	for class := range engine.Class(len(classes)) {
		for phase := range engine.Phase(len(phases)) {
			for completion := range engine.Completion(len(completions)) {
				for _, safe := range []bool{false, true} {
					for budget := range engine.BudgetMark(len(budgets)) {
						cells = append(cells, engine.Cell{
							Class: class, Phase: phase, Completion: completion, ReplaySafe: safe, Budget: budget,
						})
					}
				}
			}
		}
	}
	return cells
}

// place is where a cell stands among those of its class, in reading order.
func place(c engine.Cell) int {
	i := slices.Index(phases[:], c.Phase)
	i = i*len(completions) + slices.Index(completions[:], c.Completion)
	i = i*len(safeties) + slices.Index(safeties[:], c.ReplaySafe)
	return i*len(budgets) + slices.Index(budgets[:], c.Budget)
}

// cellAt is the cell of a class at a place.
func cellAt(class engine.Class, i int) engine.Cell {
	c := engine.Cell{Class: class, Budget: budgets[i%len(budgets)]}
	i /= len(budgets)
	c.ReplaySafe = safeties[i%len(safeties)]
	i /= len(safeties)
	c.Completion = completions[i%len(completions)]
	c.Phase = phases[i/len(completions)]
	return c
}

// anyValue is how a dimension is written that makes no difference.
const anyValue = "any"

// box is a set of cells of one class: all combinations of some values of each dimension.
// Each field is a set of places in the dimension's reading order. Its methods write the
// values of a dimension: "any" for all of them, else a list with commas.
type box struct{ phases, completions, safeties, budgets uint8 }

const (
	allPhases      = 1<<len(phases) - 1
	allCompletions = 1<<len(completions) - 1
	allSafeties    = 1<<len(safeties) - 1
	allBudgets     = 1<<len(budgets) - 1
)

// mask is the set of the places of a box's cells.
func (b box) mask() uint64 {
	var m uint64
	for i := range perClass {
		if b.holds(cellAt(0, i)) {
			m |= 1 << i
		}
	}
	return m
}

// holds says whether a cell, whatever its class, is in the box.
func (b box) holds(c engine.Cell) bool {
	return in(b.phases, slices.Index(phases[:], c.Phase)) &&
		in(b.completions, slices.Index(completions[:], c.Completion)) &&
		in(b.safeties, slices.Index(safeties[:], c.ReplaySafe)) &&
		in(b.budgets, slices.Index(budgets[:], c.Budget))
}

func in(set uint8, i int) bool { return set>>i&1 == 1 }

// phaseText says before_* for both phases that are before output.
func (b box) phaseText() string {
	if b.phases == 0b011 {
		return "before_*"
	}
	return values(b.phases, allPhases, phases[:], engine.Phase.String)
}

func (b box) completionText() string {
	return values(b.completions, allCompletions, completions[:], engine.Completion.String)
}

func (b box) safetyText() string {
	return values(b.safeties, allSafeties, safeties[:], yesNo)
}

func (b box) budgetText() string {
	return values(b.budgets, allBudgets, budgets[:], engine.BudgetMark.String)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func values[T any](set, all uint8, list []T, write func(T) string) string {
	if set == all {
		return anyValue
	}
	var words []string
	for i, v := range list {
		if in(set, i) {
			words = append(words, write(v))
		}
	}
	return strings.Join(words, ",")
}
