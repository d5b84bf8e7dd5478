package gate

import "bytes"

// Release gives what is held, to be sent in one write; from then on call [Stream.Pass].
// An error after the decisive frame stays behind, and so does the beginning of what may be
// one. The bytes are the driver's alone.
func (s *Stream) Release() []byte {
	out := s.held
	s.passed, s.verdict = true, Commit
	switch {
	case s.foreign || s.loose:
	case s.errored:
		out, s.kept = out[:s.errAt], true
	case s.scan.Open() || s.array && !s.ended:
		start := s.end()
		if tail := out[start:]; s.suspect(tail) != unsuspicious {
			s.parked, out = bytes.Clone(tail), out[:start:start]
		}
	}
	s.held, s.ends = nil, nil
	return out
}

// Pass watches bytes on their way to the caller after commit, or those that go on after
// the driver committed by itself, and gives those that may go out now: nearly always chunk
// as it is. It holds back an event that is an error, the beginning of one that may be, and
// all that follows an error; everything else passes at once and unchanged. It doesn't keep
// chunk. What was held before is dropped.
func (s *Stream) Pass(chunk []byte) []byte {
	s.passed, s.verdict = true, Commit
	s.held, s.ends = nil, nil
	switch {
	case s.foreign:
		return chunk
	case s.errored:
		return nil
	}
	mid := s.scan.Open()       // the first frame has begun before
	whole := len(s.parked) > 0 // and none of it was given out
	s.scan.Feed(chunk)
	at := 0 // where in chunk the open frame begins
	for {
		raw, ok := s.scan.NextRaw()
		if !ok {
			if s.scan.Err() == nil {
				break
			}
			// An image in a data URL may be as long as that: let it pass unread.
			s.scan.Skip()
			mid, whole = true, false
			continue
		}
		if s.watch(raw) {
			if s.kept = !mid || whole; !s.kept {
				at = len(chunk) - s.scan.Left()
			}
			return s.unpark(chunk[:at], s.kept && whole)
		}
		mid, whole = false, false
		at = len(chunk) - s.scan.Left()
	}
	if len(s.parked) == 0 && (mid || at == len(chunk)) {
		return chunk
	}
	open := chunk[at:]
	if whole {
		open = append(s.parked, chunk...)
	}
	if (s.scan.Open() || s.array && !s.ended) && !mid || whole {
		if len(open) <= maxSuspect && s.suspect(open) != unsuspicious {
			if whole {
				s.parked = open
				return nil
			}
			out := s.unpark(chunk[:at], false)
			s.parked = append(s.parked[:0], open...)
			return out
		}
	}
	return s.unpark(chunk, false)
}

// unpark puts what was parked before b, or drops it.
func (s *Stream) unpark(b []byte, drop bool) []byte {
	if parked := s.parked; len(parked) > 0 {
		s.parked = nil
		if !drop {
			return append(parked, b...)
		}
	}
	return b
}

// Leftover gives what is held back of a stream that ends here, and may go out: the
// beginning of an event that doesn't show an error. Call it once, at the end.
func (s *Stream) Leftover() []byte {
	parked := s.parked
	s.parked = nil
	if len(parked) == 0 || s.suspect(parked) == suspicious || s.array && len(elementOf(parked)) == 0 {
		return nil
	}
	return parked
}

// suspect says whether the beginning of an event must wait for the rest. That of an
// event stream always does, so that a cut leaves no half of one before the error that ends
// the stream: clients would fail on the half.
func (s *Stream) suspect(open []byte) suspicion {
	switch {
	case s.unnamed():
		return suspicious
	case s.array:
		return suspectElement(open)
	}
	return max(suspect(open), perhaps)
}
