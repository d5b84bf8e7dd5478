package proxy_test

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// FuzzRelay sends any bytes as a stream that ends in order, cut into chunks at any places,
// through the whole proxy. What the caller gets is the upstream's bytes: all of them, or
// up to an error in them, or none of them and the other channel's; and how they were cut
// doesn't matter.
func FuzzRelay(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "streams", "*.sse"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no streams to begin with: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, []byte{1, 200, 3, 17}, strings.HasPrefix(filepath.Base(file), "messages"))
	}
	f.Add([]byte(textFrame+errorFrame+moreFrame), []byte{30}, false)
	f.Add([]byte(textFrame+"data: "+strings.Repeat("x", 300)+"\r\r"+doneFrame), []byte{0xff}, false)
	f.Add([]byte("\xef\xbb\xbf"+textFrame+stopFrame), []byte{2}, false)
	b := setup{policy: func(*engine.Question) engine.Decision {
		return engine.Decision{Action: engine.Fallback, Gates: passAll}
	}}.inMemory(f, 0)
	stop := b.start()
	f.Cleanup(stop)
	f.Fuzz(func(t *testing.T, content, cuts []byte, messages bool) {
		b.t = t // one target runs at a time
		if len(content) == 0 || len(content) > 32<<10 {
			return
		}
		path, request, second := chatPath, streamRequest, textFrame+stopFrame+doneFrame
		if messages {
			path, second = messagesPath, claudeStart()+claudeText()+"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
		}
		var first string
		for round, cuts := range [][]byte{nil, cuts} {
			got, record := b.relayed(t, path, request, content, cuts, second)
			if round == 0 {
				first = record
			} else if record != first {
				t.Errorf("in one piece it is %q, in many %q", first, record)
			}
			switch {
			case strings.HasSuffix(record, "| ch2"):
				if got != second {
					t.Errorf("%s: the caller got %q of the second channel", record, got)
				}
			case record == "success 200 | ch1":
				if got != string(content) {
					t.Errorf("%s: the caller got %q", record, got)
				}
			case record == "partial 200 | ch1 partial after_output":
				at := max(strings.LastIndex(got, `data: {"error":{"message":"`), strings.LastIndex(got, "event: error\ndata: {\"type\":\"error\""))
				if at < 0 {
					t.Fatalf("%s: no error event in %q", record, got)
				}
				before := got[:at]
				switch rest, ok := strings.CutPrefix(before, string(content)); {
				case ok && (rest == "" || rest == "\n\n"):
				case !mentionsFailure(content):
					t.Errorf("%s: the caller got %q before the error event", record, before)
				case !bytes.HasPrefix(content, []byte(before)) && !bytes.HasPrefix(content, []byte(strings.TrimSuffix(before, "\n\n"))):
					t.Errorf("%s: the caller got %q, which is no beginning of the stream", record, before)
				}
			default:
				t.Errorf("record %q", record)
			}
		}
	})
}

// mentionsFailure says whether there may be an upstream's own error in content.
func mentionsFailure(content []byte) bool {
	for _, word := range []string{"error", "fail", "cancel", "success", "status", `\`} {
		if bytes.Contains(content, []byte(word)) {
			return true
		}
	}
	return false
}

// relayed sends content over the first channel. Each byte of cuts is the size of a chunk,
// over and over; without one there is a single chunk.
func (b *bubble) relayed(t *testing.T, path, request string, content, cuts []byte, second string) (body, record string) {
	t.Helper()
	b.serve(func(channel string, c *memConn) {
		defer c.Close()
		if !readRequest(c) {
			return
		}
		if channel == "ch2" {
			stream(second)(c, 1)
			return
		}
		var wire strings.Builder
		wire.WriteString(streamHead)
		for rest, i := content, 0; len(rest) > 0; i++ {
			n := len(rest)
			if len(cuts) > 0 {
				n = min(n, 1+int(cuts[i%len(cuts)]))
			}
			wire.WriteString(chunk(string(rest[:n])))
			rest = rest[n:]
			if len(cuts) > 0 && cuts[i%len(cuts)]%2 == 1 { // a read of its own, perhaps
				if _, err := c.Write([]byte(wire.String())); err != nil {
					return
				}
				wire.Reset()
			}
		}
		_, _ = c.Write([]byte(wire.String() + "0\r\n\r\n"))
		// The proxy closes first, so that nothing that it has sent is lost.
		_ = c.SetReadDeadline(time.Now().Add(patience))
		_, _ = c.Read(make([]byte, 1))
	})
	caller := b.call()
	defer caller.Close()
	got := b.ask(caller, bufio.NewReader(caller), rawPost(path, request))
	if got.status != 200 || got.err != nil {
		t.Fatalf("status %d, %v, %s", got.status, got.err, got.body)
	}
	b.callers = nil
	b.upstreams()
	return got.body, b.ledger.next(t)
}
