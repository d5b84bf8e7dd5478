package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseScript(t *testing.T) {
	t.Parallel()
	f := func(text string, want ...Fault) {
		t.Helper()
		got, err := ParseScript(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			return
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
	f("ok", Fault{})
	f(" ok , ok\nok\n\n", Fault{}, Fault{}, Fault{})
	f("status=503", Fault{Kind: Error, Status: 503})
	f("status=429 retry-after=2 retry-after-ms=1500", Fault{Kind: Error, Status: 429, RetryAfter: "2", RetryAfterMS: "1500"})
	f(`status=429 retry-after="Wed, 21 Oct 2026 07:28:00 GMT"`, Fault{Kind: Error, Status: 429, RetryAfter: "Wed, 21 Oct 2026 07:28:00 GMT"})
	f("status=429 retry-after-date=2s", Fault{Kind: Error, Status: 429, RetryAfterDate: 2 * time.Second})
	f("status=429 code=insufficient_quota type=insufficient_quota message=`out of money, sorry`",
		Fault{Kind: Error, Status: 429, Code: "insufficient_quota", Type: "insufficient_quota", Message: "out of money, sorry"})
	f("error-in-stream", Fault{Break: ErrorFrame, At: BeforeOutput})
	f("error-in-stream after=3 status=429", Fault{Break: ErrorFrame, At: AfterContent, After: 3, Status: 429})
	f("cut before-headers, cut before-output, cut after=3, cut before-end",
		Fault{Break: Cut}, Fault{Break: Cut, At: BeforeOutput}, Fault{Break: Cut, At: AfterContent, After: 3}, Fault{Break: Cut, At: BeforeEnd})
	f("after=1 reset tool-call", Fault{Kind: ToolCall, Break: Reset, At: AfterContent, After: 1})
	f("status=503 stall before-output", Fault{Kind: Error, Status: 503, Break: Stall, At: BeforeOutput})
	f("slow headers=1s first=2s gap=20ms", Fault{Headers: time.Second, First: 2 * time.Second, Gap: 20 * time.Millisecond})
	f("empty, html, truncated, json-error", Fault{Kind: Empty}, Fault{Kind: HTML}, Fault{Break: Truncated}, Fault{Kind: ErrorBody200})
	f(`body="{\"a\":\"b, c\"}" status=404`, Fault{Kind: Body, Body: `{"a":"b, c"}`, Status: 404})
	f("body=`{\"a\":1}`", Fault{Kind: Body, Body: `{"a":1}`})
	f(`ok model=other chunks=50 bytes=1500 split=7 burst close hangup`,
		Fault{Model: "other", Chunks: 50, Bytes: 1500, Split: 7, Burst: true, Close: true, Hangup: true})
	f(`ok header="X-Should-Retry: false" header=a:b`, Fault{Header: []Field{{"X-Should-Retry", "false"}, {"a", "b"}}})
	f("status=503 times=3, ok again", Fault{Kind: Error, Status: 503, Times: 3}, Fault{Again: true})
}

func TestParseScriptErrors(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		_, err := ParseScript(text)
		if err == nil {
			t.Errorf("%q was accepted", text)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant it to say %q", text, err, want)
		}
	}
	f("", "it is empty")
	f("ok,,ok", "fault 2 of the script: nothing stands before the comma")
	f("ok, cutt after=3", `fault 2 of the script: "cutt" is no word of a fault`)
	f("ok, status=99", "cannot use status=99: it must be a whole number from 200 to 599")
	f("status", "status needs a value")
	f("ok=1", "ok takes no value")
	f("cut", "say where")
	f("before-output", "a place needs what happens there")
	f("after=3", "a place needs what happens there")
	f("cut reset after=1", "cut and reset can't both happen")
	f("cut after=1 before-end", "two places")
	f("end before-headers", "needs response headers")
	f("truncated after=1", "truncated takes no place")
	f("refusal tool-call", "can't both be answered")
	f("ok status=503", "can't stand beside ok")
	f("html error-in-stream", "needs an answer that streams")
	f("status=503 chunks=3", "belong to an answer")
	f("ok code=x", "belong to an error")
	f("html code=x", "belong to an error")
	f("ok gap=fast", "a time such as 20ms")
	f("ok gap=48h", "at most 24h")
	f(`body="abc`, "a quote is not closed")
	f(`body="abc"x`, "a space must follow")
	f(`code=a"b" status=500`, "whole value of code= in quotes")
	f(`ok header="Content-Length: 3"`, "the simulator's own")
	f(`ok header="no colon"`, "Name: value")
	f(`ok header="a: b\r\nc: d"`, "no line end")
	f("ok ok", "stands twice")
	f("status=429 retry-after=1 retry-after-date=1s", "the same header")
}

func FuzzParseScript(f *testing.F) {
	for _, seed := range []string{
		"ok", "status=503, ok again", "cut after=3\nreset before-output", `body="{\"a\":\"b, c\"}" status=404`,
		"tool-call stall after=1 first=2s gap=1ms times=2", "header=`a: b` ok", "status=429 retry-after-date=2s",
		`error-in-stream status=429 message="a b"`, "ok chunks=50 bytes=1500 split=7 burst",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		script, err := ParseScript(text)
		if err != nil {
			return
		}
		var forms []string
		for _, fault := range script {
			forms = append(forms, fault.String())
		}
		again, err := ParseScript(strings.Join(forms, ", "))
		if err != nil {
			t.Fatalf("%q became %q: %v", text, forms, err)
		}
		if d := cmp.Diff(script, again); d != "" {
			t.Fatalf("%q became %q (-first +second):\n%s", text, forms, d)
		}
	})
}
