package plugins

import "bytes"

// maxSearch is how much of a text a search looks at, from its beginning. Tell-tale words
// stand early, and a body of any size must not make a search slow.
const maxSearch = 8 << 10

// maxGap is how many bytes a '*' in a phrase may stand for.
const maxGap = 96

// The work of making a byte of a text ready to be searched, and of settling a phrase by
// its pairs.
const (
	prepareWork = 2
	mightWork   = 2
)

// searchText is a text in lower case, prepared for many searches.
type searchText struct {
	text []byte
	// pairs has a bit for every two neighbouring bytes of the text, folded into 4,096
	// bits. A phrase with a pair that isn't there can't be there either, which settles
	// nearly all searches without touching the text.
	pairs [64]uint64
}

func pairBit(a, b byte) (word, bit uint) {
	h := (uint(a)*61 ^ uint(b)) & 4095
	return h >> 6, h & 63
}

// prepare sets the text, which must be in lower case, and stay.
func (s *searchText) prepare(text []byte) {
	s.text = text
	clear(s.pairs[:])
	for i := 1; i < len(text); i++ {
		word, bit := pairBit(text[i-1], text[i])
		s.pairs[word] |= 1 << bit
	}
}

// may says whether a phrase can be in the text.
func (s *searchText) may(phrase []byte) bool {
	for i := 1; i < len(phrase); i++ {
		word, bit := pairBit(phrase[i-1], phrase[i])
		if s.pairs[word]&(1<<bit) == 0 {
			return false
		}
	}
	return len(phrase) <= len(s.text)
}

// findAny returns the number of the first phrase that stands in the text, or -1.
func (s *searchText) findAny(w *work, p *phrases) int32 {
	w.spend(mightWork * len(p.list))
	for i := range p.list {
		if f := &p.list[i]; s.might(f) && s.has(w, f) {
			return f.number
		}
	}
	return absent
}

// matches returns a bit for each list of which a phrase stands in the text.
func (s *searchText) matches(w *work, p *phrases) (found uint64) {
	w.spend(mightWork * len(p.list))
	for i := range p.list {
		if f := &p.list[i]; s.might(f) && found&(1<<f.list) == 0 && s.has(w, f) {
			found |= 1 << f.list
		}
	}
	return found
}

// might settles most phrases by three of their pairs.
func (s *searchText) might(f *phrase) bool {
	return s.pairs[f.words[0]&63]&f.bits[0] == f.bits[0] &&
		s.pairs[f.words[1]&63]&f.bits[1] == f.bits[1] &&
		s.pairs[f.words[2]&63]&f.bits[2] == f.bits[2]
}

func (s *searchText) has(w *work, f *phrase) bool {
	w.spend(stepWork + len(f.head))
	if !s.may(f.head) {
		return false
	}
	for text := s.text; ; {
		i := bytes.Index(text, f.head)
		if i < 0 {
			w.spend(len(text))
			return false
		}
		w.spend(stepWork + i)
		if !f.star {
			return true
		}
		after := text[i+len(f.head):]
		if hasTail(w, after, f.tail) {
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
func hasTail(w *work, text, tail []byte) bool {
	for {
		part, rest, more := bytes.Cut(tail, []byte{'*'})
		near := text[:min(len(text), maxGap+len(part))]
		w.spend(stepWork + len(near))
		i := bytes.Index(near, part)
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
