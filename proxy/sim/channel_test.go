package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// client is one that keeps its connections to itself and doesn't follow its own mind.
func client(t testing.TB) *http.Client {
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// call sends one request and returns the status and the body.
func call(t testing.TB, c *http.Client, url, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(patience(t), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(got)
}

func TestScriptOrder(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{}), client(t)
	f := func(text string, want ...int) {
		t.Helper()
		s.Channel("a").Script(script(t, text)...)
		var got []int
		for range want {
			status, _ := call(t, c, s.URL("a")+"/v1/chat/completions", chatWhole)
			got = append(got, status)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
	f("status=503, ok", 503, 200, 200, 200)
	f("ok, status=503", 200, 503, 503, 503)
	f("status=503 times=2, ok", 503, 503, 200)
	f("status=503, status=500, ok again", 503, 500, 200, 503, 500, 200, 503)
	f("status=503 times=2 again", 503, 503, 503)
	s.Channel("a").Script()
	if status, _ := call(t, c, s.URL("a")+"/v1/chat/completions", chatWhole); status != 200 {
		t.Errorf("no script: %d", status)
	}
}

func TestChannelsAreApart(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{}), client(t)
	s.Channel("a").Script(script(t, "status=503")...)
	s.Channel("b").Model("other")
	if status, _ := call(t, c, s.URL("a")+"/v1/chat/completions", chatWhole); status != 503 {
		t.Errorf("a: %d", status)
	}
	if _, body := call(t, c, s.URL("b")+"/v1/chat/completions", chatWhole); !strings.Contains(body, `"model":"other"`) {
		t.Errorf("b: %s", body)
	}
	if _, body := call(t, c, s.URL("new")+"/v1/messages", claudeWhole); !strings.Contains(body, `"model":"claude-sonnet-4-5-20250929"`) {
		t.Errorf("new: %s", body)
	}
	if got := [...]int{s.Count("a"), s.Count("b"), s.Count("new"), s.Count("nobody")}; got != [...]int{1, 1, 1, 0} {
		t.Errorf("counts %v", got)
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{}), client(t)
	s.Channel("a").Accept("sk-good", "sk-spare")
	s.Channel("a").Script(script(t, "status=503, ok")...)
	f := func(want int, target string, headers ...string) {
		t.Helper()
		if got, _ := call(t, c, s.URL("a")+target, chatWhole, headers...); got != want {
			t.Errorf("%s %v: %d, want %d", target, headers, got, want)
		}
	}
	const path = "/v1/chat/completions"
	f(401, path)
	f(401, path, "Authorization", "Bearer sk-bad")
	f(503, path, "Authorization", "Bearer sk-good") // the refused ones took nothing of the script
	f(200, path, "X-Api-Key", "sk-spare")
	f(200, path, "Api-Key", "sk-good")
	f(200, "/v1beta/models/g:generateContent?key=sk-good")
	f(401, "/v1beta/models/g:generateContent?key=sk-other")
}

func TestSeen(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Keep: 2})
	nc := dial(t, s)
	post(t, nc, "/a/v1/chat/completions?x=1", `{"n":1}`)
	post(t, nc, "/a/v1/chat/completions?x=2", `{"n":2}`, "X-Fourgate-Attempt: 2", "x-dup: a", "X-Dup: b")
	if _, err := io.WriteString(nc, "POST /a/v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"+
		"4\r\n{\"n\"\r\n3;x=y\r\n:3}\r\n0\r\nTrailer: t\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, end := readAll(t, nc); strings.Count(got, "HTTP/1.1 200") != 3 || end != "FIN" {
		t.Errorf("%s after\n%s", end, got)
	}
	if err := s.Wait(patience(t), func() bool { return s.Count("a") == 3 && s.Requests("a")[1].Done }); err != nil {
		t.Fatal(err)
	}
	kept := s.Requests("a")
	if len(kept) != 2 {
		t.Fatalf("%d are kept, want 2", len(kept))
	}
	two, three := kept[0], kept[1]
	if two.N != 2 || two.Target != "/a/v1/chat/completions?x=2" || two.Path != "/v1/chat/completions" ||
		string(two.Body) != `{"n":2}` || two.Attempt() != "2" || two.Get("X-DUP") != "a" || two.Conn != three.Conn {
		t.Errorf("%+v", two)
	}
	if d := cmp.Diff([]Field{{"x-dup", "a"}, {"X-Dup", "b"}}, two.Header[len(two.Header)-2:]); d != "" {
		t.Errorf("headers as written (-want +got):\n%s", d)
	}
	if string(three.Body) != `{"n":3}` || three.Path != "/v1/messages" {
		t.Errorf("%+v", three)
	}
}

