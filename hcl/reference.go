package hcl

import (
	"fmt"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
)

// reference is a name of another block, such as provider.openai. It is looked up when
// all files are read, so that the order of blocks doesn't matter.
type reference struct {
	block, label string
	path         []string // the argument that refers
	at           hcl2.Range
}

// ref reads a reference to a block of the given type and returns its label, or "".
func (s *section) ref(name, block string) string {
	attr := s.attrs[name]
	if attr == nil {
		return ""
	}
	label, _ := s.follow(attr.Expr, join(s.path, name), block)
	return label
}

// refs reads a list of references.
func (s *section) refs(name, block string) []string {
	attr, path := s.attrs[name], join(s.path, name)
	if attr == nil {
		return nil
	}
	exprs, diags := hcl2.ExprList(attr.Expr)
	if diags.HasErrors() {
		s.fail(path, attr.Expr.Range(), "Argument is not a list", "%q takes a list: %s = [%s].", name, name, example(block))
		return nil
	}
	var labels []string
	seen := map[string]hcl2.Range{}
	for _, expr := range exprs {
		label, ok := s.follow(expr, path, block)
		if !ok {
			continue
		}
		if earlier, again := seen[label]; again {
			s.duplicate(expr.Range(), fmt.Sprintf("%s %q", block, label), earlier)
			continue
		}
		seen[label] = expr.Range()
		s.ranges[pathKey(join(path, label))] = expr.Range()
		labels = append(labels, label)
	}
	return labels
}

// follow reads one reference. It is a static traversal and isn't evaluated, so that
// there are no cycles and its place is known.
func (d *decoder) follow(expr hcl2.Expression, path []string, block string) (string, bool) {
	at := expr.Range()
	traversal, diags := hcl2.AbsTraversalForExpr(expr)
	if diags.HasErrors() {
		d.fail(path, at, "Not a reference", "Name a %s block here: %s.", block, quoteIn(expr, example(block)))
		return "", false
	}
	root := traversal.RootName()
	if root != block {
		d.fail(path, at, "Reference to the wrong block",
			"This argument takes a %s: %s, not %s.", block, quoteIn(expr, example(block)), bounded(root))
		return "", false
	}
	label, ok := labelOf(traversal)
	if !ok {
		d.fail(path, at, "Reference cannot be followed",
			"Write %s. A name with dots, slashes or colons goes in brackets: %s[\"gpt-4.1\"].", quoteIn(expr, example(block)), block)
		return "", false
	}
	d.refs = append(d.refs, reference{block, label, path, at})
	return label, true
}

// labelOf returns the label of provider.openai or provider["openai"].
func labelOf(traversal hcl2.Traversal) (string, bool) {
	if len(traversal) != 2 {
		return "", false
	}
	switch step := traversal[1].(type) {
	case hcl2.TraverseAttr:
		return step.Name, true
	case hcl2.TraverseIndex:
		if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
			return step.Key.AsString(), true
		}
	}
	return "", false
}

func example(block string) string { return block + ".NAME" }

// quoteIn writes a reference as the file's syntax wants it.
func quoteIn(expr hcl2.Expression, text string) string {
	if hcljson.IsJSONExpression(expr) {
		return `"` + text + `"`
	}
	return text
}

// spell writes a reference to a label in native syntax.
func spell(block, label string) string {
	if hclsyntax.ValidIdentifier(label) {
		return block + "." + label
	}
	return fmt.Sprintf("%s[%q]", block, label)
}

// resolveReferences reports references to blocks that don't exist.
func (d *decoder) resolveReferences() {
	labels := map[string][]string{}
	for _, key := range sortedKeys(d.ranges) {
		if parts := strings.Split(key, "\x00"); len(parts) == 2 {
			labels[parts[0]] = append(labels[parts[0]], parts[1])
		}
	}
	for _, r := range d.refs {
		if _, ok := d.ranges[pathKey([]string{r.block, r.label})]; ok {
			continue
		}
		hint := fmt.Sprintf(" Define it: %s %q { … }.", r.block, r.label)
		if w := nearest(r.label, labels[r.block]); w != "" {
			hint = fmt.Sprintf(" Did you mean %s?", spell(r.block, w))
		}
		if r.block == "classifier" && slices.Contains(builtinModules, r.label) && nearest(r.label, labels[r.block]) == "" {
			hint = fmt.Sprintf(" Define it: classifier %q { module = \"builtin:%s\" }.", r.label, r.label)
		}
		d.fail(r.path, r.at, "Reference to an undefined block", "There is no %s %s.%s", r.block, bounded(r.label), hint)
	}
}

// isReferred says whether any reference names the block.
func (d *decoder) isReferred(block, label string) bool {
	for _, r := range d.refs {
		if r.block == block && r.label == label {
			return true
		}
	}
	return false
}
