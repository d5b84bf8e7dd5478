// Package sse cuts a server-sent event stream into frames without changing a byte.
//
// A frame is everything up to and including the blank line that ends an event, so
// the frames of a stream and the rest behind them are the stream. Line ends may be
// LF, CRLF or CR, mixed; the stream may begin with a byte order mark; chunks may be
// cut anywhere, and the frames are the same wherever they are cut.
//
// The package reads what the WHATWG event stream format says and nothing of what the
// data means. It does no I/O and never writes: who relays a stream sends the bytes
// that it was given. The stream gates call it, for each chunk an upstream sends:
//
//	var s sse.Scanner
//	s.Feed(chunk)
//	for {
//		f, ok := s.Next()
//		if !ok {
//			break
//		}
//		read(f.Event, f.Data)
//	}
//	if err := s.Err(); err != nil {
//		return err
//	}
package sse
