package admin_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/admin"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// changes keeps what is recorded.
type changes struct{ list []ledger.Change }

func (c *changes) Changed(change ledger.Change) { c.list = append(c.list, change) }

// desk is an API over a group of two channels, with the changes that it records.
type desk struct {
	t        *testing.T
	handler  http.Handler
	standing *engine.Standing
	catalog  *engine.Catalog
	changes  changes
}

func newDesk(t *testing.T, token string) *desk {
	t.Helper()
	catalog, problems := engine.NewCatalog(engine.Spec{
		Providers: []engine.ProviderSpec{{
			Name: "p", BaseURL: "http://127.0.0.1:1", Classifier: "c", Auth: engine.AuthBearer,
			Keys:   []engine.KeySpec{{Name: "main", Secret: engine.NewSecret("hush-hush")}},
			Limits: engine.Limits{Connect: time.Second, Headers: time.Second, Gate: time.Second, Idle: time.Second},
		}},
		Groups: []engine.GroupSpec{{
			Name: "g", Models: []string{"m"}, Endpoints: []engine.Endpoint{engine.OpenAIChat},
			Channels: []engine.ChannelSpec{{Name: "a", Provider: "p"}, {Name: "b", Provider: "p"}},
			Budget:   engine.BudgetSpec{Attempts: 1, PerRoute: 1, Deadline: time.Minute},
		}},
	})
	for _, p := range problems {
		if !p.Warning {
			t.Fatalf("%v: %s %s", p.Path, p.Summary, p.Detail)
		}
	}
	d := &desk{t: t, standing: engine.NewStanding(), catalog: catalog}
	d.standing.Adopt(catalog)
	d.handler = admin.New(admin.Parts{
		Gatherer: prometheus.NewRegistry(), Ready: func() bool { return true }, Token: token,
		Standing: d.standing, Catalog: func() *engine.Catalog { return catalog }, Clock: func() time.Time { return now },
		Changes: &d.changes,
		Chain: func(q admin.ChainQuestion) (any, error) {
			if q.Model != "m" {
				return nil, errors.New("model is not served")
			}
			return map[string]string{"model": q.Model, "caller": q.Caller, "endpoint": q.Endpoint}, nil
		},
	}).Handler
	return d
}

// learn has another instance tell that a key and a model are set aside.
func (d *desk) learn() {
	d.standing.Learn(now, engine.Fact{Kind: engine.FactModelEvicted, Group: "g", Channel: "a", Model: "m", Until: now.Add(time.Hour)})
	key := d.catalog.Providers()[0].Keys()[0]
	d.standing.Learn(now, engine.Fact{Kind: engine.FactKeyCooled, Provider: "p", Key: "main", KeyPrint: key.Print(), Until: now.Add(time.Minute)})
}

// ask sends a request as curl on this machine does; header has more fields, "Name: value".
func (d *desk) ask(method, path, body string, header ...string) *httptest.ResponseRecorder {
	d.t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:8081"+path, strings.NewReader(body))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.RemoteAddr = "127.0.0.1:5000"
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w
}

