package proxy

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestErrorShapes(t *testing.T) {
	t.Parallel()
	p := &problem{status: http.StatusServiceUnavailable, code: "fourgate_exhausted", message: "a \"quoted\"\nline", recorded: true}
	const text = `a \"quoted\"\u000aline (request R; see: fourgate ledger show R)`
	for _, c := range []struct {
		target      string
		body, event string
	}{
		{"/v1/chat/completions",
			`{"error":{"message":"` + text + `","type":"server_error","param":null,"code":"fourgate_exhausted"}}`,
			"data: BODY\n\n"},
		{"/v1/messages",
			`{"type":"error","error":{"type":"api_error","message":"` + text + `","details":{"error_code":"fourgate_exhausted"}},"request_id":"R"}`,
			"event: error\ndata: BODY\n\n"},
		{"/v1beta/models/m:generateContent",
			`{"error":{"code":503,"message":"` + text + `","status":"UNAVAILABLE"}}`,
			"data: BODY\n\n"},
		{"/v1/responses",
			`{"error":{"message":"` + text + `","type":"server_error","param":null,"code":"fourgate_exhausted"}}`,
			`event: error` + "\n" + `data: {"type":"error","code":"fourgate_exhausted","message":"` + text + `","param":null,"sequence_number":0,` +
				`"error":{"message":"` + text + `","type":"server_error","param":null,"code":"fourgate_exhausted"}}` + "\n\n"},
		{"/v1beta/models/m:streamGenerateContent",
			`{"error":{"code":503,"message":"` + text + `","status":"UNAVAILABLE"}}`,
			"[BODY]\n"},
	} {
		shape := shapeOf(locate(c.target))
		if diff := cmp.Diff(c.body, string(shape.appendError(nil, p, "R"))); diff != "" {
			t.Errorf("%s, body (-want +got):\n%s", c.target, diff)
		}
		if diff := cmp.Diff(strings.Replace(c.event, "BODY", c.body, 1), string(shape.appendEvent(nil, p, "R", streamPlace{}))); diff != "" {
			t.Errorf("%s, event (-want +got):\n%s", c.target, diff)
		}
	}
}

// The types per status that SDKs make their typed errors from.
func TestErrorTypes(t *testing.T) {
	t.Parallel()
	for status, want := range map[int][3]string{
		400: {"invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"},
		401: {"invalid_request_error", "authentication_error", "UNAUTHENTICATED"},
		402: {"invalid_request_error", "billing_error", "RESOURCE_EXHAUSTED"},
		403: {"permission_error", "permission_error", "PERMISSION_DENIED"},
		404: {"invalid_request_error", "not_found_error", "NOT_FOUND"},
		409: {"invalid_request_error", "conflict_error", "ABORTED"},
		413: {"invalid_request_error", "request_too_large", "INVALID_ARGUMENT"},
		429: {"rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED"},
		500: {"server_error", "api_error", "INTERNAL"},
		502: {"server_error", "api_error", "UNAVAILABLE"},
		503: {"server_error", "api_error", "UNAVAILABLE"},
		504: {"timeout", "timeout_error", "DEADLINE_EXCEEDED"},
		529: {"server_error", "api_error", "UNAVAILABLE"},
	} {
		if got := [3]string{openAIType(status), anthropicType(status), geminiStatus(status)}; got != want {
			t.Errorf("%d is %v, want %v", status, got, want)
		}
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	second := engine.WaitOf(time.Second)
	for name, c := range map[string]struct {
		p       problem
		retry   bool
		seconds string
		millis  string
	}{
		"a rate that frees soon":       {problem{status: 429, retryAfter: engine.WaitOf(1500 * time.Millisecond)}, true, "2", "1500"},
		"a wait that SDKs split over":  {problem{status: 429, retryAfter: engine.WaitOf(2 * time.Minute)}, false, "120", ""},
		"nobody knows when":            {problem{status: 503}, false, "", ""},
		"after attempts":               {problem{status: 503, retryAfter: second, final: true}, false, "1", ""},
		"an error that waiting leaves": {problem{status: 404, retryAfter: second}, false, "", ""},
		"free at once":                 {problem{status: 429, retryAfter: engine.WaitOf(0)}, true, "1", "1"},
	} {
		if retry, seconds, millis := c.p.advice(); retry != c.retry || seconds != c.seconds || millis != c.millis {
			t.Errorf("%s: %v %q %q", name, retry, seconds, millis)
		}
	}
}

func FuzzQuoted(f *testing.F) {
	f.Add("plain")
	f.Add("\"\\\x00\x7f\xff\u2028é")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendQuoted(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(s) && got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func FuzzBrokenTarget(f *testing.F) {
	f.Add(`error when reading request headers: x: buffer size=9, contents: "POST /v1/messages HTTP/1.1\r\n"`)
	f.Add("contents: \"")
	f.Fuzz(func(t *testing.T, text string) {
		if target := brokenTarget(errors.New(text)); !strings.Contains(text, target) || strings.Contains(target, " ") {
			t.Errorf("%q", target)
		}
	})
}
