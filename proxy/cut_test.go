package proxy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// cut is how an upstream's connection breaks off.
type cut uint8

const (
	cutFIN cut = iota
	cutRST
	cutStall
	cutGarbage
)

var cuts = map[string]cut{"FIN": cutFIN, "RST": cutRST, "stall": cutStall, "garbage": cutGarbage}

// garbage is neither HTTP's nor an event's: no line ends, no digit.
var garbage = strings.Repeat("\xf0\x9f\x01<\x00>~\xfe", 200)

// expected is what must come of a cut.
type expected struct {
	phase   string // where the first channel fails; empty: nowhere
	content string // what the caller gets, but for an error event of ours
	partial bool
	less    string // what it gets instead, perhaps: without the beginning of an error
}

// expect is the oracle: where the cut is, in the table's terms, says all.
func (w *wire) expect(content string, at int, how cut, closes bool) expected {
	got, have := content[:w.data[at]], w.data[at]
	orderly := at == len(w.bytes) // nothing is missing
	if how == cutGarbage && at >= w.head {
		more := garbage
		if !closes {
			more = garbage[:w.left[at]]
		}
		if got += more; more != "" && strings.HasSuffix(content[:have], "\r\n\r") {
			have++ // a CR ends a line, too, unless an LF follows
		}
	}
	if closes && (how == cutFIN || how == cutGarbage) {
		orderly = true // the only end that it has
	} else if closes {
		orderly = false
	}
	switch {
	case at < w.head:
		return expected{phase: "before_headers"}
	case have < w.output:
		return expected{phase: "before_output"}
	case have > w.error:
		// Nothing of the error goes out, or no more than what any event may begin with.
		e := expected{phase: "after_output", content: content[:w.error], partial: true}
		if e.less = e.content; have < w.shown {
			e.content = wholeEvents(got)
		}
		return e
	case have >= w.end, orderly && have >= w.whole:
		return expected{content: got}
	}
	return expected{phase: "after_output", content: wholeEvents(got), partial: true}
}

// wholeEvents is text up to the end of its last whole event: half an event before the
// error would be what clients fail on.
func wholeEvents(text string) string {
	end := 0
	for _, blank := range []string{"\n\n", "\n\r\n"} {
		if i := strings.LastIndex(text, blank); i >= 0 {
			end = max(end, i+len(blank))
		}
	}
	// A CR ends a line by itself, unless an LF follows.
	if i := strings.LastIndex(text, "\n\r"); i >= 0 && i+2 < len(text) && text[i+2] != '\n' {
		end = max(end, i+2)
	}
	return text[:end]
}

// play sends the wire up to the cut.
func (w *wire) play(c *memConn, at int, how cut, slow bool) {
	if !readRequest(c) {
		return
	}
	from := 0
	for _, to := range w.steps {
		if to = min(to, at); to > from {
			if _, err := c.Write([]byte(w.bytes[from:to])); err != nil {
				return
			}
			from = to
			if slow {
				time.Sleep(time.Millisecond) // until it has been read
			}
		}
	}
	switch how {
	case cutFIN:
		c.Close()
	case cutRST:
		c.reset()
	case cutGarbage:
		_, _ = c.Write([]byte(garbage))
		c.Close()
	case cutStall:
	}
}

// ourEvent is an error event of the gateway's own.
var ourEvent = regexp.MustCompile(`^(?:event: error\n)?data: (\{"(?:error|type)":[^\n]*\})\n\n$`)

// TestCutAtEveryByte breaks each recorded stream off behind each of its bytes on the wire,
// head and framing included, in each of four ways. Before output, the caller gets the
// other channel's stream and nothing else; after it, what had come and one error event;
// and the whole stream once its end has come.
func TestCutAtEveryByte(t *testing.T) {
	t.Parallel()
	cutAll(t, recordings, engine.Hold{})
}

// TestCutOfHeldStreamsAtEveryByte does the same where streams are held until they are
// whole: a cut anywhere before the end falls back then.
func TestCutOfHeldStreamsAtEveryByte(t *testing.T) {
	t.Parallel()
	var some []recorded
	for _, r := range recordings {
		switch r.name() {
		case "chat_usage", "chat_text ended by closing", "chat_crlf in pieces of 37", "chat_failed", "messages_tools", "responses_text", "gemini_text":
			some = append(some, r)
		}
	}
	cutAll(t, some, complete)
}

