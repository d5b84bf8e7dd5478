package matrix

import (
	"math/bits"
	"slices"
)

// row is a box of cells of a class that all say the same.
type row struct {
	box
	says string // what they say; the caller's own key
}

// candidate is a box with the places that it holds.
type candidate struct {
	box
	mask  uint64
	tests int // dimensions that make a difference
}

// candidates returns every box, the largest first; of equal ones that which is easier to
// read, because fewer dimensions make a difference.
func candidates() []candidate {
	var list []candidate
	for p := uint8(1); p <= allPhases; p++ {
		for c := uint8(1); c <= allCompletions; c++ {
			for s := uint8(1); s <= allSafeties; s++ {
				for b := uint8(1); b <= allBudgets; b++ {
					x := box{p, c, s, b}
					tests := 0
					for _, whole := range []bool{p == allPhases, c == allCompletions, s == allSafeties, b == allBudgets} {
						if !whole {
							tests++
						}
					}
					list = append(list, candidate{x, x.mask(), tests})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(x, y candidate) int {
		if d := bits.OnesCount64(y.mask) - bits.OnesCount64(x.mask); d != 0 {
			return d
		}
		return x.tests - y.tests
	})
	return list
}

// collapser merges cells into rows.
type collapser struct{ boxes []candidate }

func newCollapser() *collapser { return &collapser{candidates()} }

// rows cuts the cells of a class into few rows, each cell in exactly one. says is what
// the cells say, by place; cells that say nothing are left out.
//
// It takes the largest box of equal cells until none is left. That isn't always the
// least number of rows, which is a hard problem, but for the regions that policies have,
// a few conditions one after the other, it is.
func (c *collapser) rows(says *[perClass]string) []row {
	todo := map[string]uint64{}
	for i, s := range says {
		if s != "" {
			todo[s] |= 1 << i
		}
	}
	var rows []row
	for s, left := range todo {
		for _, next := range c.boxes {
			if left == 0 {
				break
			}
			if next.mask&^left == 0 {
				rows = append(rows, row{next.box, s})
				left &^= next.mask
			}
		}
	}
	// In the order of each row's first cell; no two rows share one.
	slices.SortFunc(rows, func(x, y row) int {
		return bits.TrailingZeros64(x.mask()) - bits.TrailingZeros64(y.mask())
	})
	return rows
}