// want checks an answer's status and JSON.
func want(t *testing.T, w *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("status %d %s, want %d", w.Code, w.Body, status)
	}
	var got, expected any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if err := json.Unmarshal([]byte(body), &expected); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestStandingIsListedAndReset(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	want(t, d.ask("GET", "/api/standing", ""), 200, `{"at":"2026-03-01T12:00:00Z","aside":[]}`)
	d.learn()
	w := d.ask("GET", "/api/standing", "")
	want(t, w, 200, `{"at":"2026-03-01T12:00:00Z","aside":[
		{"kind":"key_cooled","provider":"p","key":"main","abroad":true,"until":"2026-03-01T12:01:00Z"},
		{"kind":"model_evicted","group":"g","channel":"a","model":"m","abroad":true,"until":"2026-03-01T13:00:00Z"}]}`)
	if strings.Contains(w.Body.String(), "hush") {
		t.Error("the answer has a secret")
	}
	want(t, d.ask("POST", "/api/standing/reset", `{"kind":"model_evicted","group":"g","model":"m"}`), 200,
		`{"lifted":[{"kind":"model_evicted","group":"g","channel":"a","model":"m","abroad":true,"until":"2026-03-01T13:00:00Z"}]}`)
	want(t, d.ask("POST", "/api/standing/reset", `{"model":"m"}`), 200, `{"lifted":[]}`)
	want(t, d.ask("POST", "/api/standing/reset", `{"all":true}`), 200,
		`{"lifted":[{"kind":"key_cooled","provider":"p","key":"main","abroad":true,"until":"2026-03-01T12:01:00Z"}]}`)
	want(t, d.ask("GET", "/api/standing", ""), 200, `{"at":"2026-03-01T12:00:00Z","aside":[]}`)

	until := now.Add(time.Hour)
	recorded := []ledger.Change{
		{At: now, Action: "reset", By: "nobody in particular", From: "127.0.0.1:5000", Kind: "model_evicted", Group: "g", Model: "m",
			Before: []ledger.Aside{{Kind: "model_evicted", Group: "g", Channel: "a", Model: "m", Abroad: true, Until: &until}}},
		{At: now, Action: "reset", By: "nobody in particular", From: "127.0.0.1:5000", Model: "m", Before: []ledger.Aside{}},
	}
	if diff := cmp.Diff(recorded, d.changes.list[:2]); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

func TestChannelIsDisabledAndEnabled(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "t0ken")
	token := "Authorization: Bearer t0ken"
	want(t, d.ask("POST", "/api/channels/g/a/disable", `{"for":"10m"}`, token), 200,
		`{"aside":{"kind":"channel_disabled","group":"g","channel":"a","until":"2026-03-01T12:10:00Z"}}`)
	want(t, d.ask("POST", "/api/channels/g/b/disable", ``, token), 200,
		`{"aside":{"kind":"channel_disabled","group":"g","channel":"b"},"warning":"group \"g\" has no usable channel left"}`)
	want(t, d.ask("POST", "/api/channels/g/a/disable", `{}`, token), 200,
		`{"aside":{"kind":"channel_disabled","group":"g","channel":"a"},"warning":"group \"g\" has no usable channel left"}`)
	want(t, d.ask("POST", "/api/channels/g/a/enable", `{}`, token), 200,
		`{"lifted":[{"kind":"channel_disabled","group":"g","channel":"a"}]}`)

	until := now.Add(10 * time.Minute)
	by := func(action, channel string, until *time.Time, before ...ledger.Aside) ledger.Change {
		if before == nil && action == "enable" {
			before = []ledger.Aside{}
		}
		return ledger.Change{At: now, Action: action, By: "admin_token", From: "127.0.0.1:5000", Kind: "channel_disabled",
			Group: "g", Channel: channel, Until: until, Before: before}
	}
	recorded := []ledger.Change{
		by("disable", "a", &until), by("disable", "b", nil),
		by("disable", "a", nil, ledger.Aside{Kind: "channel_disabled", Group: "g", Channel: "a", Until: &until}),
		by("enable", "a", nil, ledger.Aside{Kind: "channel_disabled", Group: "g", Channel: "a"}),
	}
	if diff := cmp.Diff(recorded, d.changes.list); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

func TestChainIsAsked(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	want(t, d.ask("GET", "/api/chain?model=m&caller=c&endpoint=openai.chat", ""), 200, `{"model":"m","caller":"c","endpoint":"openai.chat"}`)
	want(t, d.ask("GET", "/api/chain?model=other", ""), 400, `{"type":"about:blank","title":"Bad Request","status":400,"detail":"model is not served"}`)
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	open, locked := newDesk(t, ""), newDesk(t, "t0ken")
	f := func(d *desk, method, path, body string, status int, detail string, header ...string) {
		t.Helper()
		w := d.ask(method, path, body, header...)
		var p struct {
			Status        int
			Title, Detail string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Errorf("%s %s: no problem in JSON: %v: %s", method, path, err, w.Body)
			return
		}
		if w.Code != status || p.Status != status || p.Title == "" || !strings.Contains(p.Detail, detail) || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s %q: %d %s %q, want %d with %q", method, path, body, w.Code, w.Header().Get("Content-Type"), w.Body, status, detail)
		}
		if n := len(d.changes.list); n != 0 {
			t.Errorf("%s %s changed something: %+v", method, path, d.changes.list)
		}
	}
	const reset = "/api/standing/reset"
	f(open, "GET", "/api/nothing", "", 404, "GET /api/standing")
	f(open, "GET", reset, "", 405, "POST")
	f(open, "POST", "/api/standing", "{}", 405, "GET")
	f(open, "DELETE", "/api/channels/g/a/disable", "{}", 405, "POST", "Content-Type: application/json")
	f(open, "POST", reset, "", 400, `"all": true`)
	f(open, "POST", reset, "{}", 400, `"all": true`)
	f(open, "POST", reset, `{"all":true,"group":"g"}`, 400, "leave one of the two out")
	f(open, "POST", reset, `{"kind":"breakers"}`, 400, "breaker_open")
	f(open, "POST", reset, `{"grupp":"g"}`, 400, "grupp")
	f(open, "POST", reset, `{"group":7}`, 400, "group")
	f(open, "POST", reset, `{"group":"g"} {}`, 400, "follows")
	f(open, "POST", reset, `[]`, 400, "one JSON object")
	f(open, "POST", reset, `{"group":"`+strings.Repeat("g", 20<<10)+`"}`, 413, "bytes")
	f(open, "POST", "/api/channels/g/c/disable", "{}", 404, "g/a, g/b")
	f(open, "POST", "/api/channels/g/a/disable", `{"for":"ten"}`, 400, "10m")
	f(open, "POST", "/api/channels/g/a/disable", `{"for":"-1m"}`, 400, "10m")
	f(open, "POST", "/api/channels/g/c/enable", "{}", 404, "g/a")
	f(open, "GET", "/api/chain", "", 400, "model=MODEL")

	// The token.
	f(locked, "GET", "/api/standing", "", 401, "server.admin_token")
	f(locked, "GET", "/api/standing", "", 401, "server.admin_token", "Authorization: Bearer t0ke")
	f(locked, "POST", reset, `{"all":true}`, 401, "server.admin_token", "Authorization: Basic t0ken")

	// A page in a browser on this machine.
	f(open, "POST", reset, `{"all":true}`, 415, "application/json", "Content-Type: text/plain")
	f(open, "POST", reset, `{"all":true}`, 415, "application/json", "Content-Type: application/x-www-form-urlencoded")
	f(open, "POST", reset, `{"all":true}`, 403, "another origin", "Origin: https://evil.example")
	f(open, "POST", reset, `{"all":true}`, 403, "another origin", "Sec-Fetch-Site: cross-site")
	f(open, "POST", reset, `{"all":true}`, 403, "another origin", "Origin: null")
	f(open, "OPTIONS", reset, "", 415, "application/json")
	// A name of its own that leads here.
	f(open, "GET", "/api/standing", "", 403, "127.0.0.1", "Host: evil.example:8081")
	f(open, "POST", reset, `{"all":true}`, 403, "127.0.0.1", "Host: 127.0.0.1.evil.example")
	f(open, "GET", "/api/chain?model=m", "", 403, "127.0.0.1", "Host: 10.0.0.1")
	f(open, "GET", "/readyz?verbose", "", 403, "127.0.0.1", "Host: evil.example")
	f(open, "GET", "/metrics", "", 403, "127.0.0.1", "Host: evil.example:8081")
}

