package plugins

import (
	"bytes"
	"math"
)

// Limits of the JSON index. An error body has some ten values; what goes beyond the
// limits is checked for its grammar but can't be looked up.
const (
	maxJSONText  = 1 << 20 // bytes that are read of one text
	maxJSONNodes = 512     // values that can be looked up in one text
	maxJSONDepth = 64      // open objects and arrays; a deeper text counts as bad
)

// jsonNode is one indexed value. Positions are offsets into the document's text; those
// of strings and keys are without the quotes.
type jsonNode struct {
	keyStart, keyEnd uint32
	start, end       uint32
	next             uint32 // the node after this one and all that is inside it
	kind             uint8
	keyed            bool // a member of an object
}

// jsonDoc is an index over one JSON text, made in one pass without a copy. The nodes
// stand in the text's order, each followed by what is inside it.
type jsonDoc struct {
	text  []byte
	nodes []jsonNode
	state int32
}

// frame of the scanner's own stack.
type jsonOpen struct {
	node   int32 // -1: not indexed
	object bool
	begun  bool // a member or element has been read
}

// index reads text and replaces whatever the document held before.
func (d *jsonDoc) index(w *work, text []byte) {
	d.text, d.nodes, d.state = text, d.nodes[:0], jsonNone
	long := len(text) > maxJSONText
	if long {
		text = text[:maxJSONText]
	}
	s := jsonScanner{doc: d, text: text, work: w}
	s.space()
	if s.pos >= len(text) || (text[s.pos] != '{' && text[s.pos] != '[') {
		return
	}
	switch s.run() {
	case scanDone:
		s.space()
		d.state = jsonComplete
		if s.pos < len(text) {
			d.state = jsonBad
		} else if long {
			d.state = jsonUnjudged
		}
	case scanShort:
		d.state = jsonTruncated
		if long {
			d.state = jsonUnjudged
		}
	default:
		d.state = jsonBad
	}
	// What was still open when the text ended ends with it.
	for i := range d.nodes {
		if n := &d.nodes[i]; n.next == 0 {
			n.next, n.end = uint32(len(d.nodes)), uint32(len(text))
		}
	}
}

type scanResult uint8

const (
	scanDone scanResult = iota
	scanShort
	scanBad
)

type jsonScanner struct {
	doc  *jsonDoc
	text []byte
	pos  int
	work *work
	paid int // the position up to which the work is paid
	open [maxJSONDepth]jsonOpen
	n    int // open ones
}

