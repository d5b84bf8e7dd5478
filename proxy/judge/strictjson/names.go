package strictjson

import (
	"bytes"
	"slices"
)

// linear is up to how many names of one object each new one is compared with all
// before it. Above that, sorting at the object's end is cheaper and can't be made slow
// by whoever picks the names.
const linear = 24

// inline is how many names of the objects that are open at a time need no second
// allocation. Few texts have more.
const inline = 32

// names are those of the open objects, the innermost object's last.
type names struct {
	n    int
	few  [inline]span
	more []span // behind the few
	side []byte // unescaped names
}

func (l *names) at(i int) span {
	if i < inline {
		return l.few[i]
	}
	return l.more[i-inline]
}

func (l *names) add(n span) {
	if l.n < inline {
		l.few[l.n] = n
	} else {
		l.more = append(l.more[:l.n-inline], n)
	}
	l.n++
}

// span is where a name stands: in the text, or in the side buffer if it had escapes.
type span struct {
	start, end int32
	at         int32 // of its quote in the text
	side       bool
}

func (s *Scanner) bytesOf(n span) []byte {
	if n.side {
		return s.names.side[n.start:n.end]
	}
	return s.b[n.start:n.end]
}

// remember adds a name to those of the object whose names begin at base.
func (s *Scanner) remember(key Text, at, base int) {
	n := span{start: int32(at + 1), end: int32(at + 1 + len(key.Raw)), at: int32(at)}
	if key.Escaped {
		n.start, n.side = int32(len(s.names.side)), true
		s.names.side = append(s.names.side, key.Append(nil)...)
		n.end = int32(len(s.names.side))
	}
	if s.names.n-base < linear {
		text := s.bytesOf(n)
		for i := base; i < s.names.n; i++ {
			other := s.names.at(i)
			if int(other.end-other.start) == len(text) && bytes.Equal(s.bytesOf(other), text) {
				s.fail(Duplicate, at)
				return
			}
		}
	}
	s.names.add(n)
}

// leave forgets the names of the object that ends, after looking for doubles in one
// that is large.
func (s *Scanner) leave(base int) {
	s.depth--
	if s.Failed() || s.names == nil {
		return
	}
	if s.names.n-base > linear {
		s.findDouble(base)
	}
	s.names.n = base
}

func (s *Scanner) findDouble(base int) {
	own := make([]span, 0, s.names.n-base)
	for i := base; i < s.names.n; i++ {
		own = append(own, s.names.at(i))
	}
	slices.SortFunc(own, func(a, b span) int {
		if c := bytes.Compare(s.bytesOf(a), s.bytesOf(b)); c != 0 {
			return c
		}
		return int(a.at - b.at)
	})
	first := -1
	for i := 1; i < len(own); i++ {
		if at := int(own[i].at); (first < 0 || at < first) && bytes.Equal(s.bytesOf(own[i-1]), s.bytesOf(own[i])) {
			first = at
		}
	}
	if first >= 0 {
		s.fail(Duplicate, first)
	}
}
