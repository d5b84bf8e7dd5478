package sim

import (
	"bufio"
	"bytes"
	"io"
	"testing"
)

// BenchmarkAnswer is what the simulator costs as an upstream, with the raw client that
// asks it, over loopback.
func BenchmarkAnswer(b *testing.B) {
	f := func(name, body, faults, end string) {
		b.Run(name, func(b *testing.B) {
			s := start(b, Options{Keep: -1})
			s.Channel("a").Script(script(b, faults)...)
			nc := dial(b, s)
			var request bytes.Buffer
			post(b, &request, "/a/v1/chat/completions", body)
			r, tail := bufio.NewReaderSize(nc, 64<<10), []byte(end)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write(request.Bytes()); err != nil {
					b.Fatal(err)
				}
				if err := skipTo(r, tail); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	f("whole-1500B", chatWhole, "ok bytes=1500", `"fp_sim"}`)
	f("stream-50", chatStream, "ok chunks=50", "\r\n0\r\n\r\n")
	f("stream-50-burst", chatStream, "ok chunks=50 burst", "\r\n0\r\n\r\n")
	f("status-503", chatWhole, "status=503", `"code":null}}`)
}

// skipTo drops what comes until nothing is left and it ended with tail.
func skipTo(r *bufio.Reader, tail []byte) error {
	for {
		if _, err := r.Peek(1); err != nil {
			return err
		}
		got, err := r.Peek(r.Buffered())
		if err != nil {
			return err
		}
		whole := bytes.HasSuffix(got, tail)
		if keep := len(tail); !whole && len(got) > keep {
			got = got[:len(got)-keep] // the tail may come in two reads
		} else if !whole {
			if _, err := r.Peek(len(got) + 1); err != nil && err != io.EOF {
				return err
			}
			continue
		}
		if _, err := r.Discard(len(got)); err != nil {
			return err
		}
		if whole {
			return nil
		}
	}
}
