package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fourgate-dev/fourgate/engine"
)

func TestShapeOf(t *testing.T) {
	t.Parallel()
	f := func(name string, ev engine.Evidence, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := engine.ShapeOf(&ev)
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Error(diff)
			}
			back, err := engine.ParseShape(got.String())
			if err != nil || back != got {
				t.Errorf("read back: %v, %v", back, err)
			}
		})
	}
	http := func(status int, body string, headers ...string) engine.Evidence {
		ev := engine.Evidence{Transport: engine.TransportHTTP, Status: status, Body: []byte(body)}
		for _, h := range headers {
			ev.Headers = append(ev.Headers, engine.Header{Name: h, Value: "a secret"})
		}
		return ev
	}
	f("names and types", http(418, ` {"error":{"code":"teapot","n":1,"ok":false,"none":null,"list":[{"a":"x"},{"a":2}]},"z":[],"y":{}}`, "X-Request-Id", "content-type"),
		`{"transport":"http","status":418,"headers":["content-type","x-request-id"],"body":"json","members":["error.code string","error.list[].a number","error.list[].a string","error.n number","error.none null","error.ok boolean","y object","z array"]}`)
	f("hidden names", http(500, `{"sk-4f9a1b":1,"what is my name":2,"org_12":3,"":4}`, "x-4711"),
		`{"transport":"http","status":500,"headers":["other"],"body":"json","members":["? number","org_12 number"]}`)
	f("secrets as names", http(500, `{"sk-live-abcdef":1,"sk_live_abcdef":1,"pk_live":1,"key-x":1,"correct-horse-battery":1,"aGdXvPqRt":1,"AKIAEXAMPLEKEY":1,`+
		`"thequickbrownfoxjumps":1,"a.b":1,"x_":1,"a__b":1}`, "X-Customer-Alice", "X-Ratelimit-Remaining", "cf-ray", "x-ms-4711"),
		`{"transport":"http","status":500,"headers":["cf-ray","other","x-ratelimit-remaining"],"body":"json","members":["? number"]}`)
	f("words of schemas", http(500, `{"error":1,"retry_after":1,"maxTokens":1,"requestID":1,"@type":1,"__type":1,"n":1,"content_filter_v2":1}`),
		`{"transport":"http","status":500,"body":"json","members":["@type number","__type number","content_filter_v2 number","error number","maxTokens number","n number","requestID number","retry_after number"]}`)
	f("cut JSON", http(500, `{"error":{"code":"tea`), `{"transport":"http","status":500,"body":"broken_json"}`)
	f("page", http(502, "<html>secret</html>"), `{"transport":"http","status":502,"body":"html"}`)
	f("text", http(502, "secret"), `{"transport":"http","status":502,"body":"text"}`)
	f("array at the top", http(400, `["secret", 1]`), `{"transport":"http","status":400,"body":"json","members":["[] number","[] string"]}`)
	f("network", engine.Evidence{NetKind: engine.NetConnReset, NetOp: engine.OpReadHeaders, End: engine.EndReset},
		`{"transport":"network","end":"reset","net_kind":"conn_reset","net_op":"read_headers","body":"empty"}`)
	f("last frame with data", engine.Evidence{Transport: engine.TransportSSE, Status: 200, Frames: [][]byte{
		[]byte("data: {\"a\":\"secret\"}\n\n"), []byte("event: error\ndata: {\"b\":\ndata: 1}\n\n"), []byte(": ping\n\n"), []byte("data: a secret\n\n"), []byte("data: [DONE]\n\n"),
	}}, `{"transport":"sse","status":200,"body":"json","members":["b number"]}`)
	f("too deep", http(500, strings.Repeat(`{"a":`, 20)+`1`+strings.Repeat(`}`, 20)), `{"transport":"http","status":500,"body":"json","more":true}`)
}

