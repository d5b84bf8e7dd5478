package plugins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// lookup follows a path in a text and returns the value's text, as a guest gets it.
func lookup(text, path string) (string, bool) {
	c := newCall()
	c.reset(&engine.Evidence{Body: []byte(text)}, time.Minute)
	defer c.end()
	slot := c.document(docFailing)
	if slot == noSlot || len(c.docs[slot].nodes) == 0 {
		return "", false
	}
	p, ok := c.follow(place{slot: slot}, []byte(path), 0)
	if !ok {
		return "", false
	}
	raw := c.docs[p.slot].raw(p.node)
	if c.node(p).kind != kindString {
		return string(raw), true
	}
	out := make([]byte, len(raw)*3)
	n, _ := unescape(nil, out, raw)
	return string(out[:n]), true
}

func TestPath(t *testing.T) {
	t.Parallel()
	const text = ` {"error": {"message":"a \"b\" \u00e9\ud83d\ude00\\", "code":429, "n":null, "details":[{"x":1},{"retryDelay":"7s"},{"retryDelay":"9s"}]},
		"inner":"{\"error\":{\"code\":\"deep\"},\"list\":[1,2]}", "list":[[1,2],[3]], "a.b":1, "":2} `
	f := func(path, want string) {
		t.Helper()
		got, ok := lookup(text, path)
		if want == "absent" {
			if ok {
				t.Errorf("%s: %q; want it absent", path, got)
			}
			return
		}
		if got != want {
			t.Errorf("%s: %q; want %q", path, got, want)
		}
	}
	f("error.message", `a "b" é😀\`)
	f("error.code", "429")
	f("error.n", "null")
	f("error.details.1.retryDelay", "7s")
	f("error.details.*.retryDelay", "7s")
	f("error.details.*.nothing", "absent")
	f("*.code", "429")
	f("inner.@json.error.code", "deep")
	f("inner.@json.list.1", "2")
	f("list.1.0", "3")
	f("list.2", "absent")
	f("list.x", "absent")
	f("error.message.x", "absent")
	f("error.message.@json.x", "absent")
	f("Error.code", "absent") // keys are case-sensitive
	f("error.details.00000", "absent")
	f(strings.Repeat("*.", 40)+"x", "absent")
}

func TestJSONState(t *testing.T) {
	t.Parallel()
	f := func(text string, want int32) {
		t.Helper()
		var d jsonDoc
		d.index(nil, []byte(text))
		if d.state != want {
			t.Errorf("%.40q: state %d; want %d", text, d.state, want)
		}
	}
	f("", jsonNone)
	f("  ", jsonNone)
	f("null", jsonNone)
	f(`"text"`, jsonNone)
	f("<html>", jsonNone)
	f("{}", jsonComplete)
	f("\xef\xbb\xbf[]\r\n", jsonComplete)
	f(`[{"a":[1,-2.5e3,true,false,null,"\\"]},[]]`, jsonComplete)
	f("[", jsonTruncated)
	f(`{"a`, jsonTruncated)
	f(`{"a":`, jsonTruncated)
	f(`{"a":tr`, jsonTruncated)
	f(`{"a":1,`, jsonTruncated)
	f(`{"a":"\"`, jsonTruncated)
	f(`{"a":1}}`, jsonBad)
	f(`{"a":1 "b":2}`, jsonBad)
	f(`{a:1}`, jsonBad)
	f(`[1,,2]`, jsonBad)
	f(`[1}`, jsonBad)
	f(strings.Repeat("[", 1000)+strings.Repeat("]", 1000), jsonBad)
	f("["+strings.Repeat(" ", maxJSONText)+"]", jsonUnjudged)
}

// FuzzJSON holds that the index agrees with encoding/json about what is whole, gives the
// same values for it, and never leaves its text, whatever that is.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":{"b":"\u00e9\ud83d\ude00"},"c":[1,"x",null]}`, `{"a":"{\"b\":1}"}`, "[[[[", `{"a":"\`, `[1,]`, "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(s), "a.b")
	}
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		var d jsonDoc
		d.index(nil, text)
		for i := range d.nodes {
			n := d.nodes[i]
			if int(n.next) <= i || int(n.next) > len(d.nodes) || n.start > n.end || int(n.end) > len(text) {
				t.Fatalf("node %d of %d is %+v", i, len(d.nodes), n)
			}
		}
		_, _ = lookup(string(text), path)
		if len(text) > 4096 || !json.Valid(text) {
			return
		}
		var object map[string]any
		if json.Unmarshal(text, &object) != nil || object == nil {
			return
		}
		if d.state == jsonBad && bytes.Count(text, []byte{'['})+bytes.Count(text, []byte{'{'}) > maxJSONDepth {
			return // too deep
		}
		if d.state != jsonComplete {
			t.Fatalf("%q is whole, and its state is %d", text, d.state)
		}
		for key, value := range object {
			want, isText := value.(string)
			got, ok := lookup(string(text), key)
			plain := !strings.ContainsAny(key, `.*|@"\`) && key != "" && strings.Count(string(text), fmt.Sprintf("%q", key)) == 1
			if isText && plain && ok && got != want {
				t.Fatalf("%q has %q, and the index says %q", key, want, got)
			}
		}
	})
}

func TestInteger(t *testing.T) {
	t.Parallel()
	f := func(text string, want int64, wantOK bool) {
		t.Helper()
		var d jsonDoc
		d.index(nil, []byte("["+text+"]"))
		if got, ok := d.integer(1); got != want || ok != wantOK {
			t.Errorf("%s: %d, %v; want %d, %v", text, got, ok, want, wantOK)
		}
	}
	f("429", 429, true)
	f(`"1302"`, 1302, true)
	f("-5", -5, true)
	f(`""`, 0, false)
	f(`"-"`, 0, false)
	f("1.5", 0, false)
	f("1e3", 0, false)
	f("99999999999999999999", 0, false)
	f(`"model"`, 0, false)
	f("true", 0, false)
}
