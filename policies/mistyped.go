package policies

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// mistyped says that a part of a policy's answer doesn't have the documented form. It is
// wrapped with the names of the members that lead there.
type mistyped struct {
	kind   string // what is wrong, without any value of the answer
	detail string // the value, and what to write
}

// What can be wrong with a part of an answer.
const (
	unknownMember = "unknown member"
	missingMember = "missing member"
	wrongType     = "wrong type"
	unknownWord   = "unknown word"
	outOfRange    = "value out of range"
	twice         = "value that is there twice"
	misplaced     = "member that doesn't belong here"
)

func (e *mistyped) Error() string { return e.kind + e.detail }

// notAMember is of a name that isn't in a list.
func notAMember(name string, names ...string) error {
	hint := ": there are " + strings.Join(names, ", ")
	if meant := nearest(name, names); meant != "" {
		hint = ": did you mean " + meant + "? There" + strings.TrimPrefix(hint, ": there")
	}
	return &mistyped{unknownMember, hint}
}

// missing is of a member that must be there; why may be empty.
func missing(name, why string) error {
	return fmt.Errorf("%s: %w", name, &mistyped{missingMember, why})
}

// notOfType is of a value that is something else than is wanted.
func notOfType(v ast.Value, want string) error {
	return &mistyped{wrongType, ": " + kindOf(v) + "; write " + want}
}

// notIn is of a number, a text or a list that is too small or too large.
func notIn(v ast.Value, want string) error {
	return &mistyped{outOfRange, ": " + kindOf(v) + "; write " + want}
}

// noWord is of a text that is none of the words.
func noWord(text string, words []string) error {
	hint := "; write one of " + strings.Join(words, ", ")
	if meant := nearest(text, words); meant != "" {
		hint = "; did you mean " + meant + "? The words are " + strings.Join(words, ", ")
	}
	return &mistyped{unknownWord, " " + quoted(text) + hint}
}

// maxQuoted bounds a value in a message, in bytes.
const maxQuoted = 40

// quoted is a text between quotes, cut where it is long.
func quoted(text string) string {
	if len(text) > maxQuoted {
		return strconv.Quote(strings.ToValidUTF8(text[:maxQuoted], "")) + "…"
	}
	return strconv.Quote(text)
}

// kindOf names the type of a value, with the value where that is short.
func kindOf(v ast.Value) string {
	switch v := v.(type) {
	case ast.String:
		return "the text " + quoted(string(v))
	case ast.Number:
		text := string(v)
		if len(text) > maxQuoted {
			text = text[:maxQuoted] + "…"
		}
		return "the number " + text
	case ast.Boolean:
		return v.String()
	case ast.Null:
		return "null"
	case *ast.Array:
		return fmt.Sprintf("a list of %d", v.Len())
	case ast.Set:
		return fmt.Sprintf("a set of %d", v.Len())
	case ast.Object:
		return "an object"
	}
	return "something else"
}
