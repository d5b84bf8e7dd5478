package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// standingHead is what the configurations of these tests have in common: three providers
// a, b and c, of which a has two keys.
const standingHead = `
server {
  listen        = env("LISTEN")
  admin_listen  = env("ADMIN_LISTEN")
  debug_headers = true
  drain_timeout = "5s"
}
ledger { path = env("LEDGER") }
retry_budget {
  floor = 1000
  cap   = 1000
}
provider "a" {
  base_url = env("A_URL")
  key "main" { secret = env("KEY") }
  key "spare" { secret = file("spare.key") }
}
provider "b" {
  base_url = env("B_URL")
  key "main" { secret = env("KEY") }
}
provider "c" {
  base_url = env("C_URL")
  key "main" { secret = env("KEY") }
}
`

// standingRig serves the head and more over the channels a, b and c.
func standingRig(t *testing.T, more string) *rig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fourgate.hcl")
	for name, text := range map[string]string{path: standingHead + more, filepath.Join(filepath.Dir(path), "spare.key"): secretOfTests + "-spare"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return newRig(t, path, "", "a", "b", "c")
}

// oneGroup has a, then b, then c, with more in its block.
func oneGroup(more string) string {
	return `
route_group "m" {
  models    = ["model-1"]
  endpoints = ["openai.chat", "anthropic.messages", "gemini.generate"]
  channel "a" { provider = provider.a }
  channel "b" { provider = provider.b }
  channel "c" { provider = provider.c }
` + more + "\n}\n"
}

// ask sends one request and wants a status.
func (r *rig) chat(status int, header ...string) reply {
	r.t.Helper()
	got := post(r.t, r.base+"/v1/chat/completions", chat("model-1", false), header...)
	if got.status != status {
		r.t.Fatalf("status %d %s, want %d", got.status, got.body, status)
	}
	return got
}

// wantCalls compares how many requests have reached each channel so far.
func (r *rig) wantCalls(want string) {
	r.t.Helper()
	if got := r.calls(); got != want {
		r.t.Fatalf("the upstreams were called %s, want %s", got, want)
	}
}

func (r *rig) admin() string {
	r.t.Helper()
	const before = "metrics and health on "
	_, url, _ := strings.Cut(r.proxy.stdout.await(r.t, before), before)
	url, _, _ = strings.Cut(url, "\n")
	return strings.TrimSpace(url)
}

func (r *rig) get(url string, header ...string) string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// cli runs a command of the program to its end and returns what it prints.
func (r *rig) cli(args ...string) string {
	r.t.Helper()
	c := startAt(r.t, r.clock, r.vars, args...)
	select {
	case code := <-c.done:
		c.done <- code
		if code != 0 {
			r.t.Fatalf("%v: exit %d:\n%s%s", args, code, c.stdout, c.stderr)
		}
	case <-time.After(waitLimit):
		r.t.Fatalf("%v doesn't end", args)
	}
	return c.stdout.String()
}

// liveChain is the order that the running proxy would walk, and why others are out.
func (r *rig) liveChain() string {
	r.t.Helper()
	var a chainAnswer
	if err := json.Unmarshal([]byte(r.cli("chain", "-c", r.config, "-admin", r.admin(), "-json", "model-1")), &a); err != nil {
		r.t.Fatal(err)
	}
	if !a.Live {
		r.t.Error("the running proxy's answer doesn't say that it is live")
	}
	var words []string
	for _, l := range a.Chain {
		words = append(words, l.Channel)
	}
	for _, o := range a.Out {
		words = append(words, fmt.Sprintf("%s(%s)", o.Channel, o.Why))
	}
	return strings.Join(words, " ")
}

