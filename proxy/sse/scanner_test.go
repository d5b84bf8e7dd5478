package sse

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// frame is a [Frame] in a form that prints well.
type frame struct {
	Raw, Event, Data string
	Comment          bool
}

// scan feeds the chunks and returns copies of all frames and of the rest.
func scan(chunks ...string) (frames []frame, rest string) {
	var s Scanner
	for _, c := range chunks {
		b := []byte(c)
		s.Feed(b)
		for {
			f, ok := s.Next()
			if !ok {
				break
			}
			frames = append(frames, frame{string(f.Raw), string(f.Event), string(f.Data), f.Comment})
		}
		// The scanner must have copied what it keeps.
		for i := range b {
			b[i] = '!'
		}
	}
	return frames, string(s.Rest())
}

func TestScanner(t *testing.T) {
	t.Parallel()
	f := func(name, in, rest string, want ...frame) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := func(how string, chunks ...string) {
				t.Helper()
				got, tail := scan(chunks...)
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s: frames (-want +got):\n%s", how, d)
				}
				if tail != rest {
					t.Errorf("%s: rest is %q, want %q", how, tail, rest)
				}
			}
			check("whole", in)
			check("bytes", strings.Split(in, "")...)
			for i := 1; i < len(in); i++ {
				check("cut", in[:i], in[i:])
			}
		})
	}

	f("nothing", "", "")
	f("one event", "data: a\n\n", "", frame{"data: a\n\n", "", "a", false})
	f("no space", "data:a\n\n", "", frame{"data:a\n\n", "", "a", false})
	f("one space only", "data:  a\n\n", "", frame{"data:  a\n\n", "", " a", false})
	f("event name", "event: ping\ndata: {}\n\n", "", frame{"event: ping\ndata: {}\n\n", "ping", "{}", false})
	f("last name wins", "event: a\nevent: b\ndata: 1\n\n", "", frame{"event: a\nevent: b\ndata: 1\n\n", "b", "1", false})
	f("lines are joined", "data: a\ndata:\ndata: c\n\n", "", frame{"data: a\ndata:\ndata: c\n\n", "", "a\n\nc", false})
	f("field without colon", "data\n\n", "", frame{"data\n\n", "", "", false})
	f("unknown field", "id: 7\nretry: 3\nx: y\n\n", "", frame{"id: 7\nretry: 3\nx: y\n\n", "", "", false})
	f("comment", ": keep-alive\n\n", "", frame{": keep-alive\n\n", "", "", true})
	f("comment in an event", ":c\ndata: a\n\n", "", frame{":c\ndata: a\n\n", "", "a", false})
	f("blank lines", "\n\ndata: a\n\n", "",
		frame{"\n", "", "", true}, frame{"\n", "", "", true}, frame{"data: a\n\n", "", "a", false})
	f("crlf", "data: a\r\n\r\ndata: b\r\n\r\n", "",
		frame{"data: a\r\n\r\n", "", "a", false}, frame{"data: b\r\n\r\n", "", "b", false})
	f("cr", "data: a\r\rdata: b\r\r", "",
		frame{"data: a\r\r", "", "a", false}, frame{"data: b\r\r", "", "b", false})
	f("lf then crlf", "data: a\n\r\ndata: b\n\n", "",
		frame{"data: a\n\r", "", "a", false}, frame{"\ndata: b\n\n", "", "b", false})
	f("crlf then cr", "data: a\r\n\rdata: b\n\n", "",
		frame{"data: a\r\n\r", "", "a", false}, frame{"data: b\n\n", "", "b", false})
	f("crlf awaits its lf", "data: a\r\n\r", "data: a\r\n\r")
	f("byte order mark", "\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n", "",
		frame{"\xEF\xBB\xBFdata: a\n\n", "", "a", false}, frame{"\xEF\xBB\xBFdata: b\n\n", "", "", false})
	f("rest", "data: a\n\ndata: b\n", "data: b\n", frame{"data: a\n\n", "", "a", false})
}

