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
	if isJSON(filename) {
		return nil, Diagnostics{{
			Summary: "JSON has no canonical layout here", File: filename,
			Detail: "fourgate fmt lays out *.hcl files. Use a JSON formatter for *.hcl.json.",
		}}
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if diag, ok := guard(src, filename); !ok {
		return nil, Diagnostics{diag}
	}
	_, diags := hclsyntax.ParseConfig(src, filename, hcl2.InitialPos)
	if diags.HasErrors() {
		shown := &hcl2.File{Bytes: mask(src)}
		var out Diagnostics
		for _, diag := range diags {
			d := translate(diag)
			d.source = shown
			out = append(out, d)
		}
		out.Sort()
		return nil, out
	}
	return hclwrite.Format(src), nil
}