// TestShapeHoldsNoValue: whatever a body says, its shape says nothing of it and stays
// within its bound.
func TestShapeHoldsNoValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var values []string
		secret := func() string {
			v := "Val" + rapid.StringN(6, 40, 80).Draw(t, "value") + "Ue"
			values = append(values, v)
			return v
		}
		var value func(depth int) any
		value = func(depth int) any {
			switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
			case kind == 0 && depth > 0:
				m := map[string]any{}
				for range rapid.IntRange(0, 5).Draw(t, "members") {
					m[rapid.StringMatching(`[a-z]{1,12}|[ -~]{0,60}`).Draw(t, "name")] = value(depth - 1)
				}
				return m
			case kind == 1 && depth > 0:
				return []any{value(depth - 1), value(depth - 1)}
			case kind == 2:
				n := rapid.Int64Range(1e9, 1e15).Draw(t, "number")
				text, _ := json.Marshal(n)
				values = append(values, string(text))
				return n
			}
			return secret()
		}
		body, err := json.Marshal(map[string]any{"error": value(4), "other": value(9)})
		if err != nil {
			t.Fatal(err)
		}
		cut := body[:rapid.IntRange(0, len(body)).Draw(t, "cut")]
		ev := engine.Evidence{
			Transport: engine.TransportHTTP, Status: 500, Body: cut,
			Headers: engine.Headers{{Name: "x-thing", Value: secret()}, {Name: "date", Value: secret()}},
		}
		if rapid.Bool().Draw(t, "stream") {
			ev.Transport, ev.Body, ev.Frames = engine.TransportSSE, nil, [][]byte{append([]byte("data: "), cut...)}
		}
		got := engine.ShapeOf(&ev)
		if len(got.String()) > 1024 {
			t.Errorf("the shape has %d bytes", len(got.String()))
		}
		for _, v := range values {
			if strings.Contains(got.String(), v) {
				t.Errorf("the shape tells %q: %s", v, got)
			}
		}
		if back, err := engine.ParseShape(got.String()); err != nil || back != got {
			t.Errorf("read back as %s: %v", back, err)
		}
	})
}

func TestRecordCarriesShape(t *testing.T) {
	t.Parallel()
	const shape = `"shape":{"transport":"http","status":418,"body":"json","members":["error.code string"]}`
	text := `{"request_id":"r","at":"2026-03-01T12:00:00Z","attempts":[{"seq":1,"status":418,"class":"unknown","scope":"none",` + shape + `}]}`
	r, err := engine.ParseRecord([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.AppendJSON(nil)); !strings.Contains(got, shape) {
		t.Errorf("the record is written without its shape: %s", got)
	}
	r, err = engine.ParseRecord([]byte(strings.ReplaceAll(text, "error.code", "what did I ask")))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Attempts()[0].Shape(); got != (engine.Shape{}) {
		t.Errorf("a shape with content was read: %s", got)
	}
}

func TestParseShapeRefusesContent(t *testing.T) {
	t.Parallel()
	f := func(text string) {
		t.Helper()
		if s, err := engine.ParseShape(text); err == nil {
			t.Errorf("%s was read as %s", text, s)
		}
	}
	f(``)
	f(`{"transport":"http","body":"a secret"}`)
	f(`{"transport":"http","body":"json","members":["what is my name string"]}`)
	f(`{"transport":"http","body":"json","members":["error.code sk-secret"]}`)
	f(`{"transport":"http","body":"text","end":"a secret"}`)
	f(`{"transport":"fax","body":"text"}`)
	f(`{"transport":"http","body":"text","more":true` + strings.Repeat(" ", 1024) + `}`)
}

// TestParseShapeHidesContent: names that are no longer kept, or never were, come back
// hidden.
func TestParseShapeHidesContent(t *testing.T) {
	t.Parallel()
	got, err := engine.ParseShape(`{"transport":"http","body":"json","headers":["a secret","date","x-customer-alice"],"members":["a-secret[].code string","error string"]}`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"transport":"http","headers":["date","other"],"body":"json","members":["?[].code string","error string"]}`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseShape(f *testing.F) {
	f.Add(`{"transport":"http","status":418,"headers":["content-type"],"body":"json","members":["error.code string"]}`)
	f.Add(`{"transport":"network","end":"reset","net_kind":"conn_reset","body":"empty","more":true}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := engine.ParseShape(text)
		if err != nil {
			return
		}
		if again, err := engine.ParseShape(s.String()); err != nil || again != s {
			t.Errorf("%s is read back as %s, %v", s, again, err)
		}
		_ = s.Form()
	})
}
