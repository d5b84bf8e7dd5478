package hcl

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// text evaluates an expression that is a string.
func (d *decoder) text(expr hcl2.Expression, path []string, what string) (string, bool) {
	v, ok := d.value(expr, cty.String, path, what)
	if !ok {
		return "", false
	}
	return v.AsString(), true
}

// scalar evaluates an argument of the section.
func (s *section) scalar(name string, want cty.Type) (v cty.Value, at hcl2.Range, ok bool) {
	attr := s.attrs[name]
	if attr == nil {
		return cty.NilVal, s.place, false
	}
	v, ok = s.value(attr.Expr, want, join(s.path, name), fmt.Sprintf("%q", name))
	return v, attr.Expr.Range(), ok
}

// has says whether an argument is written and not null.
func (s *section) has(name string) bool { return s.attrs[name] != nil }

// failAt reports an error in the value of an argument.
func (s *section) failAt(name string, at hcl2.Range, summary, detail string, args ...any) {
	s.fail(join(s.path, name), at, summary, detail, args...)
}

// missing reports an argument that has no default.
func (s *section) missing(name, why string) {
	path := join(s.path, name)
	if s.isFaulty(path) {
		return
	}
	s.fail(path, s.place, "Missing argument", "%q must be set: %s", name, why)
}

// str reads a string, or returns the default.
func (s *section) str(name, fallback string) string {
	v, _, ok := s.scalar(name, cty.String)
	if !ok {
		return fallback
	}
	return v.AsString()
}

// flag reads true or false.
func (s *section) flag(name string) bool {
	v, _, ok := s.scalar(name, cty.Bool)
	return ok && v.True()
}

// number reads a number between two bounds.
func (s *section) number(name string, fallback, low, high float64) float64 {
	v, at, ok := s.scalar(name, cty.Number)
	if !ok {
		return fallback
	}
	n, _ := v.AsBigFloat().Float64()
	if !(n >= low && n <= high) {
		s.failAt(name, at, "Number out of range", "%q must be between %s and %s.", name,
			strconv.FormatFloat(low, 'f', -1, 64), strconv.FormatFloat(high, 'f', -1, 64))
		return fallback
	}
	return n
}

// integer reads a whole number between two bounds.
func (s *section) integer(name string, fallback, low, high int) int {
	v, at, ok := s.scalar(name, cty.Number)
	if !ok {
		return fallback
	}
	big := v.AsBigFloat()
	n, accuracy := big.Int64()
	if accuracy != 0 || n < int64(low) || n > int64(high) {
		s.failAt(name, at, "Number out of range", "%q must be a whole number between %d and %d.", name, low, high)
		return fallback
	}
	return int(n)
}

// duration reads a duration between two bounds.
func (s *section) duration(name string, fallback, low, high time.Duration) time.Duration {
	v, at, ok := s.scalar(name, cty.String)
	if !ok {
		return fallback
	}
	got, err := parseDuration(v.AsString())
	if err != nil {
		s.failAt(name, at, "Not a duration", "%s", sentence(err.Error()))
		return fallback
	}
	if got < low || got > high {
		s.failAt(name, at, "Duration out of range", "%q must be between %s and %s.",
			name, formatDuration(low), formatDuration(high))
		return fallback
	}
	return got
}

// size reads a number of bytes between two bounds.
func (s *section) size(name string, fallback, low, high int64) int64 {
	v, at, ok := s.scalar(name, cty.String)
	if !ok {
		return fallback
	}
	got, err := parseSize(v.AsString())
	if err != nil {
		s.failAt(name, at, "Not a size", "%s", sentence(err.Error()))
		return fallback
	}
	if got < low || got > high {
		s.failAt(name, at, "Size out of range", "%q must be between %s and %s.", name, formatSize(low), formatSize(high))
		return fallback
	}
	return got
}

// words is a closed vocabulary. The words of later belong to the language, but this
// version can't act on them.
type words struct {
	now   []string
	later []string
}

// word reads one word of a vocabulary.
func (s *section) word(name, fallback string, vocabulary words) string {
	v, at, ok := s.scalar(name, cty.String)
	if !ok {
		return fallback
	}
	given := v.AsString()
	if !s.knows(join(s.path, name), at, given, vocabulary) {
		return fallback
	}
	return given
}

func (d *decoder) knows(path []string, at hcl2.Range, given string, vocabulary words) bool {
	quoted := make([]string, len(vocabulary.now))
	for i, w := range vocabulary.now {
		if w == given {
			return true
		}
		quoted[i] = fmt.Sprintf("%q", w)
	}
	list, use := strings.Join(quoted, ", "), "Use one of"
	if len(quoted) == 1 {
		use = "Use"
	}
	for _, w := range vocabulary.later {
		if w == given {
			d.fail(path, at, "Not supported by this version",
				"%q is part of the language, but this version of Fourgate can't do it yet. %s %s.", given, use, list)
			return false
		}
	}
	d.fail(path, at, "Unknown word", "There is no %s here. %s %s.%s", bounded(given), use, list, didYouMean(given, vocabulary.now))
	return false
}

// item is one string of a list, with its place.
type item struct {
	text string
	at   hcl2.Range
}

// list reads a list of strings. An empty string or a second copy is an error.
func (s *section) list(name string) []item {
	attr := s.attrs[name]
	if attr == nil {
		return nil
	}
	path := join(s.path, name)
	exprs, diags := hcl2.ExprList(attr.Expr)
	if diags.HasErrors() {
		s.fail(path, attr.Expr.Range(), "Argument is not a list", "%q takes a list: %s = [ … ].", name, name)
		return nil
	}
	var items []item
	seen := map[string]hcl2.Range{}
	for _, expr := range exprs {
		text, ok := s.text(expr, path, fmt.Sprintf("Each item of %q", name))
		switch earlier, again := seen[text]; {
		case !ok:
		case text == "":
			s.fail(path, expr.Range(), "Empty name in a list", "%q has an empty string. Remove it.", name)
		case again:
			s.duplicate(expr.Range(), bounded(text), earlier)
		default:
			seen[text] = expr.Range()
			s.ranges[pathKey(join(path, text))] = expr.Range()
			items = append(items, item{text, expr.Range()})
		}
	}
	return items
}

// dictionary reads a map of strings.
func (s *section) dictionary(name string) map[string]string {
	pairs := s.pairs(name)
	if len(pairs) == 0 {
		return nil
	}
	path, values := join(s.path, name), map[string]string{}
	for key, pair := range pairs {
		inner := join(path, key)
		s.ranges[pathKey(inner)] = pair.Value.Range()
		if text, ok := s.text(pair.Value, inner, fmt.Sprintf("The value of %s", bounded(key))); ok {
			values[key] = text
		}
	}
	return values
}
