package plugins

import (
	"bytes"
	"sync"
	"sync/atomic"
)

// Bounds of the phrase lists that are remembered for one module. A built-in one has
// about a hundred; a module that makes its lists up as it goes must not fill the memory.
const (
	maxLists     = 256
	maxListBytes = 64 << 10
)

// phrases is a list of alternatives, taken apart for many searches.
type phrases struct{ list []phrase }

// phrase is one alternative that is not empty.
type phrase struct {
	number int32  // in its list
	list   uint8  // which list it belongs to, where there are several
	head   []byte // up to the first '*'
	tail   []byte // behind it
	star   bool
	// The pairs at the head's beginning, middle and end, as [searchText] has them. A head
	// of one byte has none, and its zero bits stand everywhere.
	words [3]uint8
	bits  [3]uint64
}

// newPhrases takes a text of the ABI apart: alternatives separated by '|', and '*'
// inside one stands for up to maxGap bytes. It keeps views into text.
func newPhrases(text []byte) *phrases {
	p := &phrases{}
	for i, more := int32(0), true; more; i++ {
		var one []byte
		one, text, more = bytes.Cut(text, []byte{'|'})
		if len(one) == 0 {
			continue
		}
		f := phrase{number: i}
		f.head, f.tail, f.star = bytes.Cut(one, []byte{'*'})
		if last := len(f.head) - 2; last >= 0 {
			for k, at := range [3]int{0, last / 2, last} {
				word, bit := pairBit(f.head[at], f.head[at+1])
				f.words[k], f.bits[k] = uint8(word), 1<<bit
			}
		}
		p.list = append(p.list, f)
	}
	return p
}

// maxMatches is how many lists one search with several takes: an answer has 64 bits.
const maxMatches = 64

// newPhraseSet takes several lists apart, one a line.
func newPhraseSet(text []byte) *phrases {
	all := &phrases{}
	for i, more := 0, true; more && i < maxMatches; i++ {
		var line []byte
		line, text, more = bytes.Cut(text, []byte{'\n'})
		for _, f := range newPhrases(line).list {
			f.list = uint8(i)
			all.list = append(all.list, f)
		}
	}
	return all
}

// phraseLists remembers the lists that a module searches for: they are the same ones for
// each failure, and taking them apart costs more than most searches.
type phraseLists struct {
	known atomic.Pointer[map[string]*phrases]
	mu    sync.Mutex // for writing
	bytes int
}

// parseWork is the work of taking a byte of a list apart and remembering the list.
const parseWork = 16

// of returns a list, remembered or newly made by parse. A nil receiver remembers nothing.
func (l *phraseLists) of(w *work, text []byte, parse func([]byte) *phrases) *phrases {
	if l == nil {
		w.spend(parseWork * len(text))
		return parse(text)
	}
	if known := l.known.Load(); known != nil {
		if p, ok := (*known)[string(text)]; ok {
			return p
		}
	}
	w.spend(parseWork*len(text) + stepWork*maxLists)
	key := string(text)
	p := parse([]byte(key)) // text is the guest's memory, which changes
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.known.Load()
	next := map[string]*phrases{}
	if old != nil {
		if len(*old) >= maxLists || l.bytes+len(key) > maxListBytes {
			return p
		}
		for k, v := range *old {
			next[k] = v
		}
	}
	next[key] = p
	l.bytes += len(key)
	l.known.Store(&next)
	return p
}
