package hcl

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/agext/levenshtein"
)

var (
	// sensitiveWord finds the words of a comment or a string.
	sensitiveWord = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	// credential finds credentials that stand where none belongs: a vendor's key by
	// its prefix, the user and password or the query of a URL, which may be signed, and a
	// private key.
	credential = regexp.MustCompile(`\b(?:sk|pk|rk|gsk|xai|fg)-[A-Za-z0-9_\-]{6,}|\bAIza[A-Za-z0-9_\-]{10,}|://[^/\s"@]+@|://[^\s"?]+\?[^\s"]+|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END|\z)`)
)

// mask returns a copy of a source that may be shown. It has the same length and lines,
// so that places stay true. It works on the text, not on what the parser made of it:
// the source of a syntax error must not show a secret either. In doubt it hides more of
// a line; what it hides beyond a line ends with the value, or the block of a key.
func mask(src []byte) []byte {
	m := masking{src: src, hidden: make([]bool, len(src))}
	for _, at := range credential.FindAllIndex(src, -1) {
		m.hide(at[0], at[1])
	}
	for i := 0; i < len(src); {
		if end := commentEnd(src, i); end > i {
			i = m.text(i, end, false)
			continue
		}
		switch c := src[i]; {
		case c == '"':
			i = m.text(i, stringEnd(src, i), true)
		case isWordByte(c):
			end := wordEnd(src, i)
			if i == 0 || src[i-1] != '.' { // a name behind a dot is a reference's
				end = m.name(string(src[i:end]), end, false)
			}
			i = end
		default:
			i++
		}
	}
	return cover(src, m.hidden)
}

// masking is a source on its way to a masked one.
type masking struct {
	src    []byte
	hidden []bool
}

func (m *masking) hide(from, to int) {
	for from < to && bytes.IndexByte([]byte(" \t\"=:"), m.src[from]) >= 0 {
		from++
	}
	if from < to && bytes.IndexByte([]byte("}])"), m.src[to-1]) >= 0 {
		to-- // it may stand on a line of its own, where it shows how the file goes on
	}
	for i := from; i < to; i++ {
		m.hidden[i] = true
	}
}

// name judges a name that ends at end, hides what belongs to it, and returns where to go
// on. A quoted one is a property in JSON or in an object.
func (m *masking) name(word string, end int, quoted bool) int {
	to := end
	switch {
	case isSensitive(word), (word == "key" || word == "keys") && isAssigned(m.src, end):
		to = valueEnd(m.src, end, quoted)
	case word == "key" || word == "keys":
		// The body of a key block: whatever it holds, even under another name.
		if open := blockOpen(m.src, end); open >= 0 {
			to = bracketEnd(m.src, open)
			end = open + 1
		}
	}
	m.hide(end, to)
	return max(end, to)
}

// text judges the words of a comment or a string, each with the rest of its line: it may
// be a setting that was commented out, or one whose quotes are wrong. It returns where to
// go on.
func (m *masking) text(from, to int, quoted bool) int {
	hiddenTo := from
	for _, at := range sensitiveWord.FindAllIndex(m.src[from:to], -1) {
		word, end := string(m.src[from+at[0]:from+at[1]]), from+at[1]
		whole := quoted && at[0] == 1 && end == to-1 && m.src[end] == '"'
		switch {
		case end < hiddenTo:
		case whole && isAssigned(m.src, end):
			return max(to, m.name(word, end, true))
		case !isSensitive(word):
		case !quoted, isAssigned(m.src, end), whole && from > 0 && m.src[from-1] == '(': // env("NAME", "default")
			hiddenTo = lineEnd(m.src, end)
			m.hide(end, hiddenTo)
		}
	}
	return to
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

func lineEnd(src []byte, i int) int {
	if n := bytes.IndexByte(src[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(src)
}

// isAssigned says whether an equals sign or a colon follows a word that ends at i.
func isAssigned(src []byte, i int) bool {
	i = skip(src, i, " \t\r\n\"")
	return i < len(src) && (src[i] == '=' || src[i] == ':')
}

// maxHeader bounds, in bytes, how far behind the word key its block may open.
const maxHeader = 1024

// blockOpen returns the index of the brace that opens the block whose type ends at i,
// or -1 if no block follows on the line.
func blockOpen(src []byte, i int) int {
	rest := src[i:min(len(src), i+maxHeader)]
	open := bytes.IndexByte(rest[:lineEnd(rest, 0)], '{')
	if open < 0 {
		return -1
	}
	return i + open
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