func cutAll(t *testing.T, list []recorded, hold engine.Hold) {
	var cases atomic.Int64
	t.Cleanup(func() { t.Logf("%d cases", cases.Load()) })
	for _, r := range list {
		content := r.read(t)
		// The second channel's is alike, but for a text, and whole.
		good := recorded{file: strings.Replace(r.file, "_failed", "_text", 1)}.read(t)
		second := strings.NewReplacer("Hello", "Second", "Grüß", "Second", `"Hi"`, `"Second"`, "yes", "Second").Replace(good)
		for name, how := range cuts {
			if (r.piece > 0 || hold.Complete) && (how == cutRST || how == cutStall) {
				continue // the other variants of the stream have these
			}
			t.Run(r.name()+", "+name, func(t *testing.T) {
				t.Parallel()
				cases.Add(int64(cutEverywhere(t, r, content, second, how, hold)))
			})
		}
	}
}

func (r recorded) read(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "streams", r.file+".sse"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func cutEverywhere(t *testing.T, r recorded, content, second string, how cut, hold engine.Hold) (cases int) {
	w := r.wire(content)
	healthy := recorded{output: "data", whole: "data"}.wire(second)
	s := setup{
		hold:   hold,
		limits: engine.Limits{Connect: 5 * time.Second, Headers: 5 * time.Second, Gate: 20 * time.Second, Idle: 3 * time.Second},
		policy: func(*engine.Question) engine.Decision {
			return engine.Decision{Action: engine.Fallback, Gates: passAll}
		},
	}
	s.inBubble(t, 0, func(b *bubble) {
		caller := b.call()
		br := bufio.NewReader(caller)
		for at := 0; at <= len(w.bytes); at++ {
			cases++
			b.serve(func(channel string, c *memConn) {
				if channel == "ch1" {
					w.play(c, at, how, r.piece > 0)
				} else {
					healthy.play(c, len(healthy.bytes), cutFIN, false)
				}
			})
			got := b.ask(caller, br, r.request())
			want := w.expect(content, at, how, r.close)
			if want.partial && hold.Complete {
				want = expected{phase: "before_output"}
			}
			if problem := judge(got, b.ledger.next(t), want, second); problem != "" {
				t.Errorf("cut behind byte %d, %q: %s", at, tailOf(w.bytes[:at]), problem)
			}
			if open := b.drained(); open > 0 {
				t.Errorf("cut behind byte %d: %d upstream connections stay open", at, open)
			}
			if t.Failed() {
				return // the rest would say the same
			}
		}
	})
	return cases
}

// judge compares what the caller and the ledger got with what they should.
func judge(got response, record string, want expected, second string) string {
	if got.status != 200 || got.err != nil {
		return fmt.Sprintf("status %d, error %v, record %q", got.status, got.err, record)
	}
	switch want.phase {
	case "before_headers", "before_output":
		var class string
		if n, _ := fmt.Sscanf(record, "success 200 | ch1 %s "+want.phase+" | ch2", &class); n != 1 || !strings.HasSuffix(record, want.phase+" | ch2") {
			return fmt.Sprintf("record %q, want a failure %s and success of ch2", record, want.phase)
		}
		if got.body != second {
			return fmt.Sprintf("the caller got %q instead of the second channel's stream", got.body)
		}
		return ""
	case "":
		if record != "success 200 | ch1" || got.body != want.content {
			return fmt.Sprintf("record %q, body %q; want the whole of it, %q", record, got.body, want.content)
		}
		return ""
	}
	if record != "partial 200 | ch1 partial after_output" {
		return fmt.Sprintf("record %q, want a partial answer", record)
	}
	rest, ok := strings.CutPrefix(got.body, want.content)
	if !ok && want.less != "" {
		want.content = want.less
		rest, ok = strings.CutPrefix(got.body, want.content)
	}
	if !ok {
		return fmt.Sprintf("the caller got %q, want it to begin with %q", got.body, want.content)
	}
	event := ourEvent.FindStringSubmatch(rest)
	id := got.header.Get("X-Request-Id")
	if event == nil || !json.Valid([]byte(event[1])) || id == "" || !strings.Contains(event[1], id) {
		return fmt.Sprintf("after its content the caller got %q; want one error event with the id %s", rest, id)
	}
	return ""
}

func tailOf(s string) string { return s[max(len(s)-40, 0):] }
