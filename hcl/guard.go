package hcl

import (
	"encoding/json"
	"fmt"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// guard refuses a source that could make the recursive parser, or a walk over what it
// built, run out of stack. It runs before any parsing and only lexes.
func guard(src []byte, filename string) (Diagnostic, bool) {
	start := hcl2.Pos{Line: 1, Column: 1}
	if len(src) > maxFileBytes {
		return diagnosticAt(Error, hcl2.Range{Filename: filename, Start: start, End: start},
			"Configuration file is too large",
			fmt.Sprintf("The file has %d bytes; at most %d are read. Split it into several *.hcl files in one directory.",
				len(src), maxFileBytes)), false
	}
	var depth depth
	var place hcl2.Range
	var ok bool
	if isJSON(filename) {
		place, ok = depth.json(src, filename)
	} else {
		tokens, _ := hclsyntax.LexConfig(src, filename, start)
		place, ok = depth.tokens(tokens)
	}
	if ok {
		return Diagnostic{}, true
	}
	return diagnosticAt(Error, place, "Configuration is nested too deeply",
		fmt.Sprintf("Brackets may nest %d levels, and a file may have %d operators. "+
			"A configuration needs neither; check for brackets that were never closed.", maxNesting, maxOperators)), false
}

// depth measures how far a source nests.
type depth struct {
	open      []hclsyntax.TokenType // what will close each open bracket
	operators int
}

// closes takes a closing bracket. One that doesn't fit closes nothing: a hostile source
// must not be able to lower the count that way.
func (d *depth) closes(closing hclsyntax.TokenType) {
	if n := len(d.open); n > 0 && d.open[n-1] == closing {
		d.open = d.open[:n-1]
	}
}

// tokens reads native syntax and returns where it nests too deeply.
func (d *depth) tokens(tokens hclsyntax.Tokens) (hcl2.Range, bool) {
	previous := hclsyntax.TokenNil
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace:
			d.open = append(d.open, hclsyntax.TokenCBrace)
		case hclsyntax.TokenOParen:
			d.open = append(d.open, hclsyntax.TokenCParen)
		case hclsyntax.TokenOBrack:
			d.open = append(d.open, hclsyntax.TokenCBrack)
			if previous == hclsyntax.TokenCBrack { // a[0][0]…: each index wraps the one before
				d.operators++
			}
		case hclsyntax.TokenTemplateInterp:
			d.open = append(d.open, hclsyntax.TokenTemplateSeqEnd)
		case hclsyntax.TokenTemplateControl: // %{if} nests until an endif that isn't looked for
			d.open = append(d.open, hclsyntax.TokenTemplateSeqEnd)
			d.operators++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			d.closes(t.Type)
		case hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPlus, hclsyntax.TokenMinus,
			hclsyntax.TokenPercent, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan,
			hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq,
			hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenBang, hclsyntax.TokenQuestion:
			d.operators++
		}
		if len(d.open) > maxNesting || d.operators > maxOperators {
			return t.Range, false
		}
		previous = t.Type
	}
	return hcl2.Range{}, true
}

// json reads JSON: its own brackets, and native syntax inside its strings, which is
// parsed when a value is asked for.
func (d *depth) json(src []byte, filename string) (hcl2.Range, bool) {
	line, lineStart := 1, 0
	for i := 0; i < len(src); i++ {
		at := hcl2.Pos{Line: line, Column: i - lineStart + 1, Byte: i}
		place := hcl2.Range{Filename: filename, Start: at, End: at}
		switch src[i] {
		case '\n':
			line, lineStart = line+1, i+1
		case '{':
			d.open = append(d.open, hclsyntax.TokenCBrace)
		case '[':
			d.open = append(d.open, hclsyntax.TokenCBrack)
		case '}':
			d.closes(hclsyntax.TokenCBrace)
		case ']':
			d.closes(hclsyntax.TokenCBrack)
		case '"':
			end := stringEnd(src, i)
			var text string
			if json.Unmarshal(src[i:end], &text) == nil && !d.text(text) {
				return place, false
			}
			i = end - 1
		}
		if len(d.open) > maxNesting {
			return place, false
		}
	}
	return hcl2.Range{}, true
}

// text measures one JSON string in both ways in which it may be parsed.
func (d *depth) text(text string) bool {
	expression, _ := hclsyntax.LexExpression([]byte(text), "", hcl2.InitialPos)
	template, _ := hclsyntax.LexTemplate([]byte(text), "", hcl2.InitialPos)
	for _, tokens := range []hclsyntax.Tokens{expression, template} {
		inside := depth{}
		if _, ok := inside.tokens(tokens); !ok {
			return false
		}
	}
	return true
}

// stringEnd returns the index after the string that begins at src[i]. A string that
// isn't closed ends with its line, where the JSON parser ends it, too.
func stringEnd(src []byte, i int) int {
	for i++; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		case '\n':
			return i
		}
	}
	return len(src)
}
