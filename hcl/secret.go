package hcl

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"github.com/fourgate-dev/fourgate/engine"
)

// howSecret ends each detail about a secret.
const howSecret = `Write env("NAME") or file("path"), and keep the secret itself out of the configuration.`

// variableForm is what a variable's name usually looks like. Another text may be the
// secret itself, written where its variable's name belongs, and isn't repeated.
var variableForm = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,63}$`)

// errUnreadable stands for an error whose text might repeat the path.
var errUnreadable = errors.New("it can't be opened")

// secret reads a credential: a call of env or file with literal arguments. The call is
// taken apart here and never evaluated by the HCL library, whose diagnostics print
// values. No diagnostic of this file repeats anything but a variable's name or a path.
func (s *section) secret(name string) engine.Secret {
	attr := s.attrs[name]
	if attr == nil {
		return engine.Secret{}
	}
	path, at := join(s.path, name), attr.Expr.Range()
	call, ok := callIn(attr.Expr)
	if !ok {
		s.fail(path, at, "Secret written into the configuration",
			"A configuration is copied, committed and printed. If this is a real secret, replace it at its provider. %s", howSecret)
		return engine.Secret{}
	}
	args, ok := literals(call)
	switch {
	case !ok:
		s.fail(path, at, "Secret call cannot be read", "Its arguments must be plain quoted strings. %s", howSecret)
	case s.env.WithoutSecrets && (call.Name == "env" && (len(args) == 1 || len(args) == 2) || call.Name == "file" && len(args) == 1):
		return engine.NewSecret(unread)
	case call.Name == "env" && (len(args) == 1 || len(args) == 2):
		return s.fromVariable(path, at, args)
	case call.Name == "file" && len(args) == 1:
		return s.fromFile(path, at, args[0])
	case call.Name == "env" || call.Name == "file":
		s.fail(path, at, "Secret call cannot be read",
			"env takes a variable's name and perhaps a default, file takes a path. %s", howSecret)
	default:
		s.fail(path, at, "Unknown function for a secret", "%s", howSecret)
	}
	return engine.Secret{}
}

func (d *decoder) fromVariable(path []string, at hcl2.Range, args []string) engine.Secret {
	value, set := d.env.lookup(args[0])
	state := "is empty"
	if !set {
		state = "isn't set"
		if len(args) == 2 {
			value = args[1]
		}
	}
	if value == "" {
		name := "that env names here"
		if variableForm.MatchString(args[0]) {
			name = args[0]
		}
		d.fail(path, at, "Missing secret",
			"The environment variable %s %s. Set it before the start, or read the secret with file(\"path\").", name, state)
		return engine.Secret{}
	}
	return d.credential(path, at, value)
}

func (d *decoder) fromFile(path []string, at hcl2.Range, name string) engine.Secret {
	content, err := d.env.readFile(d.resolve(name))
	shown := "that is named here"
	if filepath.Ext(name) != "" || filepath.IsAbs(name) {
		shown = bounded(name)
	}
	if err != nil {
		var why *fs.PathError
		if errors.As(err, &why) {
			err = why.Err // the path is named once
		} else {
			err = errUnreadable
		}
		d.fail(path, at, "Missing secret", "The file %s cannot be read: %v. "+
			"Create it, and let the user that runs Fourgate read it.", shown, err)
		return engine.Secret{}
	}
	value := strings.TrimRight(string(content), "\r\n")
	if value == "" {
		d.fail(path, at, "Missing secret", "The file %s is empty. Write the secret into it.", shown)
		return engine.Secret{}
	}
	return d.credential(path, at, value)
}

// credential refuses what could not go into a header.
func (d *decoder) credential(path []string, at hcl2.Range, value string) engine.Secret {
	bad := len(value) > maxSecretBytes
	for i := range len(value) {
		bad = bad || value[i] <= ' ' || value[i] >= 0x7f
	}
	if bad {
		d.fail(path, at, "Secret cannot go into a header",
			"It has spaces, control characters or letters outside ASCII, or more than %d bytes. "+
				"Look for a line break, quotes or a byte order mark that was copied with it.", maxSecretBytes)
		return engine.Secret{}
	}
	return engine.NewSecret(value)
}

// callIn returns the function call that an expression consists of. In JSON it is
// written as "env(\"X\")" or "${env(\"X\")}".
func callIn(expr hcl2.Expression) (*hclsyntax.FunctionCallExpr, bool) {
	if hcljson.IsJSONExpression(expr) {
		v, diags := expr.Value(nil) // without a context a JSON string is itself
		if diags.HasErrors() || v.IsNull() || v.Type() != cty.String {
			return nil, false
		}
		text := v.AsString()
		if inner, ok := strings.CutPrefix(text, "${"); ok {
			text, _ = strings.CutSuffix(inner, "}")
		}
		parsed, diags := hclsyntax.ParseExpression([]byte(text), "", hcl2.InitialPos)
		if diags.HasErrors() {
			return nil, false
		}
		expr = parsed
	}
	for {
		switch e := expr.(type) {
		case *hclsyntax.ParenthesesExpr:
			expr = e.Expression
		case *hclsyntax.TemplateWrapExpr:
			expr = e.Wrapped
		case *hclsyntax.FunctionCallExpr:
			return e, true
		default:
			return nil, false
		}
	}
}

// literals returns a call's arguments if each is a string without references.
func literals(call *hclsyntax.FunctionCallExpr) ([]string, bool) {
	if call.ExpandFinal {
		return nil, false
	}
	var args []string
	for _, arg := range call.Args {
		if template, ok := arg.(*hclsyntax.TemplateExpr); !ok || !template.IsStringLiteral() {
			return nil, false
		}
		v, diags := arg.Value(nil)
		if diags.HasErrors() || v.IsNull() || v.Type() != cty.String {
			return nil, false
		}
		args = append(args, v.AsString())
	}
	return args, true
}