// A call that was cut off while it was being sent is a call: it is counted, and the
// script stays where it is.
func TestHalfSent(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{}), client(t)
	s.Channel("a").Script(script(t, "status=503, ok")...)
	nc := dial(t, s)
	if _, err := io.WriteString(nc, "POST /a/v1/messages HTTP/1.1\r\nContent-Length: 99\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if err := s.WaitGone(patience(t), "a", 1); err != nil {
		t.Fatal(err)
	}
	if status, _ := call(t, c, s.URL("a")+"/v1/messages", claudeWhole); status != 503 || s.Count("a") != 2 {
		t.Errorf("status %d, count %d; want 503 and 2", status, s.Count("a"))
	}
	if r := s.Requests("a")[0]; r.Done || r.Body != nil {
		t.Errorf("%+v", r)
	}
}

func TestHangup(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	s.Channel("a").Script(script(t, "ok hangup")...)
	nc := dial(t, s)
	post(t, nc, "/a/v1/chat/completions", chatWhole)
	if got, end := readAll(t, nc); end != "FIN" || strings.Contains(got, "Connection:") || !strings.HasSuffix(got, "}") {
		t.Errorf("%s after\n%s", end, got)
	}
}

func TestExpectContinue(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	nc := dial(t, s)
	post(t, nc, "/a/v1/chat/completions", chatWhole, "Expect: 100-continue", "Connection: close")
	if got, _ := readAll(t, nc); !strings.HasPrefix(got, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	f := func(raw, want string) {
		t.Helper()
		nc := dial(t, s)
		if _, err := io.WriteString(nc, raw); err != nil {
			t.Fatal(err)
		}
		if got, _ := readAll(t, nc); !strings.HasPrefix(got, want) {
			t.Errorf("%q got\n%s\nwant %s", raw, got, want)
		}
	}
	f("nonsense\r\n", "HTTP/1.1 400 ")
	f("GET /a/v1/models HTTP/1.0\r\n", "HTTP/1.1 505 ")
	f("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ")
	f("POST /a/v1/messages HTTP/1.1\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 400 ")
	f("POST /a/v1/messages HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", "HTTP/1.1 413 ")
	f("POST /a/v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 ")
	f("GET /a/v1/models HTTP/1.1\r\nno colon\r\n", "HTTP/1.1 400 ")
}

// Every answer of every endpoint is JSON, whole or frame by frame, and of the asked size.
func TestAnswersAreJSON(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{}), client(t)
	targets := map[string]string{
		"/v1/chat/completions":                           `{"model":"m \"x\"","stream":%v,"stream_options":{"include_usage":true},"tools":[{"function":{"name":"t"}}]}`,
		"/v1/completions":                                `{"model":"m","stream":%v,"stream_options":{"include_usage":true}}`,
		"/v1/responses":                                  `{"model":"m","stream":%v,"tools":[{"name":"t"}]}`,
		"/v1/messages":                                   `{"model":"m","stream":%v,"tools":[{"name":"t"}]}`,
		"/v1/embeddings":                                 `{"model":"m","encoding_format":"base64","x":%v}`,
		"/v1/models":                                     `%v`,
		"/v1/images/generations":                         `{"model":"m","x":%v}`,
		"/v1/audio/transcriptions":                       `--form %v`,
		"/v1beta/models/g:generateContent":               `{"x":%v}`,
		"/v1beta/models/g:streamGenerateContent":         `{"x":%v}`,
		"/v1beta/models/g:streamGenerateContent?alt=sse": `{"x":%v}`,
	}
	// Their answers have a size of their own, or are streams, whose content has.
	fixed := []string{"/v1/embeddings", "/v1/models", "/v1/images/generations", "/v1beta/models/g:streamGenerateContent"}
	for target, body := range targets {
		for _, kind := range kindNames[:Error] {
			for _, stream := range []bool{false, true} {
				name := fmt.Sprintf("%s %s %v", target, kind, stream)
				s.Channel("a").Script(script(t, kind+" bytes=2000 chunks=3")...)
				_, got := call(t, c, s.URL("a")+target, fmt.Sprintf(body, stream))
				if !strings.HasPrefix(got, "data: ") && !strings.HasPrefix(got, "event: ") {
					if !json.Valid([]byte(got)) {
						t.Errorf("%s is no JSON: %s", name, got)
					}
					if sized := kind == "ok" || kind == "length" || kind == "tool-call"; sized && len(got) != 2000 &&
						!slices.Contains(fixed, target) {
						t.Errorf("%s has %d bytes, want 2000: %s", name, len(got), got)
					}
					continue
				}
				for _, frame := range strings.Split(strings.TrimSuffix(got, "\n\n"), "\n\n") {
					_, data, ok := strings.Cut(frame, "data: ")
					if !ok || data != "[DONE]" && !json.Valid([]byte(data)) {
						t.Errorf("%s has the frame %q", name, frame)
					}
				}
			}
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	s, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Channel("a").Script(script(t, "stall before-headers")...)
	nc := dial(t, s)
	post(t, nc, "/a/v1/chat/completions", chatWhole)
	if err := s.WaitArrived(patience(t), "a", 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if r := s.Requests("a")[0]; r.Gone {
		t.Error("the simulator's own close looks like the peer's")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(ln); err == nil {
		t.Error("a closed simulator serves")
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is still open: %v", err)
	}
}