func TestMissingDataDiffersFromEmptyData(t *testing.T) {
	t.Parallel()
	if f := Parse([]byte("event: a\n\n"), true); f.Data != nil {
		t.Errorf("data is %q, want nil", f.Data)
	}
	for _, in := range []string{"data\n\n", "data:\n\n", "data: \n\n"} {
		if f := Parse([]byte(in), true); f.Data == nil {
			t.Errorf("%q: data is nil, want it empty", in)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	f := func(in string, want bool) {
		t.Helper()
		var s Scanner
		s.Feed([]byte(in))
		for {
			if _, ok := s.Next(); !ok {
				break
			}
		}
		if got := s.Open(); got != want {
			t.Errorf("after %q open is %v, want %v", in, got, want)
		}
	}
	f("", false)
	f("d", true)
	f("data: a\n", true)
	f("data: a\n\n", false)
	f("data: a\n\n:", true)
	f("data: a\r\n\r\n", false)
	f("data: a\r\r", false)
	f("data: a\n\r\n", false) // the LF is no event
}

func TestFrameTooLong(t *testing.T) {
	t.Parallel()
	long := "data: " + strings.Repeat("x", MaxFrame)
	for _, size := range []int{1 << 12, 1 << 16, len(long) + 2} {
		var s Scanner
		var got []string
		failures := 0
		in := long + "\n\ndata: after\n\n"
		for len(in) > 0 {
			n := min(size, len(in))
			s.Feed([]byte(in[:n]))
			in = in[n:]
			for {
				f, ok := s.Next()
				if ok {
					got = append(got, string(f.Data))
					continue
				}
				if s.Err() == nil {
					break
				}
				if !errors.Is(s.Err(), ErrFrameTooLong) {
					t.Fatalf("error is %v, want %v", s.Err(), ErrFrameTooLong)
				}
				failures++
				s.Skip()
			}
			if len(s.Rest()) > MaxFrame {
				t.Fatalf("%d bytes are held, want at most %d", len(s.Rest()), MaxFrame)
			}
		}
		if failures != 1 {
			t.Errorf("chunks of %d: %d errors, want 1", size, failures)
		}
		if d := cmp.Diff([]string{"after"}, got); d != "" {
			t.Errorf("chunks of %d: frames behind the long one (-want +got):\n%s", size, d)
		}
	}
}

func TestErrorStays(t *testing.T) {
	t.Parallel()
	var s Scanner
	s.Feed(bytes.Repeat([]byte("x"), MaxFrame+1))
	for range 2 {
		if _, ok := s.Next(); ok || s.Err() == nil {
			t.Fatal("a frame came behind the error")
		}
	}
}

func TestWholeFramesAreNotCopied(t *testing.T) {
	var s Scanner
	chunk := []byte("event: a\ndata: one\n\n: c\n\ndata: two\n\n")
	n := testing.AllocsPerRun(100, func() {
		s.Feed(chunk)
		for {
			if _, ok := s.Next(); !ok {
				return
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte("data: a\n\n: b\r\n\r\nevent: c\rdata: d\r\re"), uint8(3))
	f.Add([]byte("\xEF\xBB\xBFdata: a\n\r\n\r\rdata\n\n"), uint8(1))
	f.Add([]byte("\r\n\r\n\r\r\n\n"), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		whole, rest := scan(string(in))
		var joined strings.Builder
		for _, f := range whole {
			joined.WriteString(f.Raw)
		}
		joined.WriteString(rest)
		if joined.String() != string(in) {
			t.Fatalf("frames and rest are %q, want %q", joined.String(), in)
		}

		var chunks []string
		for b := string(in); len(b) > 0; {
			n := min(int(step%16)+1, len(b))
			chunks, b = append(chunks, b[:n]), b[n:]
		}
		cut, cutRest := scan(chunks...)
		if d := cmp.Diff(whole, cut); d != "" || cutRest != rest {
			t.Fatalf("other frames in chunks of %d (-whole +cut):\n%s\nrest %q and %q", step%16+1, d, rest, cutRest)
		}
		if d := cmp.Diff(slow(string(in)), events(whole)); d != "" {
			t.Fatalf("other events than line by line (-want +got):\n%s", d)
		}
	})
}

// events drops what dispatches nothing.
func events(frames []frame) (out []frame) {
	for _, f := range frames {
		if f.Data != "" {
			out = append(out, frame{Event: f.Event, Data: f.Data})
		}
	}
	return out
}

// slow reads events the way the format's text tells it: normalise the line ends, then
// go line by line.
func slow(in string) (out []frame) {
	in = strings.TrimPrefix(in, "\xEF\xBB\xBF")
	// Whether a last CR is a line end of its own is not known before the next byte.
	pending := strings.HasSuffix(in, "\r\n\r")
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(in, "\n")
	lines = lines[:len(lines)-1] // the last has no end
	if pending {
		lines = lines[:len(lines)-1]
	}
	var event string
	var data []string
	for _, line := range lines {
		if line == "" {
			if d := strings.Join(data, "\n"); d != "" {
				out = append(out, frame{Event: event, Data: d})
			}
			event, data = "", nil
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			event = value
		case "data":
			data = append(data, value)
		}
	}
	return out
}

func BenchmarkScanner(b *testing.B) {
	frame := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}` + "\n\n")
	run := func(name string, raw bool, chunks ...[]byte) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			var s Scanner
			for b.Loop() {
				for _, c := range chunks {
					s.Feed(c)
					for ok := true; ok; {
						if raw {
							_, ok = s.NextRaw()
						} else {
							_, ok = s.Next()
						}
					}
				}
			}
		})
	}
	run("whole frame", false, frame)
	run("whole frame, raw", true, frame)
	run("cut in two", false, frame[:70], frame[70:])
}
