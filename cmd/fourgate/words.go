package main

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/fourgate-dev/fourgate/engine"
)

// engineWord is one of the engine's closed lists of words.
type engineWord interface {
	engine.Class | engine.Action | engine.Terminal
	String() string
}

// readWord reads a flag's word; its error lists those that there are.
func readWord[W engineWord](flag, word string, parse func(string) (W, error), others ...string) (W, error) {
	w, err := parse(word)
	if err == nil {
		return w, nil
	}
	var words []string
	for w := range W(255) {
		if known, err := parse(w.String()); err == nil && known == w {
			words = append(words, w.String())
		}
	}
	words = append(words, others...)
	return w, usageError{fmt.Errorf("-%s doesn't know %q%s", flag, word, among(word, words))}
}

// among is the end of a message: the words that there are, and which of them was meant.
func among(given string, words []string) string {
	best, distance := "", max(2, len(given)/3)+1
	for _, w := range words {
		if n := levenshtein.Distance(strings.ToLower(given), strings.ToLower(w), nil); n < distance {
			best, distance = w, n
		}
	}
	all := strings.Join(words, ", ")
	if best == "" {
		return "; there are: " + all
	}
	return fmt.Sprintf("; did you mean %q? There are: %s", best, all)
}

// noSuchGroup says that a configuration has no such route group.
func noSuchGroup(group, path string, names []string) error {
	return usageError{fmt.Errorf("there is no route group %q in %s%s", group, path, among(group, names))}
}