func TestDeadKeysAreSkipped(t *testing.T) {
	t.Parallel()
	r := standingRig(t, oneGroup(""))
	r.script("a", "status=401")
	for range 4 {
		r.chat(200)
	}
	keys := map[string]int{}
	for _, seen := range r.sim.Requests("a") {
		for _, f := range seen.Header {
			if strings.EqualFold(f.Name, "Authorization") {
				keys[f.Value]++
			}
		}
	}
	want := map[string]int{"Bearer " + secretOfTests: 1, "Bearer " + secretOfTests + "-spare": 1}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys that a was shown (-want +got):\n%s", diff)
	}
	if got := r.chat(200).header; got.Get("X-Fourgate-Out") != "m/a (no usable key)" || got.Get("X-Fourgate-Chain") != "m/b, m/c" ||
		got.Get("X-Fourgate-Channel") != "b" || got.Get("X-Fourgate-Attempts") != "1" || got.Get("X-Fourgate-Strategy") != "failover" {
		t.Errorf("debug headers %v", got)
	}
	if got := r.liveChain(); got != "b c a(no usable key)" {
		t.Errorf("chain -live: %s", got)
	}
	if text := r.metrics(); !strings.Contains(text, `fourgate_key_cooling{key="spare",provider="a"} 1`) {
		t.Error("the metrics don't say that the spare key cools")
	}
}

func TestEvictedModelsAreNotListed(t *testing.T) {
	t.Parallel()
	r := standingRig(t, oneGroup("")+`
route_group "other" {
  models    = ["model-2"]
  endpoints = ["openai.chat"]
  channel "a" { provider = provider.a }
}
`)
	const missing = `status=404 type=invalid_request_error code=model_not_found message="The model does not exist"`
	openai := func() string { return r.get(r.base + "/v1/models") }
	r.script("a", missing)
	r.chat(200)
	r.chat(200)
	r.wantCalls("a=1 b=2 c=0")
	if list := openai(); !strings.Contains(list, "model-1") {
		t.Errorf("others still have the model, and it isn't listed: %s", list)
	}
	if text := r.metrics(); !strings.Contains(text, `fourgate_model_evicted{channel="a",group="m",model="model-1"} 1`) {
		t.Error("the metrics don't say that the model is evicted")
	}
	r.script("b", missing)
	r.script("c", missing)
	post(t, r.base+"/v1/chat/completions", chat("model-1", false))
	if list := openai(); strings.Contains(list, "model-1") || !strings.Contains(list, "model-2") {
		t.Errorf("nobody has model-1, and the list is %s", list)
	}
	if list := r.get(r.base+"/v1/models", "anthropic-version", "2023-06-01"); list != `{"data":[],"has_more":false,"first_id":null,"last_id":null}` {
		t.Errorf("in Anthropic's shape: %s", list)
	}
	if list := r.get(r.base + "/v1beta/models"); list != `{"models":[]}` {
		t.Errorf("in Gemini's shape: %s", list)
	}
	r.chat(503)
	r.cli("admin", "reset", "-c", r.config, "-admin", r.admin(), "-kind", "model_evicted", "-channel", "b")
	r.script("b", "ok")
	if list := openai(); !strings.Contains(list, "model-1") {
		t.Errorf("after a reset the list is %s", list)
	}
	r.chat(200)
}

func TestHealthCheckBringsAChannelBack(t *testing.T) {
	t.Parallel()
	r := standingRig(t, oneGroup(`
  breaker {
    mode             = "consecutive"
    failures         = 1
    open_for         = "1h"
    half_open_probes = 1
  }
  health_check {
    interval = "1s"
    path     = "/a/v1/models"
  }`))
	r.script("a", "status=503")
	r.chat(200)
	r.wantCalls("a=1 b=1 c=0")
	if got := r.chat(200).header.Get("X-Fourgate-Out"); got != "m/a (breaker open)" {
		t.Errorf("X-Fourgate-Out is %q", got)
	}
	r.wantCalls("a=1 b=2 c=0")
	r.script("a", "ok")
	r.proxy.stderr.await(t, "health check passed")
	if got := r.chat(200).header.Get("X-Fourgate-Channel"); got != "a" {
		t.Errorf("after a good look the request went to %s", got)
	}
	for _, seen := range r.sim.Requests("a") {
		if seen.Method == http.MethodGet && strings.Contains(fmt.Sprint(seen.Header), secretOfTests) {
			t.Error("a look shows a key")
		}
	}
}

