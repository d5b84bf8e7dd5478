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

// recorded is a stream of testdata/streams with what a reader of its protocol knows of
// it. It is all that the test of the cuts goes by: the gate's own tables play no part.
type recorded struct {
	file   string
	path   string
	output string // within the first event that has output
	whole  string // within the first event after which an orderly end is a good one
	end    string // within the event that ends the stream whatever follows; empty: none
	error  string // the beginning of an event with an error, which ends all; empty: none
	piece  int    // bytes in each chunk of the transfer; 0: one event in each
	close  bool   // the upstream's closing ends the body instead of a last chunk
}

const (
	chatPath        = "/v1/chat/completions"
	messagesPath    = "/v1/messages"
	completionsPath = "/v1/completions"
	responsesPath   = "/v1/responses"
	geminiPath      = "/v1beta/models/" + model + ":streamGenerateContent?alt=sse"
)

var recordings = []recorded{
	{file: "chat_text", path: chatPath, output: `"Grüß"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_text", path: chatPath, output: `"Grüß"`, whole: `"stop"`, end: "[DONE]", piece: 47},
	{file: "chat_text", path: chatPath, output: `"Grüß"`, whole: `"stop"`, end: "[DONE]", close: true},
	{file: "chat_tools", path: chatPath, output: `"weather"`, whole: `"finish_reason":"tool_calls"`, end: "[DONE]"},
	{file: "chat_refusal", path: chatPath, output: `"I can't"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_usage", path: chatPath, output: `"42"`, whole: `"length"`, end: "[DONE]"},
	{file: "chat_two", path: chatPath, output: `"yes"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_crlf", path: chatPath, output: `"one\ntwo"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_crlf", path: chatPath, output: `"one\ntwo"`, whole: `"stop"`, end: "[DONE]", piece: 37},
	{file: "chat_comments", path: chatPath, output: `"ok"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_comments", path: chatPath, output: `"ok"`, whole: `"stop"`, end: "[DONE]", piece: 41},
	{file: "chat_reasoning", path: chatPath, output: `"Let me think"`, whole: `"stop"`, end: "[DONE]"},
	{file: "chat_unmarked", path: chatPath, output: `"no mark follows"`, whole: `"stop"`},
	{file: "chat_filters", path: chatPath, output: `"fine"`, whole: `"finish_reason":"content_filter"`, end: "[DONE]"},
	{file: "messages_text", path: messagesPath, output: `"Hello"`, whole: "message_stop", end: "message_stop"},
	{file: "messages_text", path: messagesPath, output: `"Hello"`, whole: "message_stop", end: "message_stop", piece: 67},
	{file: "messages_text", path: messagesPath, output: `"Hello"`, whole: "message_stop", end: "message_stop", close: true},
	{file: "messages_tools", path: messagesPath, output: `"weather"`, whole: "message_stop", end: "message_stop"},
	{file: "messages_thinking", path: messagesPath, output: `"Hm."`, whole: "message_stop", end: "message_stop"},
	{file: "messages_ping", path: messagesPath, output: `"Hi"`, whole: "message_stop", end: "message_stop"},
	{file: "messages_crlf", path: messagesPath, output: `"Hi"`, whole: "message_stop", end: "message_stop"},
	{file: "messages_unnamed", path: messagesPath, output: `"Hi"`, whole: "message_stop", end: "message_stop"},
	{file: "chat_failed", path: chatPath, output: `"Hel"`, whole: "[DONE]", error: `data: {"error"`},
	{file: "chat_failed", path: chatPath, output: `"Hel"`, whole: "[DONE]", error: `data: {"error"`, piece: 53},
	{file: "messages_failed", path: messagesPath, output: `"Hello"`, whole: "overloaded", error: "event: error"},
	{file: "messages_failed", path: messagesPath, output: `"Hello"`, whole: "overloaded", error: "event: error", piece: 71},
	{file: "completions_text", path: completionsPath, output: `"Once"`, whole: `"stop"`, end: "[DONE]"},
	{file: "responses_text", path: responsesPath, output: `"delta":"Hi"`, whole: "response.completed", end: "response.completed"},
	{file: "gemini_text", path: geminiPath, output: `"Hel"`, whole: `"STOP"`},
}

func (r recorded) name() string {
	name := r.file
	if r.piece > 0 {
		name += fmt.Sprintf(" in pieces of %d", r.piece)
	}
	if r.close {
		name += " ended by closing"
	}
	return name
}

// request is what a caller of the stream sends.
func (r recorded) request() string {
	switch r.path {
	case messagesPath:
		return rawPost(r.path, `{"model":"`+model+`","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	case responsesPath:
		return rawPost(r.path, `{"model":"`+model+`","stream":true,"store":false,"input":"hi"}`)
	case completionsPath:
		return rawPost(r.path, `{"model":"`+model+`","stream":true,"prompt":"hi"}`)
	case geminiPath:
		return rawPost(r.path, `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`)
	}
	return rawPost(r.path, streamRequest)
}

// wire is a stream as it goes over the upstream's connection.
type wire struct {
	bytes  string
	steps  []int // where each write ends
	head   int   // length of the response's head
	data   []int // how many bytes of the content the first i bytes of the wire hold
	left   []int // how many bytes of data a chunk still promises after the first i bytes
	output int   // how much of the content is needed for output …
	whole  int   // … for a good end, if it is orderly …
	end    int   // … and for one that is good whatever follows
	error  int   // where the event with an error begins …
	shown  int   // … and how far it may be given out, not yet known for one
}

// after returns where the event that holds text ends.
func after(content, text string) int {
	at := strings.Index(content, text)
	if at < 0 {
		panic("the stream has no " + text)
	}
	end := len(content)
	for _, blank := range []string{"\n\n", "\r\n\r\n"} {
		if i := strings.Index(content[at:], blank); i >= 0 {
			end = min(end, at+i+len(blank))
		}
	}
	return end
}

func (r recorded) wire(content string) *wire {
	w := &wire{output: after(content, r.output), whole: after(content, r.whole), end: len(content) + 1}
	if r.end != "" {
		w.end = after(content, r.end)
	}
	w.error = len(content) + 1
	if r.error != "" {
		w.error = strings.Index(content, r.error)
		w.shown = w.error + len(r.error)
	}
	w.data, w.left = []int{0}, []int{0}
	have, promised := 0, 0
	put := func(s string, isData bool) {
		for range len(s) {
			if isData {
				have++
				promised--
			}
			w.data, w.left = append(w.data, have), append(w.left, promised)
		}
		w.bytes += s
	}
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
	if r.close {
		put(head+"Connection: close\r\n\r\n", false)
	} else {
		put(head+"Transfer-Encoding: chunked\r\n\r\n", false)
	}
	w.head = len(w.bytes)
	for rest := content; rest != ""; {
		n := after(rest, "")
		if r.piece > 0 {
			n = min(r.piece, len(rest))
		}
		if r.close {
			put(rest[:n], true)
		} else {
			put(fmt.Sprintf("%x\r\n", n), false)
			promised = n
			w.left[len(w.bytes)] = n
			put(rest[:n], true)
			put("\r\n", false)
		}
		w.steps = append(w.steps, len(w.bytes))
		rest = rest[n:]
	}
	if !r.close {
		put("0\r\n\r\n", false)
		w.steps = append(w.steps, len(w.bytes))
	}
	return w
}

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
			if got.status == 404 {
				t.Logf("%s is not served", r.path)
				return
			}
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
