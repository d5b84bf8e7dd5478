package hcl

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/agext/levenshtein"
)

var (
	// sensitiveWord finds words after which a credential may stand.
	sensitiveWord = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	// credential finds credentials that stand where none belongs: a vendor's key by
	// its prefix, and the user and password of a URL.
	credential = regexp.MustCompile(`\b(?:sk|pk|rk|gsk|xai|fg)-[A-Za-z0-9_\-]{6,}|\bAIza[A-Za-z0-9_\-]{10,}|://[^/\s"@]+@`)
)

// mask returns a copy of a source that may be shown. It has the same length and lines,
// so that places stay true. It works on the text, not on what the parser made of it:
// the source of a syntax error must not show a secret either. In doubt it hides more.
func mask(src []byte) []byte {
	hidden := make([]bool, len(src))
	hide := func(from, to int) {
		for from < to && bytes.IndexByte([]byte(" \t\"=:"), src[from]) >= 0 {
			from++
		}
		for i := from; i < to; i++ {
			hidden[i] = true
		}
	}
	for _, at := range credential.FindAllIndex(src, -1) {
		hide(at[0], at[1])
	}
	for _, at := range sensitiveWord.FindAllIndex(src, -1) {
		word := string(src[at[0]:at[1]])
		switch {
		case isSensitive(word):
			hide(at[1], valueEnd(src, at[1]))
		case word == "key" || word == "keys":
			// The body of a key block: whatever it holds, even under another name.
			if open := blockOpen(src, at[1]); open >= 0 {
				hide(open+1, blockEnd(src, open))
			} else if isAssigned(src, at[1]) {
				hide(at[1], valueEnd(src, at[1]))
			}
		}
	}
	return cover(src, hidden)
}

// isSensitive says whether a word names a credential, or was meant to.
func isSensitive(word string) bool {
	word = strings.ToLower(word)
	for _, part := range []string{"secret", "token", "password", "passwd", "credential", "api_key", "apikey", "key_sha256"} {
		if strings.Contains(word, part) {
			return true
		}
	}
	if len(word) > maxNameBytes {
		return false
	}
	for _, part := range strings.Split(word, "_") {
		for meant, slips := range map[string]int{"secret": 2, "password": 2, "token": 1} {
			if len(part) >= len(meant)-slips && len(part) <= len(meant)+slips && levenshtein.Distance(part, meant, nil) <= slips {
				return true
			}
		}
	}
	return false
}

// valueEnd returns where the value that follows from i ends: with the line, or with the
// file if the line leaves something open.
func valueEnd(src []byte, i int) int {
	for {
		end := lineEnd(src, i)
		rest := bytes.Trim(src[i:end], " \t\r\"=:")
		if len(rest) == 0 && end < len(src) {
			i = end + 1 // the value is on the next line
			continue
		}
		if bytes.Contains(rest, []byte("<<")) || unclosed(rest) {
			return len(src)
		}
		return end
	}
}

func lineEnd(src []byte, i int) int {
	if n := bytes.IndexByte(src[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(src)
}

func unclosed(text []byte) bool {
	level := 0
	for _, c := range text {
		switch c {
		case '{', '[', '(':
			level++
		case '}', ']', ')':
			level--
		}
	}
	return level > 0
}

// isAssigned says whether an equals sign or a colon follows a word that ends at i.
func isAssigned(src []byte, i int) bool {
	rest := bytes.TrimLeft(src[i:lineEnd(src, i)], " \t\"")
	return len(rest) > 0 && (rest[0] == '=' || rest[0] == ':')
}

// blockOpen returns the index of the brace that opens the block whose type ends at i,
// or -1 if no block follows on the line. JSON writes a colon before the brace.
func blockOpen(src []byte, i int) int {
	end := lineEnd(src, i)
	open := bytes.IndexByte(src[i:end], '{')
	if open < 0 {
		return -1
	}
	return i + open
}

// blockEnd returns the index of the brace that closes the one at open, or the end of
// the source.
func blockEnd(src []byte, open int) int {
	level := 0
	for i := open; i < len(src); i++ {
		switch src[i] {
		case '"':
			i = stringEnd(src, i) - 1
		case '{':
			level++
		case '}':
			if level--; level == 0 {
				return i
			}
		}
	}
	return len(src)
}

// cover replaces each line, from its first hidden byte on, by three stars and blanks.
// The rest of the line goes, too, so that the length of a secret doesn't show.
func cover(src []byte, hidden []bool) []byte {
	shown := bytes.Clone(src)
	covering, stars := false, 0
	for i, c := range src {
		if c == '\n' {
			covering, stars = false, 0
			continue
		}
		covering = covering || hidden[i] && c != '\r' && (stars > 0 || c != ' ' && c != '\t')
		switch {
		case !covering:
		case stars < 3:
			shown[i] = '*'
			stars++
		default:
			shown[i] = ' '
		}
	}
	return shown
}
