// Package gate says when an answer is decisive, and what is wrong with one that never
// becomes so.
//
// A [Stream] holds the opening frames of an upstream's stream back until one of them
// decides: output or a finish reason commits the attempt, an error or an answer of no
// valid shape discards it, and keep-alives, role-only and lifecycle frames decide
// nothing. After commit it watches for the end mark, for usage, and for an error in the
// stream, which it holds back so that the proxy can send its own in its place. [Whole]
// judges a body that came in one piece.
//
// What a frame means is a table per protocol, one file each. Sound and pictures in bytes
// are not for this package: they commit at their first byte.
//
// The package never changes, reorders or writes a byte, knows no clock and no limit
// but its buffer's, and classifies nothing: an error frame is handed to the classifier
// as it is. The proxy's attempt driver calls it:
//
//	s := gate.NewStream(engine.OpenAIChat, channel.Accepts)
//	for {
//		chunk, err := read()
//		if err == io.EOF && s.End() == gate.Discard {
//			return failed(s.Frames(), s.Finding())
//		}
//		switch s.Feed(chunk) {
//		case gate.Commit:
//			return relay(s.Release(), s)
//		case gate.Discard:
//			return failed(s.Frames(), s.Finding())
//		}
//		if s.Full() {
//			return relay(s.Release(), s)
//		}
//	}
package gate
