package plugins

import "bytes"

// What is remembered during one classification at most; the rest is made again.
const (
	maxLowered      = 24 // texts in lower case
	maxResolved     = 8  // paths with the values that they lead to
	maxAlternatives = 32 // values of one path
)

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

// lowered is a prepared text of a document or of a value in one.
type lowered struct {
	doc, node int32 // doc is noSlot for the whole text of the document number node
	searchText
}

// lowerOf returns a text in lower case, at most maxSearch bytes of it, from the
// remembered ones or newly made. The text is raw JSON string content if escaped is set.
// The result is valid until the next call.
func (c *call) lowerOf(doc, node int32, raw []byte, escaped bool) *searchText {
	c.spend(c.lowers)
	for i := range c.lowered[:c.lowers] {
		if l := &c.lowered[i]; l.doc == doc && l.node == node {
			return &l.searchText
		}
	}
	// A sequence that is cut at the end of the window does no harm.
	raw = raw[:min(len(raw), maxSearch)]
	room := c.take(len(raw))
	fits := room != nil && c.lowers < maxLowered
	if room == nil {
		room = make([]byte, 0, len(raw))
	}
	text := room[:len(raw)]
	n := len(raw)
	if escaped && bytes.IndexByte(raw, '\\') >= 0 {
		n, _ = unescape(&c.work, text, raw)
	} else {
		copy(text, raw)
	}
	c.spend(prepareWork * n)
	lower(text[:n])
	l := &c.lowered[c.lowers]
	if fits {
		c.keep(n)
		c.lowers++
	}
	l.doc, l.node = doc, node
	l.prepare(text[:n])
	return &l.searchText
}

// resolved is a list of values that a path with alternatives leads to, remembered
// because a classifier asks many questions about the same few places.
type resolved struct {
	from   place
	path   []byte
	places [maxAlternatives]place
	n      int
}

// resolve returns the values that the alternatives of a path lead to, null left out.
func (c *call) resolve(from place, paths []byte) []place {
	for i := range c.resolved[:c.resolves] {
		if r := &c.resolved[i]; r.from == from && bytes.Equal(r.path, paths) {
			return r.places[:r.n]
		}
	}
	r := &c.resolved[min(c.resolves, maxResolved-1)]
	c.resolves = min(c.resolves+1, maxResolved)
	r.from, r.n = from, 0
	r.path = append(r.path[:0], paths...)
	for more := true; more && r.n < maxAlternatives; {
		var path []byte
		path, paths, more = bytes.Cut(paths, []byte{'|'})
		if p, ok := c.follow(from, path, 0); ok && c.node(p).kind != kindNull {
			r.places[r.n] = p
			r.n++
		}
	}
	return r.places[:r.n]
}
