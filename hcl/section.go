package hcl

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// section is the opened body of a block or an object: its attributes, each to be read
// by one of the methods of values.go, and its inner blocks.
type section struct {
	*decoder
	path   []string
	place  hcl2.Range // the block's header
	attrs  map[string]*hcl2.Attribute
	blocks []*hcl2.Block
}

// open reports what doesn't belong into a body and returns the rest.
func (d *decoder) open(body hcl2.Body, path []string, header hcl2.Range, shape *shape) *section {
	content, remain, diags := body.PartialContent(shape.schema())
	for _, diag := range diags {
		d.faulty[pathKey(path)] = true
		d.add(aboutLabels(translate(diag)))
	}
	if len(path) > 0 {
		d.ranges[pathKey(path)] = header
	}
	s := &section{decoder: d, path: path, place: header, attrs: content.Attributes, blocks: content.Blocks}
	for name, attr := range s.attrs {
		d.ranges[pathKey(join(path, name))] = attr.Expr.Range()
	}
	for _, extra := range d.leftovers(body, remain, shape) {
		s.reject(extra, shape)
	}
	return s
}

// aboutLabels says how to mend what the HCL library only counts.
func aboutLabels(diag Diagnostic) Diagnostic {
	if block, ok := strings.CutPrefix(diag.Summary, "Missing name for "); ok {
		diag.Detail = fmt.Sprintf("Each %s block has a name. Write %s \"NAME\" { … }.", block, block)
	}
	if block, ok := strings.CutPrefix(diag.Summary, "Extraneous label for "); ok {
		diag.Detail = fmt.Sprintf("A %s block has as many names as shown here: %s.", block, header(block))
	}
	return diag
}

// header is how a block begins.
func header(block string) string {
	for _, s := range []shape{rootShape, providerShape, groupShape} {
		for _, b := range s.blocks {
			if b.name == block && b.label != "" {
				return block + " \"NAME\" { … }"
			}
		}
	}
	return block + " { … }"
}

// leftover is a name that the shape doesn't have, or has as the other kind.
type leftover struct {
	name  string
	block bool
	place hcl2.Range
}

func (d *decoder) leftovers(body, remain hcl2.Body, shape *shape) []leftover {
	var extras []leftover
	if native, ok := body.(*hclsyntax.Body); ok {
		for name, attr := range native.Attributes {
			if !shape.isAttr(name) {
				extras = append(extras, leftover{name, false, attr.NameRange})
			}
		}
		for _, block := range native.Blocks {
			if !shape.isBlock(block.Type) {
				extras = append(extras, leftover{block.Type, true, block.TypeRange})
			}
		}
		return extras
	}
	// A JSON body tells its unknown properties only in diagnostics.
	_, diags := remain.Content(&hcl2.BodySchema{})
	for _, diag := range diags {
		if diag.Subject == nil || diag.Summary != "Extraneous JSON object property" {
			continue // a wrong type, which PartialContent has reported
		}
		var name string
		text := diag.Subject.SliceBytes(d.source[diag.Subject.Filename])
		if json.Unmarshal(text, &name) != nil {
			name = strings.Trim(string(text), `"`)
		}
		extras = append(extras, leftover{name, false, *diag.Subject})
	}
	return extras
}

func (s *section) reject(extra leftover, shape *shape) {
	path := join(s.path, extra.name)
	kind, summary := "argument", "Unknown argument"
	if extra.block {
		kind, summary = "block", "Unknown block"
	}
	switch {
	case slices.Contains(shape.later, extra.name):
		s.fail(path, extra.place, "Not supported by this version",
			"%q is part of the language, but this version of Fourgate doesn't act on it yet. Remove it.", extra.name)
	case !extra.block && shape.isBlock(extra.name):
		s.fail(path, extra.place, "Block written as an argument",
			"%q is a block. Write it without an equals sign: %s { … }.", extra.name, extra.name)
	case extra.block && shape.isAttr(extra.name):
		s.fail(path, extra.place, "Argument written as a block",
			"%q is an argument. Write it with an equals sign: %s = …", extra.name, extra.name)
	default:
		s.fail(path, extra.place, summary,
			"There is no %s %s here.%s", kind, bounded(extra.name), s.suggestion(extra.name, shape))
	}
}

func (s *section) suggestion(name string, shape *shape) string {
	if hint := didYouMean(name, shape.names()); hint != "" {
		return hint
	}
	return fmt.Sprintf(" What may stand here: %s.", strings.Join(shape.names(), ", "))
}

// bounded quotes a name from a file without letting it fill the screen.
func bounded(name string) string {
	if len(name) > maxNameBytes {
		name = name[:maxNameBytes] + "…"
	}
	return fmt.Sprintf("%q", name)
}

