package matrix

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// rules are the places of the rules that have answered, numbered in the order in which
// they stand in their files.
type rules struct {
	places []string
	letter string // before the numbers, where there are two policies
}

func rulesOf(answers []Answer, letter string) rules {
	r := rules{letter: letter}
	for i := range answers {
		if place := answers[i].Decision.Rule; place != "" && !slices.Contains(r.places, place) {
			r.places = append(r.places, place)
		}
	}
	slices.SortFunc(r.places, func(a, b string) int {
		fileA, lineA := cutPlace(a)
		fileB, lineB := cutPlace(b)
		return cmp.Or(strings.Compare(fileA, fileB), lineA-lineB)
	})
	return r
}

// cutPlace takes file:line apart. The file's name may have colons of its own.
func cutPlace(place string) (file string, line int) {
	i := strings.LastIndexByte(place, ':')
	if i < 0 {
		return place, 0
	}
	line, err := strconv.Atoi(place[i+1:])
	if err != nil {
		return place, 0
	}
	return place[:i], line
}

// name is a rule's number, empty where no rule can be named.
func (r *rules) name(place string) string {
	if i := slices.Index(r.places, place); i >= 0 {
		return r.letter + strconv.Itoa(i+1)
	}
	return ""
}

// mark is the number as it stands beside an action: [3], or with a letter A3.
func (r *rules) mark(place string) string {
	n := r.name(place)
	if n == "" || r.letter != "" {
		return n
	}
	return "[" + n + "]"
}
