package policies

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// hints say what to write instead, by what OPA's message begins with or has in it. The
// first that fits is taken.
var hints = []struct{ part, hint string }{
	{"`if` keyword is required before rule body", "write if before the brace: decision := … if { … }"},
	{"`contains` keyword is required", "write contains: names contains x if { … }"},
	{"package expected", "begin the file with its package, such as package fourgate"},
	{"empty module", "begin the file with its package, such as package fourgate"},
	{"is unsafe", "set it with := in the same body, or write the whole name, such as input.failure.status"},
	{"assigned above", "a variable is set once; give the second value a name of its own"},
	{"declared above", "a variable is set once; give the second value a name of its own"},
	{"referenced above", "set the variable before it is used, or give the new one another name"},
	{"is recursive", "a rule can't need its own value; put the common part into a rule of its own"},
	{"multiple default rules", "keep one default"},
	{"conflicting rules", "give one of them another name, or the same arguments"},
	{"conflicting rule for data path", "rename the rule, or the document in the data file"},
	{"conflicts with", "choose another name: gates, blame, knobs, standard and profiles are packages of Fourgate"},
	{"match error", "compare values of the same type, or with is_null(x); docs/policies.md has the type of each fact"},
	{"invalid argument(s)", "pass the types that it wants; sprintf(\"%d\", [n]) makes a text of a number, to_number a number of a text"},
	{"arity mismatch", "pass the arguments that it wants"},
	{"unexpected or token", "Rego has no ||: write a second rule, or x in {1, 2}"},
	{"unexpected and token", "Rego has no &&: write each condition on a line of its own"},
	{"var cannot be used for rule name", "begin a new line before a new rule; conditions stand on lines of their own between braces"},
	{"rule name conflicts with built-in function", "conditions stand on lines of their own between braces; and isn't written"},
	{"illegal token", "write texts between double quotes"},
	{"unexpected if keyword", "close the brace or bracket before it"},
	{"unexpected eof", "close the brace or bracket that is open"},
	{"undefined schema", "write schema, schema.input or schema.route"},
	{"number too big", "write a number that fits its purpose; times are in milliseconds"},
	{"unused", "remove it, or use it"},
	{"must not shadow", "give it another name"},
	{"max parsing recursion depth", "give the inner parts names: a rule or a variable of their own"},
}

// hintFor finds what helps against an error of OPA's.
func hintFor(e *ast.Error, message string) string {
	if d, ok := e.Details.(*ast.RefErrInvalidDetail); ok {
		return meantName(d)
	}
	if name, found := strings.CutPrefix(e.Message, "undefined function "); found {
		if _, refused := ast.BuiltinMap[name]; refused {
			return insteadOf(name)
		}
		if meant := nearest(name, allowed); meant != "" {
			return "did you mean " + meant + "?"
		}
		return "define it, or correct its name"
	}
	for _, h := range hints {
		if strings.Contains(strings.ToLower(message), strings.ToLower(h.part)) {
			return h.hint
		}
	}
	return ""
}

// meantName finds the nearest name among those that a misspelt one could be.
func meantName(d *ast.RefErrInvalidDetail) string {
	var given string
	if d.Pos < len(d.Ref) {
		if s, ok := d.Ref[d.Pos].Value.(ast.String); ok {
			given = string(s)
		}
	}
	var names []string
	for _, v := range d.OneOf {
		if s, ok := v.(ast.String); ok {
			names = append(names, string(s))
		}
	}
	if meant := nearest(given, names); meant != "" {
		return "did you mean " + meant + "?"
	}
	return "write one of " + strings.Join(names, ", ")
}