// only returns the one inner block of a type without label, or nil.
func (s *section) only(name string) *hcl2.Block {
	var found *hcl2.Block
	for _, b := range s.blocks {
		if b.Type != name {
			continue
		}
		if found != nil {
			s.duplicate(blockPlace(b), name, blockPlace(found))
			continue
		}
		found = b
	}
	return found
}

// inner opens the one inner block of a type without label. Without such a block it is
// an empty section, so that every attribute has its default.
func (s *section) inner(name string, shape *shape) *section {
	path := join(s.path, name)
	b := s.only(name)
	if b == nil {
		return &section{decoder: s.decoder, path: path, place: s.place}
	}
	return s.open(b.Body, path, blockPlace(b), shape)
}

// object opens an argument that is an object. It is an empty section if the argument
// is missing or no object.
func (s *section) object(name string, shape *shape) *section {
	path := join(s.path, name)
	empty := &section{decoder: s.decoder, path: path, place: s.place}
	attr := s.attrs[name]
	if attr == nil {
		return empty
	}
	o := &section{decoder: s.decoder, path: path, place: attr.Expr.Range(), attrs: map[string]*hcl2.Attribute{}}
	for key, pair := range s.pairs(name) {
		at := pair.Key.Range()
		if !shape.isAttr(key) {
			o.reject(leftover{name: key, place: at}, shape)
			continue
		}
		o.attrs[key] = &hcl2.Attribute{Name: key, Expr: pair.Value, NameRange: at, Range: hcl2.RangeBetween(at, pair.Value.Range())}
		s.ranges[pathKey(join(path, key))] = pair.Value.Range()
	}
	return o
}

// pairs returns the entries of an argument that is an object or a map.
func (s *section) pairs(name string) map[string]hcl2.KeyValuePair {
	attr, path := s.attrs[name], join(s.path, name)
	if attr == nil {
		return nil
	}
	list, diags := hcl2.ExprMap(attr.Expr)
	if diags.HasErrors() {
		s.fail(path, attr.Expr.Range(), "Argument is not an object",
			"%q takes names and values in braces: %s = { name = value, … }.", name, name)
		return nil
	}
	pairs := map[string]hcl2.KeyValuePair{}
	for _, pair := range list {
		// A name may stand without quotes, unlike a value.
		v, ok := s.evaluate(pair.Key, cty.String, path, fmt.Sprintf("A name in %q", name))
		if !ok {
			continue
		}
		key := v.AsString()
		if earlier, exists := pairs[key]; exists {
			s.duplicate(pair.Key.Range(), key, earlier.Key.Range())
			continue
		}
		pairs[key] = pair
	}
	return pairs
}

// duplicate reports a second definition, which is then left out. The first one isn't
// faulty.
func (d *decoder) duplicate(at hcl2.Range, what string, earlier hcl2.Range) {
	d.add(diagnosticAt(Error, at, "Defined twice",
		fmt.Sprintf("%s was already defined at %s. Remove one of the two.", what, place(earlier))))
}

// blockPlace is the part of a block's header that tells it from the others.
func blockPlace(b *hcl2.Block) hcl2.Range {
	if n := len(b.LabelRanges); n > 0 {
		return hcl2.RangeBetween(b.TypeRange, b.LabelRanges[n-1])
	}
	return b.TypeRange
}

// labelled opens each inner block of a type, once for each label.
func (s *section) labelled(name string, shape *shape, read func(label string, inner *section)) {
	for _, b := range s.blocks {
		if b.Type != name || len(b.Labels) == 0 {
			continue
		}
		label, at := b.Labels[0], b.LabelRanges[0]
		path := join(s.path, name, label)
		if earlier, exists := s.ranges[pathKey(path)]; exists {
			s.duplicate(at, fmt.Sprintf("%s %q", name, label), earlier)
			continue
		}
		s.checkLabel(at, name, label)
		read(label, s.open(b.Body, path, at, shape))
	}
}

// checkLabel keeps names fit for a header, a metric and a record.
func (d *decoder) checkLabel(at hcl2.Range, block, label string) {
	valid := len(label) > 0 && len(label) <= maxNameBytes
	for i := range len(label) {
		c := label[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		valid = valid && (letter || i > 0 && strings.IndexByte("._-:/", c) >= 0)
	}
	if !valid {
		d.add(diagnosticAt(Error, at, "Name cannot be used", fmt.Sprintf(
			"The name of a %s goes into headers, metrics and records. Use 1 to %d letters, digits and . _ - : / "+
				"and begin with a letter or digit.", block, maxNameBytes)))
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
