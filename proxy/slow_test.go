package proxy_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy"
)

// flood sends a stream's head and then piece after piece, up to size bytes of them or
// until nobody takes any more.
func flood(c *memConn, head, piece string, size int) {
	_, err := io.WriteString(c, head)
	for sent := 0; err == nil && sent < size; sent += len(piece) {
		_, err = io.WriteString(c, piece)
	}
}

// A caller that stops reading stops the reading of its upstream at once, with nothing
// more than the connections' own buffers in between, and is dropped after a minute.
func TestStalledCallerStopsTheUpstream(t *testing.T) {
	t.Parallel()
	setup{}.inBubble(t, 0, func(b *bubble) {
		frames := strings.Repeat(chunk(textFrame), 100)
		b.serve(func(_ string, c *memConn) {
			if readRequest(c) {
				flood(c, streamHead, frames, 200<<20)
			}
		})
		caller := b.call()
		if _, err := io.WriteString(caller, rawPost(chatPath, streamRequest)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		up, begin := b.upstreams()[0], time.Now()
		taken := up.out.bytesTaken()
		// What the caller's buffer holds, and the proxy's own few pages.
		if bound := b.room + 64<<10; taken > bound || taken < b.room {
			t.Errorf("the upstream got rid of %d bytes, want about %d", taken, b.room)
		}
		for !up.left() {
			if up.out.bytesTaken() != taken {
				t.Fatal("the upstream is read on")
			}
			time.Sleep(time.Second)
		}
		if after := time.Since(begin); after < proxy.DefaultCallerStall || after > 66*time.Second {
			t.Errorf("dropped after %v, want %v", after, proxy.DefaultCallerStall)
		}
		if rec := b.ledger.next(t); rec != "cancelled 200 | ch1 cancelled after_output" {
			t.Errorf("record %q", rec)
		}
	})
}

// A whole answer, too, isn't held for a caller that takes none of it.
func TestStalledCallerOfAWholeAnswer(t *testing.T) {
	t.Parallel()
	large := strings.Replace(wholeAnswer, "Hello", strings.Repeat("x", 1<<20), 1)
	setup{}.inBubble(t, 0, func(b *bubble) {
		b.serve(func(_ string, c *memConn) {
			if readRequest(c) {
				answer(200, "application/json", large)(c, 1)
			}
		})
		caller := b.call()
		if _, err := io.WriteString(caller, rawPost(chatPath, wholeRequest)); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for !caller.left() {
			time.Sleep(time.Second)
		}
		if after := time.Since(begin); after < proxy.DefaultCallerStall || after > 66*time.Second {
			t.Errorf("dropped after %v", after)
		}
	})
}

// A caller that reads, however slowly, gets all of it.
func TestSlowCallerIsServed(t *testing.T) {
	t.Parallel()
	large := strings.Replace(wholeAnswer, "Hello", strings.Repeat("x", 60<<10), 1)
	content := strings.Repeat(textFrame, 400) + stopFrame + doneFrame
	for name, c := range map[string]struct{ request, response, want string }{
		"stream": {streamRequest, streamHead + chunk(content) + "0\r\n\r\n", content},
		"whole":  {wholeRequest, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(large), large), large},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setup{}.inBubble(t, 0, func(b *bubble) {
				b.room = 4 << 10
				b.serve(func(_ string, conn *memConn) {
					if readRequest(conn) {
						_, _ = io.WriteString(conn, c.response)
					}
				})
				caller := b.call()
				if _, err := io.WriteString(caller, rawPost(chatPath, c.request)); err != nil {
					t.Fatal(err)
				}
				got := b.answer(bufio.NewReaderSize(sips{caller}, 16))
				if got.status != 200 || got.err != nil || got.body != c.want {
					t.Errorf("got %d, %v, %d bytes, want %d", got.status, got.err, len(got.body), len(c.want))
				}
				if rec := b.ledger.next(t); rec != "success 200 | ch1" {
					t.Errorf("record %q", rec)
				}
			})
		})
	}
}

// sips reads little, and seldom.
type sips struct{ c *memConn }

func (s sips) Read(p []byte) (int, error) {
	time.Sleep(50 * time.Second)
	return s.c.Read(p[:min(len(p), 1<<10)])
}

