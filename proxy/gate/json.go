package gate

import (
	"bytes"

	"github.com/tidwall/gjson"
)

// maxDepth bounds the nesting of what is parsed here. The parser recurses, and an
// upstream's brackets must not use up the stack.
const maxDepth = 512

// brackets follows the nesting of a JSON text over any number of pieces.
type brackets struct {
	depth, deepest int
	text, escaped  bool
}

// feed goes over the next piece. It stops behind the bracket that closes the outermost
// value and says how far it has come, or 0 if there is no such bracket.
func (b *brackets) feed(p []byte) int {
	for i, c := range p {
		switch {
		case b.escaped:
			b.escaped = false
		case b.text:
			b.text = c != '"'
			b.escaped = c == '\\'
		case c == '"':
			b.text = true
		case c == '{' || c == '[':
			b.depth++
			b.deepest = max(b.deepest, b.depth)
		case c == '}' || c == ']':
			b.depth--
			if b.depth <= 0 {
				return i + 1
			}
		}
	}
	return 0
}

// valid says whether p is JSON that may be parsed.
func valid(p []byte) bool {
	// What comes behind the outermost value makes the text invalid at once, so that its
	// depth doesn't matter.
	var b brackets
	b.feed(p)
	return b.deepest <= maxDepth && gjson.ValidBytes(p)
}

// cutShort says whether p, which is no valid JSON, looks like the beginning of a valid
// text: its brackets match as far as they go, and some are open at the end.
func cutShort(p []byte) bool {
	var open []byte
	text, escaped := false, false
	for _, c := range p {
		switch {
		case escaped:
			escaped = false
		case text:
			text = c != '"'
			escaped = c == '\\'
		case c == '"':
			text = true
		case c == '{' || c == '[':
			if len(open) > maxDepth {
				return false
			}
			open = append(open, c+2) // '{'+2 is '}', '['+2 is ']'
		case c == '}' || c == ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return text || len(open) > 0
}

// truthy says whether a member is there and means something: null, false, 0 and ""
// are how providers say that there is no error.
func truthy(v gjson.Result) bool {
	switch v.Type {
	case gjson.String:
		return v.Str != ""
	case gjson.Number:
		return v.Num != 0
	}
	return v.Type == gjson.True || v.Type == gjson.JSON
}

// said says whether a value holds something that a caller would take as output: a text
// of at least one byte, at any depth. Numbers, flags, and the members that only label
// a part don't count.
func said(v gjson.Result) bool {
	switch {
	case v.Type == gjson.String:
		return v.Str != ""
	case v.Type != gjson.JSON:
		return false
	}
	found := false
	object := v.IsObject()
	v.ForEach(func(key, member gjson.Result) bool {
		if object {
			switch key.Str {
			case "type", "id", "index", "format", "role", "object":
				return true
			}
		}
		found = said(member)
		return !found
	})
	return found
}

// member says whether a raw frame seems to have a member with a value other than null.
// The name is given without its first letters where those are common, and with its
// closing quote: quotes within texts are escaped, so that this finds no text, except
// one that is just this word, which counts too.
func member(raw []byte, tail string) bool {
	for {
		i := bytes.Index(raw, []byte(tail))
		if i < 0 {
			return false
		}
		raw = bytes.TrimLeft(raw[i+len(tail):], " \t")
		if len(raw) == 0 || raw[0] != ':' {
			return true
		}
		raw = bytes.TrimLeft(raw[1:], " \t")
		if len(raw) == 0 || raw[0] != 'n' {
			return true
		}
	}
}