func TestFullGroupsFallBackThenRefuse(t *testing.T) {
	t.Parallel()
	r := standingRig(t, `
route_group "first" {
  models    = ["model-1"]
  endpoints = ["openai.chat"]
  rpm       = 2
  channel "a" { provider = provider.a }
}
route_group "second" {
  models    = ["model-1"]
  endpoints = ["openai.chat"]
  rpm       = 1
  channel "b" { provider = provider.b }
}
`)
	r.chat(200)
	r.chat(200)
	if got := r.liveChain(); got != "b a(group rate is spent)" {
		t.Errorf("chain -live: %s", got)
	}
	r.chat(200)
	r.wantCalls("a=2 b=1 c=0")
	got := r.chat(429)
	seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
	millis, err2 := strconv.Atoi(got.header.Get("Retry-After-Ms"))
	if err != nil || err2 != nil || seconds < 1 || seconds > 60 || millis > 60_000 || got.header.Get("X-Should-Retry") != "" {
		t.Errorf("the refusal's headers are %v", got.header)
	}
	if !strings.Contains(got.body, `"code":"rate_limit_exceeded"`) {
		t.Errorf("the refusal is %s", got.body)
	}
	r.wantCalls("a=2 b=1 c=0")
	r.clock.forward(61 * time.Second)
	r.chat(200)
	r.wantCalls("a=3 b=1 c=0")
	if text := r.metrics(); !strings.Contains(text, `fourgate_admission_refusals_total{caller="anonymous",code="rate_limit_exceeded"} 1`) {
		t.Error("the refusal is not counted")
	}
}

const keyOfCaller = "key-of-a-caller"

func hashOfKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// callerBlock is a caller who shows keyOfCaller.
func callerBlock(more string) string {
	return "caller \"team-a\" {\n  key_sha256 = \"" + hashOfKey(keyOfCaller) + "\"\n" + more + "\n}\n"
}

func TestSmartRoutingTakesTheCheapestOfAllGroups(t *testing.T) {
	t.Parallel()
	groups := `
route_group "first" {
  models    = ["model-1"]
  endpoints = ["openai.chat"]
  strategy  = "cost"
  channel "a" {
    provider = provider.a
    cost     = { input = 1, output = 20 }
  }
}
route_group "second" {
  models    = ["model-1"]
  endpoints = ["openai.chat"]
  channel "b" {
    provider = provider.b
    cost     = { input = 8, output = 8 }
  }
}
` + callerBlock("  groups  = [route_group.first, route_group.second]\n  routing = \"smart\"")
	r := standingRig(t, groups)
	// A short question with a long answer is cheaper on b, a long one with a short answer on a.
	body := func(words, output int) string {
		return fmt.Sprintf(`{"model":"model-1","max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, output, strings.Repeat("word ", words))
	}
	f := func(body, channel string) {
		t.Helper()
		got := post(t, r.base+"/v1/chat/completions", body, "Authorization", "Bearer "+keyOfCaller)
		if got.status != 200 || got.header.Get("X-Fourgate-Channel") != channel || got.header.Get("X-Fourgate-Strategy") != "cost" {
			t.Errorf("status %d, channel %q by %q, want %q", got.status, got.header.Get("X-Fourgate-Channel"), got.header.Get("X-Fourgate-Strategy"), channel)
		}
	}
	f(body(1, 1000), "b")
	f(body(2000, 10), "a")
}

func TestCallersOwnCeilings(t *testing.T) {
	t.Parallel()
	r := standingRig(t, oneGroup("")+callerBlock("  groups = [route_group.m]\n  budget { attempts = 1 }"))
	r.script("a", "status=503")
	r.chat(503, "Authorization", "Bearer "+keyOfCaller)
	r.wantCalls("a=1 b=0 c=0")
}
