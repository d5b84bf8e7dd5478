package plugins

import (
	"bytes"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// A handle names one value of one document: this bit, the document's slot and the node.
const (
	handleBit  = 1 << 30
	slotShift  = 16
	nodeMask   = 1<<slotShift - 1
	noSlot     = -1
	maxSegment = 32 // segments of one path
)

// place is a value in a document.
type place struct {
	slot int32
	node uint32
}

func (p place) handle() int32 { return handleBit | p.slot<<slotShift | int32(p.node) }

// root finds the value that a document number of the ABI stands for.
func (c *call) root(doc uint64) (place, bool) {
	d := int32(uint32(doc))
	if d >= 0 && d&handleBit != 0 {
		p := place{slot: (d &^ handleBit) >> slotShift, node: uint32(d & nodeMask)}
		if int(p.slot) >= c.used || int(p.node) >= len(c.docs[p.slot].nodes) {
			panic(abuse("a handle was passed that json_at never returned"))
		}
		return p, true
	}
	slot := c.document(d)
	if slot == noSlot || len(c.docs[slot].nodes) == 0 {
		return place{}, false
	}
	return place{slot: slot}, true
}

// document returns the slot of the document with the given number, indexing it when it
// is first asked for.
func (c *call) document(d int32) int32 {
	if d < docFailing {
		return noSlot
	}
	for i := range c.used {
		if c.origins[i] == d {
			return int32(i)
		}
	}
	text, ok := c.documentText(d)
	if !ok {
		return noSlot
	}
	return c.index(d, 0, text)
}

func (c *call) index(origin, inside int32, text []byte) int32 {
	if c.used == maxDocs {
		return noSlot
	}
	slot := c.used
	c.used++
	c.origins[slot], c.inside[slot] = origin, inside
	c.docs[slot].index(&c.work, text)
	return int32(slot)
}

// documentText returns the text of a body or a frame's data.
func (c *call) documentText(d int32) ([]byte, bool) {
	if d == docFailing {
		if len(c.ev.Frames) == 0 {
			return c.ev.Body, true
		}
		d = c.failingFrame()
	}
	if int(d) >= len(c.ev.Frames) {
		return nil, false
	}
	return frameData(&c.work, c.ev.Frames[d]), true
}

// failingFrame is the last frame whose data looks like a JSON text, or else the last
// frame with any data: "[DONE]" and comments say nothing.
func (c *call) failingFrame() int32 {
	if !c.searched {
		c.failing, c.searched = c.searchFailing(), true
	}
	return c.failing
}

func (c *call) searchFailing() int32 {
	last := len(c.ev.Frames) - 1
	found := -1
	for i := last; i >= 0 && i > last-maxLookBack; i-- {
		data := frameData(&c.work, c.ev.Frames[i])
		if len(data) == 0 {
			continue
		}
		if data[0] == '{' || data[0] == '[' && !bytes.Equal(data, []byte("[DONE]")) {
			return int32(i)
		}
		if found < 0 {
			found = i
		}
	}
	return int32(max(found, 0))
}

// maxLookBack is how many frames at a stream's end are looked at for the failing one.
const maxLookBack = 16

// find follows a path, or the first of its alternatives that leads to a value other
// than null.
func (c *call) find(doc, ptr, length uint64) (place, bool) {
	from, ok := c.root(doc)
	if !ok {
		return place{}, false
	}
	paths := c.guestText(ptr, length, maxPath)
	for more := true; more; {
		var path []byte
		path, paths, more = bytes.Cut(paths, []byte{'|'})
		if p, ok := c.follow(from, path, 0); ok && c.node(p).kind != kindNull {
			return p, true
		}
	}
	return place{}, false
}

func (c *call) node(p place) *jsonNode { return &c.docs[p.slot].nodes[p.node] }

// follow walks one path from a value: keys, positions, '*' for the first element or
// member from which the rest leads on, "@json" for the text inside a string.
func (c *call) follow(p place, path []byte, depth int) (place, bool) {
	if len(path) == 0 {
		return p, true
	}
	if depth == maxSegment {
		return p, false
	}
	c.spend(stepWork)
	segment, rest, _ := bytes.Cut(path, []byte{'.'})
	if string(segment) == "@json" {
		q, ok := c.embedded(p)
		if !ok {
			return p, false
		}
		return c.follow(q, rest, depth+1)
	}
	d := &c.docs[p.slot]
	n := &d.nodes[p.node]
	if n.kind != kindObject && n.kind != kindArray {
		return p, false
	}
	position, isPosition := parsePosition(segment)
	if n.kind == kindArray && !isPosition && string(segment) != "*" {
		return p, false
	}
	at := 0
	for i, end := p.node+1, n.next; i < end; at++ {
		child := d.nodes[i]
		c.spend(stepWork)
		q := place{p.slot, i}
		switch {
		case string(segment) == "*":
			if found, ok := c.follow(q, rest, depth+1); ok && c.node(found).kind != kindNull {
				return found, true
			}
			d = &c.docs[p.slot]
		case n.kind == kindArray && at == position,
			n.kind == kindObject && bytes.Equal(d.text[child.keyStart:child.keyEnd], segment):
			return c.follow(q, rest, depth+1)
		}
		i = child.next
	}
	return p, false
}

func parsePosition(segment []byte) (int, bool) {
	if len(segment) == 0 || len(segment) > 4 {
		return 0, false
	}
	n := 0
	for _, b := range segment {
		if b < '0' || b > '9' {
			return 0, false
		}
		n = n*10 + int(b-'0')
	}
	return n, true
}

// embedded returns the root of the JSON text that a string holds.
func (c *call) embedded(p place) (place, bool) {
	n := c.node(p)
	if n.kind != kindString {
		return p, false
	}
	for i := range c.used {
		if c.origins[i] == docInside && c.inside[i] == p.handle() {
			return place{slot: int32(i)}, len(c.docs[i].nodes) > 0
		}
	}
	raw := c.docs[p.slot].raw(p.node)
	if !mayHoldJSON(raw) {
		return p, false
	}
	room := c.take(len(raw))
	if room == nil {
		return p, false
	}
	written, _ := unescape(&c.work, room[:len(raw)], raw)
	text := c.keep(written)
	slot := c.index(docInside, p.handle(), text)
	if slot == noSlot {
		return p, false
	}
	return place{slot: slot}, len(c.docs[slot].nodes) > 0
}

// mayHoldJSON says whether a string's content can begin an object or an array: nearly all
// strings are sentences, and need not be taken apart to see that.
func mayHoldJSON(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	switch raw[0] {
	case '{', '[', ' ', '\t', '\\', 0xef: // an escape, or the first byte of a byte order mark
		return true
	}
	return false
}

func (c *call) jsonState(stack []uint64) {
	d := int32(uint32(stack[0]))
	if d >= 0 && d&handleBit != 0 {
		p, _ := c.root(stack[0])
		give(stack, c.docs[p.slot].state)
		return
	}
	slot := c.document(d)
	if slot == noSlot {
		give(stack, jsonNone)
		return
	}
	give(stack, c.docs[slot].state)
}

func (c *call) jsonAt(stack []uint64) {
	p, ok := c.find(stack[0], stack[1], stack[2])
	if !ok {
		give(stack, absent)
		return
	}
	give(stack, p.handle())
}

func (c *call) jsonKind(stack []uint64) {
	p, ok := c.find(stack[0], stack[1], stack[2])
	if ok {
		give(stack, int32(c.node(p).kind))
		return
	}
	// Null counts as absent elsewhere; here the difference can be seen.
	from, ok := c.root(stack[0])
	paths := c.guestText(stack[1], stack[2], maxPath)
	for more := ok; more; {
		var path []byte
		path, paths, more = bytes.Cut(paths, []byte{'|'})
		if _, ok := c.follow(from, path, 0); ok {
			give(stack, kindNull)
			return
		}
	}
	give(stack, absent)
}

func (c *call) json(stack []uint64) {
	p, ok := c.find(stack[0], stack[1], stack[2])
	if !ok {
		give(stack, absent)
		return
	}
	raw := c.docs[p.slot].raw(p.node)
	buf := c.guestBuffer(stack[3], stack[4])
	n := len(raw)
	if c.node(p).kind == kindString {
		_, n = unescape(&c.work, buf, raw)
	} else {
		c.spend(copy(buf, raw) / copyWork)
	}
	give(stack, int32(min(n, math.MaxInt32)))
}

func (c *call) jsonInt(stack []uint64) {
	v := int64(math.MinInt64)
	if p, ok := c.find(stack[0], stack[1], stack[2]); ok {
		if n, ok := c.docs[p.slot].integer(p.node); ok {
			v = n
		}
	}
	stack[0] = api.EncodeI64(v)
}

// textOf returns a value's text in lower case, at most maxSearch bytes.
func (c *call) textOf(p place) *searchText {
	return c.lowerOf(p.slot, int32(p.node), c.docs[p.slot].raw(p.node), c.node(p).kind == kindString)
}

// places returns the values that the alternatives of a path lead to.
func (c *call) places(doc, ptr, length uint64) []place {
	from, ok := c.root(doc)
	if !ok {
		return nil
	}
	return c.resolve(from, c.guestText(ptr, length, maxPath))
}

func (c *call) jsonIs(stack []uint64) {
	words := c.guestText(stack[3], stack[4], maxText)
	for _, p := range c.places(stack[0], stack[1], stack[2]) {
		c.spend(len(words))
		if i := isAny(c.textOf(p).text, words); i != absent {
			give(stack, i)
			return
		}
	}
	give(stack, absent)
}

func (c *call) jsonContains(stack []uint64) {
	phrases := c.phrasesOf(stack[3], stack[4])
	for _, p := range c.places(stack[0], stack[1], stack[2]) {
		if i := c.textOf(p).findAny(&c.work, phrases); i != absent {
			give(stack, i)
			return
		}
	}
	give(stack, absent)
}

func (c *call) jsonMatches(stack []uint64) {
	set := c.phraseSetOf(stack[3], stack[4])
	var found uint64
	for _, p := range c.places(stack[0], stack[1], stack[2]) {
		found |= c.textOf(p).matches(&c.work, set)
	}
	stack[0] = found
}

func (c *call) jsonDuration(stack []uint64) {
	p, ok := c.find(stack[0], stack[1], stack[2])
	var d time.Duration
	if ok {
		d, ok = c.read(string(c.textFor(p)), uint32(stack[3]))
	}
	giveWait(stack, d, ok)
}

// textFor returns at most maxSearch bytes of a value's text as it is written.
func (c *call) textFor(p place) []byte {
	raw := c.docs[p.slot].raw(p.node)
	raw = raw[:min(len(raw), maxSearch)]
	if c.node(p).kind != kindString || bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	out := make([]byte, len(raw))
	written, _ := unescape(&c.work, out, raw)
	return out[:written]
}

// contains searches a document's text as it stands, JSON or not.
func (c *call) contains(stack []uint64) {
	d := int32(uint32(stack[0]))
	phrases := c.phrasesOf(stack[1], stack[2])
	if d >= 0 && d&handleBit != 0 {
		p, _ := c.root(stack[0])
		give(stack, c.textOf(p).findAny(&c.work, phrases))
		return
	}
	raw, ok := c.documentText(max(d, docFailing))
	if !ok {
		give(stack, absent)
		return
	}
	give(stack, c.lowerOf(noSlot, d, raw, false).findAny(&c.work, phrases))
}
