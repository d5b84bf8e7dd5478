package strictjson

import (
	"bytes"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is a string of the text, quotes left out, as it is written there.
type Text struct {
	Raw     []byte
	Escaped bool // Raw has escape sequences
}

// Bytes returns the text with its escapes resolved: a part of the scanner's text if
// there are none.
func (t Text) Bytes() []byte {
	if !t.Escaped {
		return t.Raw
	}
	return t.Append(nil)
}

// Is says whether the text is that of want, escapes resolved.
func (t Text) Is(want string) bool {
	if !t.Escaped {
		return string(t.Raw) == want
	}
	// No escape is shorter than what it stands for.
	return len(t.Raw) > len(want) && string(t.Append(nil)) == want
}

// String returns the text with its escapes resolved.
func (t Text) String() string {
	return string(t.Bytes())
}

// EqualFold is [bytes.EqualFold] with the text.
func (t Text) EqualFold(want string) bool {
	raw := t.Bytes()
	// The longest fold of an ASCII letter has three bytes.
	return len(raw) >= len(want) && len(raw) <= 3*len(want) && bytes.EqualFold(raw, []byte(want))
}

// plain returns where the run of bytes from i on ends that mean themselves in a string:
// at a quote, a backslash or a control character, or with b. Wide is set if there may
// be bytes outside ASCII in it.
//
// It looks at eight bytes at a time. A subtraction borrows only from bytes above one
// that is found, so the lowest mark of each mask is always true.
func plain(b []byte, i int) (end int, wide bool) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	var seen uint64
	for i+8 <= len(b) {
		p := b[i : i+8 : i+8]
		w := uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 |
			uint64(p[4])<<32 | uint64(p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
		quote, slash := w^('"'*ones), w^('\\'*ones)
		found := ((quote-ones)&^quote | (slash-ones)&^slash | (w-' '*ones)&^w) & tops
		seen |= w
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8, seen&tops != 0
		}
		i += 8
	}
	wide = seen&tops != 0
	for ; i < len(b); i++ {
		c := b[i]
		if c == '"' || c == '\\' || c < ' ' {
			break
		}
		wide = wide || c >= utf8.RuneSelf
	}
	return i, wide
}

func hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// Append appends the text with its escapes resolved. A lone surrogate becomes U+FFFD.
func (t Text) Append(dst []byte) []byte {
	b := t.Raw
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		i++
		switch c = b[i]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := unit(b[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				low := rune(0)
				if len(b) > i+6 && b[i+1] == '\\' && b[i+2] == 'u' {
					low = unit(b[i+3:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
	}
	return dst
}

// unit reads the four hexadecimal digits of an escape.
func unit(b []byte) rune {
	return rune(hex(b[0])<<12 | hex(b[1])<<8 | hex(b[2])<<4 | hex(b[3]))
}
