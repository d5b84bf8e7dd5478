package hcl

import (
	"bytes"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format returns a configuration in the canonical layout: two spaces a level, aligned
// equals signs, comments and blank lines kept. Formatting its result changes nothing.
// A source with a syntax error comes back as diagnostics and no bytes.
func Format(src []byte, filename string) ([]byte, Diagnostics) {
	shown := &hcl2.File{Bytes: mask(src)}
	fail := func(diag Diagnostic) ([]byte, Diagnostics) {
		diag.source = shown
		return nil, Diagnostics{diag}
	}
	if isJSON(filename) {
		return fail(Diagnostic{
			Summary: "JSON has no canonical layout here", File: filename,
			Detail: "fourgate fmt lays out *.hcl files. Use a JSON formatter for *.hcl.json.",
		})
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	shown.Bytes = mask(src)
	if diag, ok := guard(src, filename); !ok {
		shown.Bytes = nil
		return fail(diag)
	}
	file, diags := hclsyntax.ParseConfig(src, filename, hcl2.InitialPos)
	if diags.HasErrors() {
		if file != nil {
			shown.Nav = file.Nav
		}
		var out Diagnostics
		for _, diag := range diags {
			d := translate(diag)
			d.source = shown
			out = append(out, d)
		}
		out.sort()
		return nil, out
	}
	return hclwrite.Format(src), nil
}