func (s *jsonScanner) space() {
	if s.pos == 0 && bytes.HasPrefix(s.text, []byte("\xef\xbb\xbf")) {
		s.pos = 3
	}
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek skips space and returns the next byte.
func (s *jsonScanner) peek() (byte, bool) {
	s.space()
	if s.pos >= len(s.text) {
		return 0, false
	}
	return s.text[s.pos], true
}

// run reads one object or array to its end. It keeps its own stack, so that nesting
// costs no recursion.
func (s *jsonScanner) run() scanResult {
	if r := s.value(0, 0, false); r != scanDone {
		return r
	}
	for s.n > 0 {
		s.work.spend(stepWork + s.pos - s.paid)
		s.paid = s.pos
		top := s.open[s.n-1]
		b, ok := s.peek()
		if !ok {
			return scanShort
		}
		closing := byte(']')
		if top.object {
			closing = '}'
		}
		first := !s.open[s.n-1].begun
		if b == closing {
			s.pos++
			s.close()
			continue
		}
		if !first {
			if b != ',' {
				return scanBad
			}
			s.pos++
		}
		s.open[s.n-1].begun = true
		if r := s.member(top.object); r != scanDone {
			return r
		}
	}
	return scanDone
}

func (s *jsonScanner) member(object bool) scanResult {
	var keyStart, keyEnd int
	if object {
		b, ok := s.peek()
		if !ok {
			return scanShort
		}
		if b != '"' {
			return scanBad
		}
		var r scanResult
		if keyStart, keyEnd, r = s.str(); r != scanDone {
			return r
		}
		if b, ok = s.peek(); !ok {
			return scanShort
		}
		if b != ':' {
			return scanBad
		}
		s.pos++
	}
	return s.value(keyStart, keyEnd, object)
}

// value reads a scalar or opens an object or array.
func (s *jsonScanner) value(keyStart, keyEnd int, keyed bool) scanResult {
	b, ok := s.peek()
	if !ok {
		return scanShort
	}
	node := jsonNode{keyStart: uint32(keyStart), keyEnd: uint32(keyEnd), keyed: keyed, start: uint32(s.pos)}
	switch {
	case b == '{' || b == '[':
		node.kind = kindArray
		if b == '{' {
			node.kind = kindObject
		}
		if s.n == maxJSONDepth {
			return scanBad
		}
		s.open[s.n] = jsonOpen{node: s.add(node), object: b == '{'}
		s.n++
		s.pos++
		return scanDone
	case b == '"':
		start, end, r := s.str()
		node.kind, node.start, node.end = kindString, uint32(start), uint32(end)
		s.leaf(node)
		return r
	case b == '-' || b >= '0' && b <= '9':
		for s.pos < len(s.text) && isNumberByte(s.text[s.pos]) {
			s.pos++
		}
		node.kind, node.end = kindNumber, uint32(s.pos)
		s.leaf(node)
		return scanDone
	}
	return s.literal(node)
}

func isNumberByte(b byte) bool {
	return b >= '0' && b <= '9' || b == '-' || b == '+' || b == '.' || b == 'e' || b == 'E'
}

func (s *jsonScanner) literal(node jsonNode) scanResult {
	rest := s.text[s.pos:]
	for _, l := range [...]struct {
		text string
		kind uint8
	}{{"null", kindNull}, {"true", kindTrue}, {"false", kindFalse}} {
		if len(rest) >= len(l.text) && string(rest[:len(l.text)]) == l.text {
			s.pos += len(l.text)
			node.kind, node.end = l.kind, uint32(s.pos)
			s.leaf(node)
			return scanDone
		}
		if len(rest) < len(l.text) && string(rest) == l.text[:len(rest)] {
			s.pos = len(s.text)
			return scanShort
		}
	}
	return scanBad
}

// str reads a string and returns where its content begins and ends.
func (s *jsonScanner) str() (start, end int, r scanResult) {
	s.pos++
	start = s.pos
	for {
		i := bytes.IndexByte(s.text[s.pos:], '"')
		if i < 0 {
			s.pos = len(s.text)
			return start, s.pos, scanShort
		}
		s.pos += i
		slashes := 0
		for j := s.pos - 1; j >= start && s.text[j] == '\\'; j-- {
			slashes++
		}
		s.pos++
		if slashes%2 == 0 {
			return start, s.pos - 1, scanDone
		}
	}
}

// add indexes a node unless there are too many, or what it is inside isn't indexed.
func (s *jsonScanner) add(n jsonNode) int32 {
	full := len(s.doc.nodes) >= maxJSONNodes
	if full || s.n > 0 && s.open[s.n-1].node < 0 {
		return -1
	}
	s.doc.nodes = append(s.doc.nodes, n)
	return int32(len(s.doc.nodes) - 1)
}

func (s *jsonScanner) leaf(n jsonNode) {
	if i := s.add(n); i >= 0 {
		s.doc.nodes[i].next = uint32(i) + 1
	}
}

func (s *jsonScanner) close() {
	s.n--
	if i := s.open[s.n].node; i >= 0 {
		n := &s.doc.nodes[i]
		n.end, n.next = uint32(s.pos), uint32(len(s.doc.nodes))
	}
}

// raw returns a value as it stands in the text, strings without their quotes.
func (d *jsonDoc) raw(i uint32) []byte {
	n := &d.nodes[i]
	return d.text[n.start:n.end]
}

// integer reads a whole number, also one inside a string: providers write codes both
// ways.
func (d *jsonDoc) integer(i uint32) (int64, bool) {
	if k := d.nodes[i].kind; k != kindNumber && k != kindString {
		return 0, false
	}
	raw := d.raw(i)
	if len(raw) == 0 || len(raw) > 19 {
		return 0, false
	}
	negative := raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	var v int64
	for _, b := range raw {
		if b < '0' || b > '9' || v > (math.MaxInt64-9)/10 {
			return 0, false
		}
		v = v*10 + int64(b-'0')
	}
	if len(raw) == 0 {
		return 0, false
	}
	if negative {
		v = -v
	}
	return v, true
}
