package proxy_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/proxy"
)

// Everything here is refused before any upstream call.
func TestRefusals(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(200, "application/json", wholeAnswer))
	g := setup{providers: []*provider{p}, callers: true, settings: proxy.Settings{MaxBody: 400}}.start(t)
	key := "Authorization: Bearer " + callerKey
	other := strings.Replace(wholeRequest, model, "gpt-9", 1)
	twice := `{"model":"` + model + `","mod\u0065l":"gpt-9","messages":[]}`
	large := `{"model":"` + model + `","messages":[{"role":"user","content":"` + strings.Repeat("x", 400) + `"}]}`
	for _, c := range []struct {
		name, body, header string
		status             int
		openai, anthropic  string
	}{
		{"no key", wholeRequest, "X-Nothing: 1", 401, `"code":"invalid_api_key"`, `"type":"authentication_error"`},
		{"wrong key", wholeRequest, "x-api-key: sk-ant-123", 401, `"code":"invalid_api_key"`, `"type":"authentication_error"`},
		{"unknown model", other, key, 404, `"code":"model_not_found"`, `"type":"not_found_error"`},
		{"duplicate names", twice, key, 400, `"type":"invalid_request_error"`, `"type":"invalid_request_error"`},
		{"no JSON", `{"model":`, key, 400, `"type":"invalid_request_error"`, `"type":"invalid_request_error"`},
		{"no body", ``, key, 400, `"type":"invalid_request_error"`, `"type":"invalid_request_error"`},
		{"too large", large, key, 413, `"code":"request_too_large"`, `"type":"request_too_large"`},
	} {
		for path, want := range map[string]string{"/v1/chat/completions": c.openai, "/v1/messages": c.anthropic, "/openai/v1/chat/completions": c.openai, "/anthropic/v1/messages": c.anthropic} {
			got := g.post(t, path, c.body, c.header)
			if got.status != c.status || !strings.Contains(got.body, want) || !json.Valid([]byte(got.body)) {
				t.Errorf("%s: %s: got %d %q", path, c.name, got.status, got.body)
			}
			if got.header.Get("X-Should-Retry") != "false" || got.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %s: headers %v", path, c.name, got.header)
			}
			id := got.header.Get("X-Request-Id")
			if !regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`).MatchString(id) || !strings.Contains(got.body, id) {
				t.Errorf("%s: %s: id %q isn't in %q", path, c.name, id, got.body)
			}
			if strings.Contains(path, "messages") && (!strings.HasPrefix(got.body, `{"type":"error","error":{"type":`) || got.header.Get("Request-Id") != id) {
				t.Errorf("%s: %s: not Anthropic's shape: %q", path, c.name, got.body)
			}
		}
	}
	// The same with a chunked body, whose size nobody has declared.
	req, _ := http.NewRequest("POST", "http://"+g.addr+"/v1/messages", struct{ *strings.Reader }{strings.NewReader(large)})
	if got := g.do(t, req, key); got.status != 413 || !strings.Contains(got.body, `"type":"request_too_large"`) {
		t.Errorf("chunked: got %d %q", got.status, got.body)
	}
	if n := len(p.requests()); n != 0 {
		t.Errorf("%d upstream calls", n)
	}
}

// A head that two readers could read differently is refused, and its connection closed.
func TestFraming(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(200, "application/json", wholeAnswer))
	g := setup{providers: []*provider{p}}.start(t)
	const line = "POST /v1/messages HTTP/1.1\r\n"
	for name, request := range map[string]string{
		"two lengths":            line + "Host: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"length and encoding":    line + "Host: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"encoding and length":    line + "Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
		"other encoding":         line + "Host: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"encoding under 1.0":     "POST /v1/messages HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"version":                "POST /v1/messages HTTP/1.2\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"bare line feed":         line + "Host: x\nContent-Length: 2\r\n\r\n{}",
		"bare carriage return":   line + "Host: x\r\nX-A: b\rc\r\nContent-Length: 2\r\n\r\n{}",
		"folded":                 line + "Host: x\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}",
		"space before the colon": line + "Host: x\r\nContent-Length : 2\r\n\r\n{}",
		"two hosts":              line + "Host: x\r\nHost: y\r\nContent-Length: 2\r\n\r\n{}",
		"no host":                line + "Content-Length: 2\r\n\r\n{}",
		"signed length":          line + "Host: x\r\nContent-Length: +2\r\n\r\n{}",
		"absolute target":        "POST http://x/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"CONNECT":                "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"control character":      line + "Host: x\r\nX-A: b\x01c\r\nContent-Length: 2\r\n\r\n{}",
	} {
		got := g.raw(t, request)
		status, rest, _ := strings.Cut(got, "\r\n")
		if !strings.HasPrefix(status, "HTTP/1.1 400 ") || !strings.Contains(rest, "Connection: close") {
			t.Errorf("%s: got %q", name, got)
		}
		if name != "CONNECT" && !strings.Contains(rest, `{"type":"error","error":{"type":"invalid_request_error"`) {
			t.Errorf("%s: not in the caller's protocol: %q", name, got)
		}
	}
	if n := len(p.requests()); n != 0 {
		t.Errorf("%d upstream calls", n)
	}
}

func TestExpectContinueIsRefusedBeforeTheBody(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(200, "application/json", wholeAnswer))
	g := setup{providers: []*provider{p}, settings: proxy.Settings{MaxBody: 100}}.start(t)
	got := g.raw(t, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.Contains(got, `"type":"request_too_large"`) {
		t.Errorf("got %q", got)
	}
}

// A client that is still sending gets its answer all the same.
func TestRefusedUploadGetsItsAnswer(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(200, "application/json", wholeAnswer))
	g := setup{providers: []*provider{p}, callers: true, settings: proxy.Settings{MaxBody: 1 << 20}}.start(t)
	large := strings.Repeat("x", 20<<20)
	for header, want := range map[string]int{"Authorization: Bearer " + callerKey: 413, "Authorization: Bearer wrong": 401} {
		for range 5 {
			if got := g.post(t, "/v1/chat/completions", large, header); got.status != want {
				t.Errorf("got %d %q, want %d", got.status, got.body, want)
			}
		}
	}
}

func TestLargeHead(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(200, "application/json", wholeAnswer))
	g := setup{providers: []*provider{p}}.start(t)
	if got := g.post(t, "/v1/chat/completions", wholeRequest, "X-Large: "+strings.Repeat("x", 15<<10)); got.status != 200 {
		t.Errorf("15 kB of headers: got %d %q", got.status, got.body)
	}
	got := g.post(t, "/v1/messages", wholeRequest, "X-Large: "+strings.Repeat("x", 17<<10))
	if got.status != 431 || !strings.Contains(got.body, "request_head_too_large") || !strings.HasPrefix(got.body, `{"type":"error"`) {
		t.Errorf("17 kB of headers: got %d %q", got.status, got.body)
	}
}

func TestOtherPaths(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(200, "application/json", wholeAnswer))
	g := setup{providers: []*provider{p}, callers: true}.start(t)
	key := "Authorization: Bearer " + callerKey
	get := func(method, path string, headers ...string) response {
		req, err := http.NewRequest(method, "http://"+g.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g.do(t, req, headers...)
	}
	want := `{"object":"list","data":[{"id":"` + model + `","object":"model","created":0,"owned_by":"g"}]}`
	if got := get("GET", "/v1/models", key); got.status != 200 || got.body != want {
		t.Errorf("models: got %d %s", got.status, cmp.Diff(want, got.body))
	}
	want = `{"data":[{"type":"model","id":"` + model + `","display_name":"` + model + `","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":"` + model + `","last_id":"` + model + `"}`
	if got := get("GET", "/anthropic/v1/models", key, "anthropic-version: 2023-06-01"); got.status != 200 || got.body != want {
		t.Errorf("Anthropic's models: got %d %s", got.status, cmp.Diff(want, got.body))
	}
	for _, c := range []struct {
		method, path string
		status       int
		contains     string
	}{
		{"GET", "/v1/models", 401, "invalid_api_key"},
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/readyz", 200, "ready"},
		{"GET", "/v1/chat/completions", 405, "is served for POST"},
		{"POST", "/v1/models", 405, "is served for GET"},
		{"GET", "/", 404, "/v1/chat/completions"},
		{"POST", "/v1//chat/completions", 404, "unknown_path"},
		{"POST", "/v1/x/../chat/completions", 404, "unknown_path"},
	} {
		if got := get(c.method, c.path); got.status != c.status || !strings.Contains(got.body, c.contains) {
			t.Errorf("%s %s: got %d %q", c.method, c.path, got.status, got.body)
		}
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	p := newProvider(t, answer(200, "application/json", wholeAnswer))
	g := setup{providers: []*provider{p}, rpm: 1}.start(t)
	if got := g.post(t, "/v1/chat/completions", wholeRequest); got.status != 200 {
		t.Fatalf("got %d %q", got.status, got.body)
	}
	got := g.post(t, "/v1/chat/completions", wholeRequest)
	if got.status != 429 || !strings.Contains(got.body, `"type":"rate_limit_error"`) {
		t.Fatalf("got %d %q", got.status, got.body)
	}
	// It cost nothing and waiting helps: SDKs may come back by themselves.
	if got.header.Get("Retry-After") == "" || got.header.Get("Retry-After-Ms") == "" || got.header.Get("X-Should-Retry") != "" {
		t.Errorf("headers %v", got.header)
	}
}
