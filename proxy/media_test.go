package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

const (
	speechPath    = "/v1/audio/speech"
	heardPath     = "/v1/audio/transcriptions"
	speechRequest = `{"model":"` + model + `","input":"hi","voice":"alloy"}`
	heardType     = "Content-Type: multipart/form-data; boundary=B"
	heardRequest  = "--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n" + model + "\r\n" +
		"--B\r\nContent-Disposition: form-data; name=\"stream\"\r\n\r\ntrue\r\n" +
		"--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\n\r\n\xff\xfb\x00\r\n--B--\r\n"
)

// The first bytes of sound reach the caller while the rest is still being made.
func TestSoundCommitsAtItsFirstByte(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"chunked": "Transfer-Encoding: chunked\r\n\r\n3\r\nID3\r\n", "of known length": "Content-Length: 6\r\n\r\nID3",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan struct{})
			p := newProvider(t, func(c net.Conn, _ int) bool {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\n"+head)
				await(t, "the first bytes' arrival", seen)
				rest := "\xff\xfb\x00"
				if name == "chunked" {
					rest = "3\r\n" + rest + "\r\n0\r\n\r\n"
				}
				_, err := io.WriteString(c, rest)
				return err == nil
			})
			g := setup{providers: []*provider{p}}.start(t)
			c := g.dial(t)
			if _, err := io.WriteString(c, rawPost(speechPath, speechRequest, "Connection: close")); err != nil {
				t.Fatal(err)
			}
			br := bufio.NewReader(c)
			for want := "\r\n\r\n"; ; {
				line, err := br.ReadString('\n')
				if err != nil {
					t.Fatalf("%v instead of %q", err, want)
				}
				if line == "\r\n" {
					break
				}
			}
			if name == "chunked" {
				for range len("3\r\nID3") {
					if _, err := br.ReadByte(); err != nil {
						t.Fatal(err)
					}
				}
			}
			close(seen)
			rest, err := io.ReadAll(br)
			if err != nil || !strings.Contains(string(rest), "\xff\xfb\x00") {
				t.Errorf("then came %q, %v", rest, err)
			}
			if rec := g.ledger.next(t); rec != "success 200 | ch1" {
				t.Errorf("record %q", rec)
			}
		})
	}
}

// What was heard comes as the model can: in events, as one JSON text, as plain text.
func TestHeardText(t *testing.T) {
	t.Parallel()
	event := func(kind, member string) string {
		return `data: {"type":"transcript.text.` + kind + `",` + member + "}\n\n"
	}
	events := []string{event("delta", `"delta":"Hel"`), event("delta", `"delta":"lo"`), event("done", `"text":"Hello","usage":{"input_tokens":3,"output_tokens":2}`)}
	for name, c := range map[string]struct {
		answer script
		body   string
		record string
	}{
		"events":             {stream(events...), strings.Join(events, ""), "success 200 | ch1"},
		"JSON":               {answer(200, "application/json", `{"text":"Hello"}`), `{"text":"Hello"}`, "success 200 | ch1"},
		"subtitles":          {answer(200, "text/plain; charset=utf-8", "1\n00:00 --> 00:01\nHello\n"), "1\n00:00 --> 00:01\nHello\n", "success 200 | ch1"},
		"error in events":    {stream(`data: {"type":"error","error":{"message":"overloaded"}}` + "\n\n"), "", "policy_stop 200 | ch1 provider_transient before_output"},
		"empty":              {answer(200, "application/json", ""), "", "policy_stop 502 | ch1 schema_invalid before_output"},
		"empty sound":        {answer(200, "audio/mpeg", ""), "", "policy_stop 502 | ch1 schema_invalid before_output"},
		"a page":             {answer(200, "text/html", "<html></html>"), "", "policy_stop 502 | ch1 schema_invalid before_output"},
		"JSON of other kind": {answer(200, "application/json", `{"id":"x"}`), "", "policy_stop 502 | ch1 schema_invalid before_output"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, c.answer)
			g := setup{providers: []*provider{p, p}}.start(t)
			got := g.post(t, heardPath, heardRequest, heardType)
			if c.body != "" && (got.status != 200 || got.body != c.body) {
				t.Errorf("got %d %q", got.status, got.body)
			}
			if rec := g.ledger.next(t); rec != c.record {
				t.Errorf("record %q, want %q", rec, c.record)
			}
			seen := p.requests()
			if len(seen) != 1 || seen[0].body != heardRequest || "Content-Type: "+seen[0].header.Get("Content-Type") != heardType {
				t.Errorf("the upstream got %q", seen)
			}
		})
	}
}

// A type that is said twice could be read in two ways.
func TestTwoContentTypes(t *testing.T) {
	t.Parallel()
	g := setup{providers: []*provider{newProvider(t, answer(200, "application/json", `{"text":"a"}`))}}.start(t)
	got := g.raw(t, rawPost(heardPath, heardRequest, heardType, "Content-Type: multipart/form-data; boundary=C", "Connection: close"))
	if !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, "more than one Content-Type") {
		t.Errorf("got %q", got)
	}
}

// Text where a stream was asked for is no slow model: the gate's limit moves on.
func TestTextIsNotCommittedByTheGate(t *testing.T) {
	t.Parallel()
	limits := engine.Limits{Connect: time.Second, Headers: time.Second, Gate: 20 * time.Millisecond, Idle: 5 * time.Second}
	for _, text := range []string{"upstream connect error", "{\"error\":", "<html>", "\x00\x01", "error: busy\n"} {
		g := setup{providers: []*provider{newProvider(t, hang(streamHead+chunk(text))), newProvider(t, stream(textFrame, stopFrame, doneFrame))}, limits: limits}.start(t)
		if got := g.post(t, chatPath, streamRequest); got.body != textFrame+stopFrame+doneFrame {
			t.Errorf("%q: got %q", text, got.body)
		}
	}
}

// A whole answer over the bound streams through, unjudged.
func TestLargeAnswerStreamsThrough(t *testing.T) {
	t.Parallel()
	const size = 33 << 20
	p := newProvider(t, func(c net.Conn, _ int) bool {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
		_, err := io.WriteString(c, strings.Repeat(" ", size))
		return err == nil
	})
	g := setup{providers: []*provider{p, p}}.start(t)
	got := g.post(t, chatPath, wholeRequest)
	if got.status != 200 || len(got.body) != size || got.err != nil {
		t.Errorf("got %d with %d bytes, %v", got.status, len(got.body), got.err)
	}
	if rec := g.ledger.next(t); rec != "success 200 | ch1" {
		t.Errorf("record %q", rec)
	}
}
