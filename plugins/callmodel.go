package plugins

import "bytes"

// namesModel says whether a value names the contract's model: the exact name, or one of
// the two is the other with a date at its end.
func (c *call) namesModel(stack []uint64) {
	p, ok := c.find(stack[0], stack[1], stack[2])
	if !ok || c.ev.Contract.Model == "" || c.node(p).kind != kindString {
		give(stack, absent)
		return
	}
	a, b := c.docs[p.slot].raw(p.node), []byte(c.ev.Contract.Model)
	c.spend(len(b))
	if len(a) == 0 {
		give(stack, absent)
		return
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	if rest, ok := bytes.CutPrefix(b, a); ok && (len(rest) == 0 || isDate(rest)) {
		give(stack, 1)
		return
	}
	give(stack, 0)
}

// isDate recognises "-20250929" and "-2024-08-06".
func isDate(text []byte) bool {
	if len(text) != 9 && len(text) != 11 || text[0] != '-' {
		return false
	}
	for i, b := range text[1:] {
		if dash := len(text) == 11 && (i == 4 || i == 7); dash != (b == '-') || !dash && (b < '0' || b > '9') {
			return false
		}
	}
	return true
}
