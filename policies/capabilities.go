package policies

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// allowed are the builtins that a policy may call. It is a list of what is allowed, so
// that a new builtin of a later OPA is refused until somebody has looked at it. Left
// out are those that reach outside (http.send, net.*, opa.runtime, json.match_schema,
// which follows references), that differ from call to call (time.*, rand.*, uuid.*),
// that do no work a routing decision needs (crypto.*, io.jwt.*, graph.*, graphql.*,
// yaml.*), and those whose single call can outlast the time limit, because
// cancellation isn't looked at inside one (bits.lsh, numbers.range, regex.template_match,
// object.subset, json.filter, json.remove).
var allowed = []string{
	// Operators and comparisons.
	"eq", "assign", "equal", "neq", "gt", "gte", "lt", "lte",
	"plus", "minus", "mul", "div", "rem", "abs", "ceil", "floor", "round",
	"bits.and", "bits.or", "bits.xor", "bits.negate",
	"and", "or", "intersection", "union",
	"internal.member_2", "internal.member_3", "internal.template_string",
	// Collections.
	"count", "sum", "max", "min", "sort", "walk",
	"array.concat", "array.flatten", "array.reverse", "array.slice",
	"object.filter", "object.get", "object.keys", "object.remove",
	"object.union", "object.union_n",
	// Types.
	"is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string",
	"type_name", "to_number",
	// Text.
	"concat", "contains", "endswith", "format_int", "glob.match", "indexof", "lower",
	"regex.is_valid", "regex.match", "replace", "split", "sprintf", "startswith",
	"strings.any_prefix_match", "strings.any_suffix_match", "strings.count",
	"strings.reverse", "substring", "trim", "trim_left", "trim_prefix", "trim_right",
	"trim_space", "trim_suffix", "upper",
	"semver.compare", "semver.is_valid", "units.parse", "units.parse_bytes",
	// For authors: both are removed when a policy is loaded to be used.
	"print", "internal.print",
}

// capabilities returns OPA's capabilities cut down to the allowed builtins and to no
// network at all.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool {
		return !slices.Contains(allowed, b.Name)
	})
	c.AllowNet = []string{}
	return c
}

// ofOwn gives one compiler results of builtins of its own. OPA's type checker widens the
// types of rules in place (mergeTypes in its ast/env.go), and what a builtin returns may be
// part of them: compilers that share declarations race.
func ofOwn(c *ast.Capabilities) *ast.Capabilities {
	for i, shared := range c.Builtins {
		result := shared.Decl.NamedResult()
		if result == nil {
			continue
		}
		text, err := json.Marshal(result)
		if err != nil {
			panic("BUG: what " + shared.Name + " returns has no JSON: " + err.Error())
		}
		copied, err := types.Unmarshal(text)
		if err != nil {
			panic("BUG: what " + shared.Name + " returns can't be read back: " + err.Error())
		}
		if named, ok := result.(*types.NamedType); ok {
			copied = types.Named(named.Name, copied)
		}
		own := *shared
		own.Decl = types.NewFunction(shared.Decl.NamedFuncArgs().Args, copied)
		c.Builtins[i] = &own
	}
	return c
}

// refusal turns OPA's message about a builtin that isn't in the list into one that
// says what is the matter; other messages stay.
func refusal(message string) string {
	name, found := strings.CutPrefix(message, "undefined function ")
	if !found {
		return message
	}
	if _, known := ast.BuiltinMap[name]; !known {
		return message
	}
	return "cannot use builtin " + name + ": a policy must give the same answer to the same question, " +
		"in bounded time and without reaching outside"
}

// insteadOf says what to use for a builtin that is refused.
func insteadOf(name string) string {
	if strings.HasPrefix(name, "time.") {
		return "use input.clock, and input.budget.time for what is left of the deadline"
	}
	return "use the facts in input, and data.params for what they lack"
}
