package strictjson

// literal reads true, false or null.
func (s *Scanner) literal(word string) {
	n := min(len(word), len(s.b)-s.i)
	for k := range n {
		if s.b[s.i+k] != word[k] {
			s.fail(Syntax, s.i+k)
			return
		}
	}
	s.i += n
	if n < len(word) {
		s.fail(Truncated, s.i)
	}
}

// number reads -? int frac? exp? of RFC 8259, section 6.
func (s *Scanner) number() {
	if s.b[s.i] == '-' {
		s.i++
	}
	if s.at('0') {
		s.i++
	} else if !s.digits() {
		return
	}
	if s.at('.') {
		s.i++
		if !s.digits() {
			return
		}
	}
	if s.at('e') || s.at('E') {
		s.i++
		if s.at('+') || s.at('-') {
			s.i++
		}
		s.digits()
	}
}

func (s *Scanner) at(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }

// digits reads one digit at least.
func (s *Scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		s.i++
	}
	if s.i == start {
		s.unexpected()
		return false
	}
	return true
}
