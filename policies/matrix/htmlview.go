package matrix

import (
	"slices"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// The page is made of one map for each class: nine rows for phase and completion, six
// columns for replay safety and budget. Equal neighbours become one tile.
const (
	mapRows    = len(phases) * len(completions)
	mapColumns = len(safeties) * len(budgets)
)

// tile is a rectangle of a map with one answer.
type tile struct {
	Rows, Columns int
	Kind          string // of the style: an action, "fault", "same", or empty for no cell
	Icon          string
	Brief         string // the action alone
	Does          string // with all that belongs to it
	Was           string // in a diff: what was done before
	Reason        string
	Rule, RuleWas string // number of a rule, with its letter in a diff
	RulePlace     string
	Effects       string
	Changes       []string // in a diff: other things that differ
	Minor         bool     // in a diff: nothing but these
	Interlock     string
	Why           string // of a fault
	Where         string
	Narrow        bool // too small for the reason
}

// Lines are what a tile says below its action: the reason, or what a diff has found.
func (t tile) Lines() []string {
	switch {
	case t.Minor:
		return t.Changes
	case t.Reason != "":
		return []string{t.Reason}
	}
	return nil
}

type mapRow struct {
	Phase      []string // in the first row of a phase: its name, cut at "_"
	Completion string
	Tiles      []tile
}

type classMap struct {
	Name, Gist string
	Failure    string // that stands for the class
	Effects    string // if the same in all cells
	Rows       []mapRow
}

// gists say in one line what the classes are.
var gists = map[engine.Class]string{
	engine.ClassKeyFault:          "this credential or account doesn't work",
	engine.ClassRateLimited:       "too much for now",
	engine.ClassProviderTransient: "the provider has a problem that may pass",
	engine.ClassBadModel:          "this channel doesn't have the model",
	engine.ClassBadRequest:        "the request is wrong wherever it goes",
	engine.ClassDenied:            "the gateway's own refusal",
	engine.ClassSchemaInvalid:     "the answer has no valid shape, or nothing in it",
	engine.ClassContractViolation: "the answer names another model",
	engine.ClassRefusal:           "the model declines: a normal completion",
	engine.ClassCancelled:         "the caller has left",
	engine.ClassPartial:           "the attempt broke after output",
	engine.ClassUnknown:           "nobody can tell",
	engine.ClassOK:                "it looked like a failure and is an answer",
}

// maps draws the tiles of each class that has any. tiles are by cell.
func maps(f *Facts, tiles map[engine.Cell]tile) []classMap {
	var list []classMap
	for _, class := range classes {
		m := classMap{Name: class.String(), Gist: gists[class], Failure: f.failures[class].asked() + ", scope " + f.failures[class].Scope.String()}
		var grid [mapRows][mapColumns]tile
		found, alike := false, true
		effects := ""
		for i := range perClass {
			t, ok := tiles[cellAt(class, i)]
			if ok && t.Kind != "same" {
				alike = alike && (!found || t.Effects == effects)
				found, effects = true, t.Effects
			}
			grid[i/mapColumns][i%mapColumns] = t
		}
		if !found {
			continue
		}
		if alike && effects != "-" {
			m.Effects = effects
		}
		for r, row := range cut(&grid) {
			mr := mapRow{Completion: completions[r%len(completions)].String(), Tiles: row}
			if r%len(completions) == 0 {
				mr.Phase = strings.Split(phases[r/len(completions)].String(), "_")
			}
			m.Rows = append(m.Rows, mr)
		}
		list = append(list, m)
	}
	return list
}

// cut cuts a map into rectangles of equal tiles, row by row, each as large as it can be at
// its upper left corner.
func cut(grid *[mapRows][mapColumns]tile) [mapRows][]tile {
	var rows [mapRows][]tile
	var used [mapRows][mapColumns]bool
	free := func(r, c int, like tile) bool {
		return r < mapRows && c < mapColumns && !used[r][c] && sameTile(grid[r][c], like)
	}
	for r := range mapRows {
		for c := range mapColumns {
			if used[r][c] {
				continue
			}
			t := grid[r][c]
			for w := 1; free(r, c+w-1, t); w++ {
				h := 1
				for wide := true; wide; {
					for x := range w {
						wide = wide && free(r+h, c+x, t)
					}
					if wide {
						h++
					}
				}
				if w*h > t.Rows*t.Columns {
					t.Rows, t.Columns = h, w
				}
			}
			for y := range t.Rows {
				for x := range t.Columns {
					used[r+y][c+x] = true
				}
			}
			t.Where = whereOf(r, c, t.Rows, t.Columns)
			t.Narrow = t.Columns == 1
			rows[r] = append(rows[r], t)
		}
	}
	return rows
}

func sameTile(a, b tile) bool {
	return a.Kind == b.Kind && a.Does == b.Does && a.Was == b.Was && a.Reason == b.Reason && a.Rule == b.Rule && a.RuleWas == b.RuleWas &&
		a.Effects == b.Effects && a.Interlock == b.Interlock && a.Why == b.Why && slices.Equal(a.Changes, b.Changes)
}

// whereOf says in words which cells a tile covers.
func whereOf(r, c, rows, columns int) string {
	var p, done, safe, budget []string
	add := func(list *[]string, word string) {
		if !slices.Contains(*list, word) {
			*list = append(*list, word)
		}
	}
	for y := r; y < r+rows; y++ {
		add(&p, phases[y/len(completions)].String())
		add(&done, completions[y%len(completions)].String())
	}
	for x := c; x < c+columns; x++ {
		word := "replay-safe"
		if !safeties[x/len(budgets)] {
			word = "not replay-safe"
		}
		add(&safe, word)
		add(&budget, budgets[x%len(budgets)].String())
	}
	parts := []string{strings.Join(p, " or ")}
	if len(done) < len(completions) {
		parts = append(parts, "completion "+strings.Join(done, " or "))
	}
	if len(safe) < len(safeties) {
		parts = append(parts, safe[0])
	}
	if len(budget) < len(budgets) {
		parts = append(parts, "budget "+strings.Join(budget, " or "))
	}
	return strings.Join(parts, ", ")
}
