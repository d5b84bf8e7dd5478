package plugins

// maxLowered is how many texts are remembered in lower case.
const maxLowered = 32

// take returns the unused rest of the scratch space with room for n bytes and more, as
// an empty slice. What is appended within its capacity stays only when keep is called;
// without it the next take overwrites it. The space has a fixed size: a text that
// doesn't fit is treated as absent by the caller, or grows outside and is dropped.
func (c *call) take(n int) []byte {
	if c.scratch == nil {
		c.scratch = make([]byte, 0, maxScratch)
	}
	if cap(c.scratch)-len(c.scratch) < n {
		return nil
	}
	return c.scratch[len(c.scratch):len(c.scratch):cap(c.scratch)]
}

// keep makes the first n bytes that were written into the last take permanent for this
// classification.
func (c *call) keep(n int) []byte {
	start := len(c.scratch)
	c.scratch = c.scratch[:start+n]
	return c.scratch[start : start+n : start+n]
}

// lowerOf returns a text in lower case, at most maxSearch bytes of it, from the
// remembered ones or newly made. The text is raw JSON string content if escaped is set.
func (c *call) lowerOf(doc, node int32, raw []byte, escaped bool) []byte {
	for i := range c.lowered {
		if l := &c.lowered[i]; l.doc == doc && l.node == node {
			return l.text
		}
	}
	// A sequence that is cut at the end of the window does no harm.
	raw = raw[:min(len(raw), maxSearch)]
	room := c.take(len(raw))
	fits := room != nil && len(c.lowered) < maxLowered
	if room == nil {
		room = make([]byte, 0, len(raw))
	}
	text := room[:len(raw)]
	n := len(raw)
	if escaped {
		n, _ = unescape(text, raw)
	} else {
		copy(text, raw)
	}
	lower(text[:n])
	if fits {
		c.lowered = append(c.lowered, lowerText{doc, node, c.keep(n)})
	}
	return text[:n]
}