func TestHostsOfThisMachine(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"localhost", "LOCALHOST:8081", "127.0.0.1", "127.8.9.1:80", "[::1]:8081", "[::1]"} {
		if w := newDesk(t, "").ask("GET", "/api/standing", "", "Host: "+host); w.Code != 200 {
			t.Errorf("%s: %d %s", host, w.Code, w.Body)
		}
	}
	// With a token the host may be any.
	if w := newDesk(t, "t0ken").ask("GET", "/api/standing", "", "Host: proxy.internal:8081", "Authorization: Bearer t0ken"); w.Code != 200 {
		t.Errorf("with a token: %d %s", w.Code, w.Body)
	}
}

// FuzzReset sends any body: the answer is a result or a problem, and what was refused has
// changed nothing.
func FuzzReset(f *testing.F) {
	f.Add(`{"all":true}`)
	f.Add(`{"kind":"breaker_open","group":"g"}`)
	f.Add(`{"all":true}{`)
	f.Fuzz(func(t *testing.T, body string) {
		d := newDesk(t, "")
		d.learn()
		w := d.ask("POST", "/api/standing/reset", body)
		if !json.Valid(w.Body.Bytes()) || w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if w.Code != 200 && (len(d.changes.list) != 0 || len(d.standing.List(now)) != 2) {
			t.Fatalf("%q was refused with %d and changed something", body, w.Code)
		}
	})
}
