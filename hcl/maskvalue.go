package hcl

import (
	"bytes"
	"regexp"
)

// valueEnd returns where the value ends that follows a name which ends at i: with its
// line, unless brackets, a heredoc or an operator carry it on, or it is on a later line.
// A comma carries on only what has no quotes around its name: in JSON it ends a value.
func valueEnd(src []byte, i int, quoted bool) int {
	if quoted && i < len(src) && src[i] == '"' { // the name's own
		i++
	}
	next := skip(src, i, " \t\r\n=:")
	if between := src[i:next]; bytes.IndexByte(between, '\n') >= 0 {
		assigned := bytes.ContainsAny(between, "=:")
		if next == len(src) || !assigned && src[next] != '"' || isRootBlock(src, next) {
			return lineEnd(src, i)
		}
	}
	i = next
	last := byte(0) // of the value that isn't blank
	for i < len(src) {
		if end := commentEnd(src, i); end > i {
			i = end
			continue
		}
		switch c := src[i]; c {
		case '\n':
			next := skip(src, i, " \t\r\n")
			if next == len(src) || isRootBlock(src, next) {
				return i
			}
			operator := bytes.IndexByte([]byte("+-*/%?:&|=<>!"), last) >= 0
			another := src[next] == '"' && (last != ',' || !quoted)
			if !operator && !another {
				return i
			}
			i = next
			continue
		case ',':
			if quoted {
				return i
			}
			last = c
			i++
		case '"':
			i, last = stringEnd(src, i), c
		case '{', '[', '(':
			i, last = bracketEnd(src, i), c
		case '}', ']', ')':
			return i // of what the value is in
		case '<':
			i, last = heredocEnd(src, i), c
			if src[i-1] == '\n' {
				return i - 1
			}
		case ' ', '\t', '\r':
			i++
		default:
			last = c
			i++
		}
	}
	return len(src)
}

// bracketEnd returns the index after the bracket that closes the one at open. Brackets
// that were never closed, or with another kind, end there, and at the latest before the
// next block of the file.
func bracketEnd(src []byte, open int) int {
	var closing []byte
	for i := open; i < len(src); {
		if end := commentEnd(src, i); end > i {
			i = end
			continue
		}
		switch c := src[i]; c {
		case '"':
			i = stringEnd(src, i)
			continue
		case '<':
			i = heredocEnd(src, i)
			continue
		case '{':
			closing = append(closing, '}')
		case '[':
			closing = append(closing, ']')
		case '(':
			closing = append(closing, ')')
		case '}', ']', ')':
			n := len(closing) - 1
			if closing[n] != c {
				return i
			}
			if closing = closing[:n]; n == 0 {
				return i + 1
			}
		case '\n':
			if isRootBlock(src, i+1) {
				return i
			}
		}
		i++
	}
	return len(src)
}

// heredocStart is how a heredoc begins.
var heredocStart = regexp.MustCompile(`^<<-?([A-Za-z_][A-Za-z0-9_-]*)\r?\n`)

// heredocEnd returns the index after the heredoc that begins at i, or after the byte at i
// if none does. One without an end goes to the end of the source, as for the parser.
func heredocEnd(src []byte, i int) int {
	m := heredocStart.FindSubmatchIndex(src[i:min(len(src), i+256)])
	if m == nil {
		return i + 1
	}
	mark := src[i+m[2] : i+m[3]]
	for at := i + m[1]; at < len(src); {
		end := lineEnd(src, at)
		if bytes.Equal(bytes.TrimSpace(src[at:end]), mark) {
			return min(end+1, len(src))
		}
		at = end + 1
	}
	return len(src)
}

// commentEnd returns the index after the comment that begins at i, or i if none does.
func commentEnd(src []byte, i int) int {
	switch {
	case src[i] == '#', bytes.HasPrefix(src[i:], []byte("//")):
		return lineEnd(src, i)
	case bytes.HasPrefix(src[i:], []byte("/*")):
		if n := bytes.Index(src[i:], []byte("*/")); n >= 0 {
			return i + n + 2
		}
	}
	return i
}

// isRootBlock says whether a line that begins at i begins a block of the file: what was
// open before it was left open by mistake.
func isRootBlock(src []byte, i int) bool {
	if i > 0 && src[i-1] != '\n' {
		return false
	}
	end := wordEnd(src, i)
	rest := bytes.TrimLeft(src[end:lineEnd(src, end)], " \t")
	return rootShape.isBlock(string(src[i:end])) && len(rest) > 0 && (rest[0] == '{' || rest[0] == '"')
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// wordEnd returns where the word that begins at i ends.
func wordEnd(src []byte, i int) int {
	for i < len(src) && isWordByte(src[i]) {
		i++
	}
	return i
}

// skip returns the index of the first byte from i on that isn't one of those.
func skip(src []byte, i int, those string) int {
	for i < len(src) && bytes.IndexByte([]byte(those), src[i]) >= 0 {
		i++
	}
	return i
}
