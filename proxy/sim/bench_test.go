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
			r := bufio.NewReaderSize(nc, 64<<10)
			post(b, nc, "/a/v1/chat/completions", body)
			size := int64(len(readUntil(b, r, end))) // every answer is the same
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write(request.Bytes()); err != nil {
					b.Fatal(err)
				}
				if _, err := io.CopyN(io.Discard, r, size); err != nil {
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
