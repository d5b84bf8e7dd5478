package policies

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"
)

// Problem is one reason why a policy can't be loaded. Line and Col count from 1; they
// are 0 where only the file, or nothing, can be named.
type Problem struct {
	File      string
	Line, Col int
	Message   string
	Hint      string // what to write instead; empty where the message says it
	// Argument is the one that the problem is about: "profile", "query", "params" or "data"
	// where [Options] are wrong, or else empty.
	Argument string
}

func (p Problem) String() string {
	text := p.Text()
	switch {
	case p.File == "":
		return text
	case p.Line == 0:
		return p.File + ": " + text
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, text)
}

// Text is the message and, on a line of its own, the hint.
func (p Problem) Text() string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + "\n\thint: " + p.Hint
}

// LoadError lists everything that is wrong with a policy, by file and line.
type LoadError struct{ Problems []Problem }

func (e *LoadError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "cannot load policy: " + strings.Join(lines, "\n")
}

// problems are what a load has found so far.
type problems []Problem

func (ps *problems) add(file string, format string, args ...any) {
	*ps = append(*ps, Problem{File: file, Message: fmt.Sprintf(format, args...)})
}

// addTo adds a problem of an argument.
func (ps *problems) addTo(argument, format string, args ...any) {
	*ps = append(*ps, Problem{Argument: argument, Message: fmt.Sprintf(format, args...)})
}

// failed sorts the problems into an error; it is nil if there are none.
func (ps problems) failed() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return &LoadError{slices.Compact(ps)}
}

// fromOPA adds OPA's own problems with their places.
func (ps *problems) fromOPA(file string, err error) {
	var list ast.Errors
	var one *ast.Error
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = ast.Errors{one}
	default:
		ps.add(file, "%v", err)
		return
	}
	for _, e := range list {
		p := Problem{File: file, Message: refusal(e.Message)}
		if e.Location != nil {
			p.File, p.Line, p.Col = cmp.Or(e.Location.File, file), e.Location.Row, e.Location.Col
		}
		if rule, _, found := strings.Cut(p.Message, " conflicts with:\n"); found { // a list of all rules there
			p.Message = rule + " conflicts with a package of the same name"
		}
		p.Hint = hintFor(e, p.Message)
		if e.Details != nil {
			if lines := e.Details.Lines(); len(lines) > 0 {
				p.Message += "\n\t" + strings.Join(lines, "\n\t")
			}
		}
		*ps = append(*ps, p)
	}
}

// nearest returns the word that was probably meant, empty if none is near.
func nearest(given string, words []string) string {
	best, distance := "", max(1, len(given)/3)+1
	if i := slices.IndexFunc(words, func(w string) bool { return len(given) > 3 && strings.HasPrefix(w, given) }); i >= 0 {
		return words[i]
	}
	for _, w := range words {
		if n := levenshtein.Distance(given, w, nil); n < distance {
			best, distance = w, n
		}
	}
	return best
}