// What a caller doesn't send in time is answered in its own protocol, and costs nothing.
func TestSlowRequest(t *testing.T) {
	t.Parallel()
	const line, rest = " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n", "Content-Length: 100\r\n\r\n{"
	for name, c := range map[string]struct{ request, want string }{
		"within the head":         {"POST /v1/messages" + line, `{"type":"error","error":{"type":"invalid_request_error"`},
		"within the head, chat":   {"POST /v1/chat/completions" + line, `{"error":{"message":`},
		"within the body":         {"POST /v1/messages" + line + rest, `{"type":"error","error":{"type":"invalid_request_error"`},
		"within the body, chat":   {"POST /v1/chat/completions" + line + rest, `{"error":{"message":`},
		"within a chunked body":   {"POST /v1/messages" + line + "Transfer-Encoding: chunked\r\n\r\n5\r\nab", `{"type":"error","error":{"type":"invalid_request_error"`},
		"before the body, chat":   {"POST /v1/chat/completions" + line + "Content-Length: 100\r\n\r\n", `{"error":{"message":`},
		"before a body of chunks": {"POST /v1/chat/completions" + line + "Transfer-Encoding: chunked\r\n\r\n", `{"error":{"message":`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setup{}.inBubble(t, 0, func(b *bubble) {
				caller, begin := b.call(), time.Now()
				// Byte by byte, so that each read succeeds and only the sum is too slow.
				go func() {
					for i := range len(c.request) {
						if _, err := io.WriteString(caller, c.request[i:i+1]); err != nil {
							return
						}
						time.Sleep(100 * time.Millisecond)
					}
				}()
				got := b.answer(bufio.NewReader(caller))
				if got.status != 408 || !strings.HasPrefix(got.body, c.want) || !strings.Contains(got.body, `request_incomplete`) {
					t.Errorf("got %d %q", got.status, got.body)
				}
				if after := time.Since(begin); after != proxy.DefaultReadTimeout {
					t.Errorf("answered after %v", after)
				}
				time.Sleep(10 * time.Second) // for the lingering connection
				if synctest.Wait(); !caller.left() {
					t.Error("the connection stays open")
				}
				if n := len(b.upstreams()); n != 0 || b.ledger.opened != 0 {
					t.Errorf("%d upstream calls", n)
				}
			})
		})
	}
}

// An upstream that breaks the rules, or sends without end, costs one attempt and its
// connection, and is read no further than to where that is clear.
func TestHostileUpstream(t *testing.T) {
	t.Parallel()
	const endless = 100 << 20
	binary := strings.Repeat("\x00\x01\xff\xfe~", 1000)
	const chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct {
		name, head, piece string
		record            string // of the first attempt
		bound             int    // of the bytes that are taken
	}{
		{"headers without end", "HTTP/1.1 200 OK\r\n", "X-More: of the same\r\n", "provider_transient before_headers", 128 << 10},
		{"a header without end", "HTTP/1.1 200 OK\r\nX-More: ", strings.Repeat("x", 1000), "provider_transient before_headers", 128 << 10},
		{"interim answers without end", "", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "provider_transient before_headers", 128 << 10},
		{"no HTTP", "SSH-2.0-OpenSSH_9.6\r\n", binary, "provider_transient before_headers", 128 << 10},
		{"a negative chunk size", chunked + "-5\r\nhello\r\n", binary, "provider_transient before_output", 128 << 10},
		{"a chunk size with a prefix", chunked + "0x5\r\nhello\r\n", binary, "provider_transient before_output", 128 << 10},
		{"a chunk size over 64 bits", chunked + "fffffffffffffffff\r\nhello\r\n", binary, "provider_transient before_output", 128 << 10},
		{"a chunk size without end", chunked, "0", "provider_transient before_output", 128 << 10},
		{"a chunk extension without end", chunked + "5;", "x=y;", "provider_transient before_output", 128 << 10},
		{"a chunk longer than it says", chunked + "5\r\nhello, world\r\n", binary, "provider_transient before_output", 128 << 10},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", binary, "provider_transient before_headers", 128 << 10},
		{"garbage instead of events", chunked, chunk(binary), "schema_invalid before_output", 512 << 10},
		{"garbage in lines", chunked, chunk(strings.Repeat("\x00\x01\xff\xfe~\n", 200)), "schema_invalid before_output", 512 << 10},
		{"JSON without end", chunked, chunk(`[{"a":"` + strings.Repeat("x", 1000) + `"},`), "schema_invalid before_output", 512 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			setup{policy: func(*engine.Question) engine.Decision {
				return engine.Decision{Action: engine.Fallback, Gates: passAll}
			}}.inBubble(t, 8, func(b *bubble) {
				dials := 0
				b.serve(func(channel string, conn *memConn) {
					if !readRequest(conn) {
						return
					}
					if channel == "ch1" {
						dials++
						flood(conn, c.head, c.piece, endless)
						return
					}
					for stream(textFrame, stopFrame, doneFrame)(conn, 1) && readRequest(conn) {
					}
				})
				caller := b.call()
				br := bufio.NewReader(caller)
				var first *memConn
				for round := range 2 {
					got := b.ask(caller, br, rawPost(chatPath, streamRequest))
					if got.status != 200 || got.err != nil || got.body != textFrame+stopFrame+doneFrame {
						t.Fatalf("got %d, %v, %q", got.status, got.err, got.body)
					}
					if rec, want := b.ledger.next(t), "success 200 | ch1 "+c.record+" | ch2"; rec != want {
						t.Errorf("record %q, want %q", rec, want)
					}
					if synctest.Wait(); round == 0 {
						first = b.upstreams()[0]
						if taken := first.out.bytesTaken(); taken > c.bound {
							t.Errorf("%d bytes were taken, want at most %d", taken, c.bound)
						}
						if !first.left() {
							t.Error("the connection stays open")
						}
					}
				}
				if dials != 2 {
					t.Errorf("%d connections for two attempts", dials)
				}
			})
		})
	}
}

