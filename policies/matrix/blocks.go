package matrix

import (
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// block is what some classes have in common: the same rows.
type block struct {
	classes []engine.Class
	// effects of each class that has the same in all its cells, else empty: then they are
	// in the rows.
	effects []string
	rows    []line
}

// line is a row with what it shows, column by column.
type line struct {
	box
	columns []string
}

// view is a cell with what is shown of it.
type view struct {
	cell    engine.Cell
	effects string
	columns []string
}

// separator can't be in any text that is shown.
const separator = "\x00"

// blocks merges cells that show the same into rows, and classes with the same rows into
// blocks. Every cell is in exactly one row.
func blocks(views []view) []block {
	c := newCollapser()
	byClass := map[engine.Class][]view{}
	for _, v := range views {
		byClass[v.cell.Class] = append(byClass[v.cell.Class], v)
	}
	var list []block
	known := map[string]int{} // place in list, by what the rows say
	for _, class := range classes {
		views := byClass[class]
		if len(views) == 0 {
			continue
		}
		common := commonEffects(views)
		var says [perClass]string
		for _, v := range views {
			columns := v.columns
			if common == "" {
				columns = append(columns[:len(columns):len(columns)], v.effects)
			}
			says[place(v.cell)] = strings.Join(columns, separator)
		}
		var rows []line
		var all strings.Builder
		for _, r := range c.rows(&says) {
			rows = append(rows, line{r.box, strings.Split(r.says, separator)})
			all.WriteString(string([]byte{r.phases, r.completions, r.safeties, r.budgets}) + r.says + "\n")
		}
		i, found := known[all.String()]
		if !found {
			i = len(list)
			known[all.String()] = i
			list = append(list, block{rows: rows})
		}
		list[i].classes = append(list[i].classes, class)
		list[i].effects = append(list[i].effects, common)
	}
	return list
}

// commonEffects are the effects of all views, empty if they differ.
func commonEffects(views []view) string {
	for _, v := range views {
		if v.effects != views[0].effects {
			return ""
		}
	}
	return views[0].effects
}
