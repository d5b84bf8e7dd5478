package plugins

import (
	"unicode/utf16"
	"unicode/utf8"
)

// unescape writes the text that a JSON string's content stands for into dst, as much as
// fits, and returns how much it wrote and the text's true length. Broken escapes become
// U+FFFD. What is written never ends inside a character.
func unescape(w *work, dst, raw []byte) (written, length int) {
	put := func(b []byte) {
		w.spend(stepWork/2 + len(b)/copyWork)
		if written == length && written+len(b) <= len(dst) {
			written += copy(dst[written:], b)
		}
		length += len(b)
	}
	var one [utf8.UTFMax]byte
	for i := 0; i < len(raw); {
		b := raw[i]
		if b != '\\' {
			n := 1
			if b >= utf8.RuneSelf {
				_, n = utf8.DecodeRune(raw[i:])
			} else if written == length {
				// A run of plain bytes at once, as far as it fits.
				for n < len(raw)-i && n < len(dst)-written && raw[i+n] != '\\' && raw[i+n] < utf8.RuneSelf {
					n++
				}
			}
			put(raw[i : i+n])
			i += n
			continue
		}
		r, n := escape(raw[i:])
		put(one[:utf8.EncodeRune(one[:], r)])
		i += n
	}
	return written, length
}

// escape reads one escape sequence and returns its character and its length in bytes.
func escape(raw []byte) (rune, int) {
	if len(raw) < 2 {
		return utf8.RuneError, len(raw)
	}
	switch raw[1] {
	case '"', '\\', '/':
		return rune(raw[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, ok := hex4(raw[2:])
		if !ok {
			return utf8.RuneError, 2
		}
		if utf16.IsSurrogate(r) {
			if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
				if low, ok := hex4(raw[8:]); ok {
					if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
						return both, 12
					}
				}
			}
			return utf8.RuneError, 6
		}
		return r, 6
	}
	return utf8.RuneError, 2
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