// Bytes behind an answer's end were never asked for: the answer is good, and its
// connection is not used again.
func TestNothingIsReusedBehindALooseEnd(t *testing.T) {
	t.Parallel()
	setup{}.inBubble(t, 8, func(b *bubble) {
		b.serve(func(_ string, conn *memConn) {
			if readRequest(conn) {
				_, _ = io.WriteString(conn, streamHead+chunk(textFrame+stopFrame+doneFrame)+"0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
			}
		})
		caller := b.call()
		br := bufio.NewReader(caller)
		for range 3 {
			if got := b.ask(caller, br, rawPost(chatPath, streamRequest)); got.body != textFrame+stopFrame+doneFrame {
				t.Fatalf("got %d %q", got.status, got.body)
			}
		}
		if n := len(b.upstreams()); n != 3 {
			t.Errorf("%d connections for three answers", n)
		}
	})
}

// An event of more than 1 MiB, such as an image in a data URL, is passed on unread, and
// what follows it is read again.
func TestLongEventPasses(t *testing.T) {
	t.Parallel()
	long := strings.Replace(textFrame, "Hel", strings.Repeat("iVBORw0K", 300<<10), 1)
	for name, content := range map[string]string{
		"first":  long + stopFrame + doneFrame,
		"later":  textFrame + long + stopFrame + doneFrame,
		"broken": textFrame + long + moreFrame,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setup{}.inBubble(t, 0, func(b *bubble) {
				b.serve(func(_ string, conn *memConn) {
					if readRequest(conn) {
						_, _ = io.WriteString(conn, streamHead+chunk(content)+"0\r\n\r\n")
					}
				})
				caller := b.call()
				got := b.ask(caller, bufio.NewReader(caller), rawPost(chatPath, streamRequest))
				record, want := b.ledger.next(t), "success 200 | ch1"
				if name == "broken" {
					want = "partial 200 | ch1 partial after_output"
					got.body, _, _ = strings.Cut(got.body, `data: {"error"`)
				}
				if got.err != nil || got.body != content || record != want {
					t.Errorf("%v, %d bytes of %d, record %q", got.err, len(got.body), len(content), record)
				}
			})
		})
	}
}

// An encoded body is never unpacked: what a small one might grow to is the caller's
// choice.
func TestEncodedBodyPassesUnread(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z, err := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range 64 {
		_, _ = z.Write(zeros)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, request := range map[string]string{"whole": wholeRequest, "stream": streamRequest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setup{}.inBubble(t, 0, func(b *bubble) {
				b.serve(func(_ string, conn *memConn) {
					if readRequest(conn) {
						answer(200, "application/json", bomb.String(), "Content-Encoding: gzip")(conn, 1)
					}
				})
				caller := b.call()
				got := b.ask(caller, bufio.NewReader(caller), rawPost(chatPath, request))
				if got.status != 200 || got.body != bomb.String() || got.header.Get("Content-Encoding") != "gzip" {
					t.Errorf("got %d, %d bytes of %d", got.status, len(got.body), bomb.Len())
				}
				if rec := b.ledger.next(t); rec != "success 200 | ch1" {
					t.Errorf("record %q", rec)
				}
			})
		})
	}
}
