package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rotation is a proxy over one provider that takes an old and a new secret until the old
// one dies, under callers who send requests without a pause.
type rotation struct {
	t          *testing.T
	dir        string
	more       string // of the configuration
	upstream   *httptest.Server
	oldIsDead  atomic.Bool
	olds, news atomic.Int64 // answers by the secret that was shown
	proxy      *command
	base       string
	callers    [4]atomic.Int64 // how many requests each has sent
	done       atomic.Bool
	wait       sync.WaitGroup
}

const (
	withOld = `  key "main" { secret = file("old.key") }`
	withNew = `  key "main" { secret = file("new.key") }`
	beside  = `  key "next" { secret = file("new.key") }`
)

func newRotation(t *testing.T, more string) *rotation {
	t.Helper()
	r := &rotation{t: t, dir: t.TempDir(), more: more}
	r.upstream = httptest.NewServer(http.HandlerFunc(r.answer))
	t.Cleanup(r.upstream.Close)
	r.put("old.key", "the-old-secret")
	r.put("new.key", "the-new-secret")
	r.configure(withOld)
	r.proxy = startAt(t, new(movable), nil, "serve", "-c", filepath.Join(r.dir, "fourgate.hcl"))
	r.base = r.proxy.base(t)
	for i := range r.callers {
		r.wait.Go(func() {
			for !r.done.Load() {
				if got := post(t, r.base+"/v1/chat/completions", chat("model-1", false)); got.status != 200 || got.err != nil {
					t.Errorf("a request was dropped: status %d, %v: %s", got.status, got.err, got.body)
					return
				}
				r.callers[i].Add(1)
			}
		})
	}
	return r
}

func (r *rotation) answer(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	w.Header().Set("Content-Type", "application/json")
	switch key := req.Header.Get("Authorization"); {
	case key == "Bearer the-new-secret":
		r.news.Add(1)
	case key == "Bearer the-old-secret" && !r.oldIsDead.Load():
		r.olds.Add(1)
	default:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`)
		return
	}
	_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","model":"model-1","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`)
}

// put writes a file beside its place and renames it, so that no reload reads half of it.
func (r *rotation) put(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path+".next", []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(path+".next", path); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rotation) configure(keys string) {
	r.t.Helper()
	r.put("fourgate.hcl", fmt.Sprintf(`
server { listen = "127.0.0.1:0" }
ledger { store = "none" }
provider "p" {
  base_url = %q
%s
}
route_group "g" {
  models    = ["model-1"]
  endpoints = ["openai.chat"]
  channel "only" { provider = provider.p }
}
%s`, r.upstream.URL+"/v1", keys, r.more))
}

// reload waits until the proxy has taken over the n-th change.
func (r *rotation) reload(n int, keys string) {
	r.t.Helper()
	r.configure(keys)
	r.proxy.stderr.awaitCount(r.t, "msg=reloaded", n)
}

// turn waits until each caller has sent two more requests, of which the second began
// after what was done before, and answers of the kind that is counted have come.
func (r *rotation) turn(answers *atomic.Int64) {
	r.t.Helper()
	limit := time.Now().Add(waitLimit)
	before := answers.Load()
	var sent [len(r.callers)]int64
	for i := range sent {
		sent[i] = r.callers[i].Load()
	}
	for i := range sent {
		for r.callers[i].Load() < sent[i]+2 || answers.Load() == before {
			if r.t.Failed() || time.Now().After(limit) {
				r.t.Fatalf("the callers don't go on, or not with the secret that was expected")
			}
			runtime.Gosched()
		}
	}
}

func (r *rotation) end() {
	r.done.Store(true)
	r.wait.Wait()
}

// TestSecretIsReplacedUnderLoad puts another secret under a key's name. Once the proxy has
// taken it over and what was under way is over, the provider may stop taking the old one.
func TestSecretIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRotation(t, "")
	defer r.end()
	r.turn(&r.olds)
	r.reload(1, withNew)
	r.turn(&r.news)
	r.oldIsDead.Store(true)
	before := r.olds.Load()
	r.turn(&r.news)
	if n := r.olds.Load(); n != before {
		t.Errorf("the old secret was shown %d times after it was replaced", n-before)
	}
}

// TestSecretDiesUnderLoad has the provider stop taking a secret while another one stands
// beside it, under a policy that stays with the provider while it has a spare key.
func TestSecretDiesUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRotation(t, `policy { profile = "studyhub" }`)
	defer r.end()
	r.reload(1, withOld+"\n"+beside)
	r.turn(&r.news)
	r.turn(&r.olds) // they take turns
	r.oldIsDead.Store(true)
	r.turn(&r.news)
	r.reload(2, withNew)
	r.turn(&r.news)
}
