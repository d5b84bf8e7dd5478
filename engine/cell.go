package engine

// BudgetMark says how much of a request's budget is left, as coarsely as the decision
// matrix does. The zero value is that nothing is.
type BudgetMark uint8

// The marks of the budget.
const (
	BudgetSpent BudgetMark = iota // no attempt, no useful time or no retry token
	BudgetLast                    // one more attempt
	BudgetLeft                    // more than one
)

var budgetMarkNames = [...]string{"spent", "last", "left"}

func (b BudgetMark) String() string { return name(budgetMarkNames[:], b) }

// ParseBudgetMark reads a mark of the budget.
func ParseBudgetMark(s string) (BudgetMark, error) {
	return parse[BudgetMark]("budget", budgetMarkNames[:], s)
}

// Cell is a place in the decision matrix: what the four gates see of a question, without
// its numbers and names. Many questions share a cell.
type Cell struct {
	Class      Class
	Phase      Phase
	Completion Completion
	ReplaySafe bool
	Budget     BudgetMark
}

// CellOf says where a question stands in the decision matrix.
func CellOf(q *Question) Cell {
	c := Cell{
		Class: q.Failure.class, Phase: q.Failure.phase, Completion: q.Failure.completion,
		ReplaySafe: q.Idempotency.ReplaySafe,
	}
	switch {
	case q.AttemptsLeft <= 0, !q.Time, !q.RetryBudget:
	case q.AttemptsLeft == 1:
		c.Budget = BudgetLast
	default:
		c.Budget = BudgetLeft
	}
	return c
}
