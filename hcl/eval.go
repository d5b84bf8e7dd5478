package hcl

import (
	"fmt"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// evalContext offers env() to every argument. Secrets don't come this way: secret.go
// reads their call itself, so that no value of theirs is ever part of an evaluation.
func evalContext(env Environment) *hcl2.EvalContext {
	return &hcl2.EvalContext{Functions: map[string]function.Function{
		"env": function.New(&function.Spec{
			Params:   []function.Parameter{{Name: "name", Type: cty.String}},
			VarParam: &function.Parameter{Name: "default", Type: cty.String},
			Type:     function.StaticReturnType(cty.String),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				name := args[0].AsString()
				if len(args) > 2 {
					return cty.NilVal, fmt.Errorf("the function env takes a name and perhaps a default; write env(%q, \"…\")", name)
				}
				if value, ok := env.lookup(name); ok {
					return cty.StringVal(value), nil
				}
				if len(args) == 2 {
					return args[1], nil
				}
				return cty.NilVal, fmt.Errorf("the environment variable %s isn't set; set it, or give a default: env(%q, \"…\")", name, name)
			},
		}),
	}}
}

// value evaluates an expression to a type. It reports what goes wrong, and returns
// false then, and for null, which means "as if it weren't written".
func (d *decoder) value(expr hcl2.Expression, want cty.Type, path []string, what string) (cty.Value, bool) {
	if word := bareWord(expr); word != "" {
		d.fail(path, expr.Range(), "Text without quotes", "%s takes a value. If text is meant, write %q.", what, word)
		return cty.NilVal, false
	}
	return d.evaluate(expr, want, path, what)
}

func (d *decoder) evaluate(expr hcl2.Expression, want cty.Type, path []string, what string) (cty.Value, bool) {
	at := expr.Range()
	got, diags := expr.Value(d.eval)
	if diags.HasErrors() {
		d.faulty[pathKey(path)] = true
		for _, diag := range diags {
			d.add(explain(diag))
		}
		return cty.NilVal, false
	}
	if got.IsNull() {
		return cty.NilVal, false
	}
	converted, err := convert.Convert(got, want)
	if err != nil || !converted.IsWhollyKnown() {
		d.fail(path, at, "Wrong type of value", "%s is a %s, not a %s.", what, typeName(want), typeName(got.Type()))
		return cty.NilVal, false
	}
	return converted, true
}

// bareWord returns the word of an expression that is nothing but a word: text that
// lacks its quotes. JSON has no such thing.
func bareWord(expr hcl2.Expression) string {
	if hcljson.IsJSONExpression(expr) {
		return ""
	}
	switch word := hcl2.ExprAsKeyword(expr); word {
	case "true", "false", "null":
		return ""
	default:
		return word
	}
}

// explain puts the HCL library's diagnostic of a failed evaluation into our words
// where it can be more helpful.
func explain(diag *hcl2.Diagnostic) Diagnostic {
	out := translate(diag)
	if call, ok := hcl2.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](diag); ok {
		if err := call.FunctionCallError(); err != nil && call.CalledFunctionName() == "env" {
			out.Summary, out.Detail = "Environment variable cannot be used", sentence(err.Error())
		}
	}
	if diag.Summary == "Call to unknown function" {
		out.Summary = "Unknown function"
		out.Detail = "There is env(\"NAME\") and env(\"NAME\", \"default\") for any argument, and file(\"path\") for a secret."
	}
	if diag.Summary == "Variables not allowed" {
		out.Summary = "Reference where a value belongs"
		out.Detail = "This argument takes a value. Put text in quotes."
	}
	return out
}

// sentence makes an error's text one: a capital letter and a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	if c := text[0]; c >= 'a' && c <= 'z' {
		text = string(c-'a'+'A') + text[1:]
	}
	return text + "."
}

func typeName(t cty.Type) string {
	switch {
	case t == cty.String:
		return "string"
	case t == cty.Number:
		return "number"
	case t == cty.Bool:
		return "boolean (true or false)"
	case t.IsTupleType(), t.IsListType(), t.IsSetType():
		return "list"
	case t.IsObjectType(), t.IsMapType():
		return "object"
	}
	return "value"
}
