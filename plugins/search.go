package plugins

import "bytes"

// maxSearch is how much of a text a search looks at, from its beginning. Tell-tale words
// stand early, and a body of any size must not make a search slow.
const maxSearch = 8 << 10

// maxGap is how many bytes a '*' in a phrase may stand for.
const maxGap = 96

// findAny returns the number of the first alternative of phrases that stands in text, or
// -1. Alternatives are separated by '|', and '*' inside one stands for up to maxGap
// bytes. The text must be in lower case already.
func findAny(text, phrases []byte) int32 {
	for i := int32(0); ; i++ {
		phrase, rest, more := bytes.Cut(phrases, []byte{'|'})
		if len(phrase) > 0 && hasPhrase(text, phrase) {
			return i
		}
		if !more {
			return absent
		}
		phrases = rest
	}
}

func hasPhrase(text, phrase []byte) bool {
	head, tail, more := bytes.Cut(phrase, []byte{'*'})
	if !more {
		return bytes.Contains(text, phrase)
	}
	for {
		i := bytes.Index(text, head)
		if i < 0 {
			return false
		}
		after := text[i+len(head):]
		if hasTail(after, tail) {
			return true
		}
		if len(after) == 0 {
			return false
		}
		text = text[i+1:]
	}
}

// hasTail says whether the parts of tail follow in text, each within maxGap bytes of
// the end of the part before. Taking the nearest place for a part can miss a match of
// the next one; the phrases of classifiers have one star.
func hasTail(text, tail []byte) bool {
	for {
		part, rest, more := bytes.Cut(tail, []byte{'*'})
		i := bytes.Index(text[:min(len(text), maxGap+len(part))], part)
		if i < 0 {
			return false
		}
		if !more {
			return true
		}
		text, tail = text[i+len(part):], rest
	}
}

// isAny returns the number of the first alternative that is the whole text, or -1.
func isAny(text, alternatives []byte) int32 {
	for i := int32(0); ; i++ {
		one, rest, more := bytes.Cut(alternatives, []byte{'|'})
		if bytes.Equal(one, text) {
			return i
		}
		if !more {
			return absent
		}
		alternatives = rest
	}
}

// lower writes text in lower case (ASCII letters only) over itself.
func lower(text []byte) {
	for i, b := range text {
		if b >= 'A' && b <= 'Z' {
			text[i] = b + ('a' - 'A')
		}
	}
}
