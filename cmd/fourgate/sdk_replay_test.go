package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What testdata/sdk/replays.hcl says, and the keys of its callers.
const (
	replays     = "testdata/sdk/replays.hcl"
	replayCap   = 12
	replayFloor = 0.001 // tokens a second
	keyOfApp    = "key-of-app"
	keyOfOther  = "key-of-other"
	longEnough  = 2500 * time.Second // for two tokens and a half; within the deadline
)

// sdkCall is what an application sees of one call, and what its SDK made of it.
type sdkCall struct {
	Text, Error, Kind, Message string
	Status                     int
	Exchanges                  []sdkExchange
}

// sdkExchange is one request of an SDK. Without a status it never reached the proxy.
type sdkExchange struct {
	Number      string // X-Stainless-Retry-Count
	Status      int
	ShouldRetry string // X-Should-Retry
	RequestID   string
}

// repeats has one of the SDKs ask the questions from first on.
func (r *rig) repeats(sdk string, first, count int, flags ...string) []sdkCall {
	r.t.Helper()
	args := append([]string{r.base, "model-1", keyOfApp, sdk, strconv.Itoa(first), strconv.Itoa(count)}, flags...)
	var calls []sdkCall
	for line := range strings.Lines(node(r.t, "replays.mjs", args...)) {
		var c sdkCall
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			r.t.Fatalf("%v in %q", err, line)
		}
		calls = append(calls, c)
	}
	if len(calls) != count {
		r.t.Fatalf("%s made %d calls, not %d", sdk, len(calls), count)
	}
	return calls
}

// total is how many requests have reached the channels.
func (r *rig) total() (n int) {
	for _, ch := range r.upstream {
		n += r.sim.Count(ch)
	}
	return n
}

func (r *rig) scriptAll(text string) {
	r.t.Helper()
	for _, ch := range r.upstream {
		r.script(ch, text)
	}
}

// repeated is what the ledger has of a call's requests: how often each was made before, and
// how that is known.
func (r *rig) repeated(c sdkCall) string {
	r.t.Helper()
	var list []string
	for _, e := range c.Exchanges {
		if e.RequestID != "" {
			n, source := r.record(e.RequestID).SDKRetry()
			list = append(list, fmt.Sprintf("%s%d", source, n))
		}
	}
	return strings.Join(list, " ")
}

// sample is the value of a metric, 0 if it was never set.
func (r *rig) sample(series string) float64 {
	r.t.Helper()
	for line := range strings.Lines(r.metrics()) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				r.t.Fatal(err)
			}
			return v
		}
	}
	return 0
}

const (
	replaysInferred = `fourgate_sdk_replays_total{group="m",source="inferred"}`
	replaysNumbered = `fourgate_sdk_replays_total{group="m",source="header"}`
	replayTokens    = `fourgate_retry_budget_tokens{group="m"}`
)

// SDKs that number nothing and don't read X-Should-Retry can't multiply an outage: what
// they repeat is paid from the retry budget. Once a channel works again, the same request
// is served.
func TestSDKsThatNumberNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		sdk         string
		requests    int // for each call of the application, by default
		error, kind string
	}{
		{"ai-openai", 3, "AI_RetryError", "APICallError"},
		{"ai-anthropic", 3, "AI_RetryError", "APICallError"},
		{"langchain", 7, "Error", "InternalServerError"},
		{"genai", 5, "ApiError", "ApiError"},
	} {
		t.Run(s.sdk, func(t *testing.T) {
			t.Parallel()
			const calls, unknown = 40, 10
			r := newRig(t, replays, "", "a", "b", "c")
			begun := time.Now()
			earned := func() float64 { return time.Since(begun).Seconds() * replayFloor }

			// The chain is dead.
			r.scriptAll("status=503")
			seen := r.repeats(s.sdk, 0, calls)
			for n, c := range seen {
				if c.Error != s.error || c.Kind != s.kind || c.Status != 503 || len(c.Exchanges) != s.requests {
					t.Fatalf("call %d: the application sees %+v", n, c)
				}
				for _, e := range c.Exchanges {
					if e.Status != 503 || e.ShouldRetry != "false" || e.Number != "" && e.Number != "0" {
						t.Fatalf("call %d: the SDK sent and saw %+v", n, e)
					}
				}
			}
			want := "0"
			for n := 1; n < s.requests; n++ {
				want += fmt.Sprintf(" inferred%d", n)
			}
			if got := r.repeated(seen[0]); got != want {
				t.Errorf("the ledger has %s of call 0, want %s", got, want)
			}
			repetitions := float64(calls * (s.requests - 1))
			if got := r.sample(replaysInferred); got != repetitions || r.sample(replaysNumbered) != 0 {
				t.Errorf("%v of %v repetitions are recognised", got, repetitions)
			}
			least, atMost := calls+replayCap, calls+int(replayCap+earned())
			if got := r.total(); got < least || got > atMost {
				t.Errorf("%d calls made %d upstream calls; first attempts and tokens are %d", calls, got, atMost)
			}

			// Were each body another, every request would go upstream.
			before := r.total()
			r.repeats(s.sdk, 0, unknown, "salted")
			least, atMost = unknown*s.requests, unknown*s.requests+int(earned())
			if got := r.total() - before; got < least || got > atMost {
				t.Errorf("%d calls whose repetitions can't be known made %d upstream calls, want %d", unknown, got, atMost)
			}

			// Told not to repeat, the SDK is content with the proxy's own attempts.
			if c := r.repeats(s.sdk, calls, 1, "once")[0]; c.Status != 503 || len(c.Exchanges) != 1 {
				t.Errorf("without retries of its own: %+v", c)
			}

			// The channels are back, and no token is left: a replay isn't sent.
			r.scriptAll("ok")
			before = r.total()
			again := r.repeats(s.sdk, 0, 1)[0]
			if again.Status != 503 || !strings.Contains(again.Message, "retry budget is spent") || r.total() != before {
				t.Errorf("a second try without a token: %+v, %d upstream calls", again, r.total()-before)
			}

			// There are two tokens and a part of one: it is served, costs one and earns none.
			r.clock.forward(longEnough)
			again = r.repeats(s.sdk, 0, 1)[0]
			if again.Error != "" || again.Text == "" || len(again.Exchanges) != 1 || r.total()-before != 1 {
				t.Errorf("a second try after the recovery: %+v, %d upstream calls", again, r.total()-before)
			}
			rest, owned := r.sample(replayTokens), longEnough.Seconds()*replayFloor
			if rest < owned-1 || rest > owned-1+earned() {
				t.Errorf("%v tokens are left of %v, and %v that time has earned", rest, owned, earned())
			}
			if got := r.repeated(again); !strings.HasPrefix(got, "inferred") {
				t.Errorf("the ledger has %s of the second try", got)
			}

			// Since it was served, the next one is new: it costs nothing and earns.
			again = r.repeats(s.sdk, 0, 1)[0]
			if got := r.repeated(again); again.Error != "" || got != "0" {
				t.Errorf("a third try: %+v, of which the ledger has %s", again, got)
			}
			if got := r.sample(replayTokens); got < rest+1 {
				t.Errorf("a new request's success leaves %v tokens of %v", got, rest)
			}
		})
	}
}

// An SDK that numbers its retries is believed, and what the proxy remembers counts where it
// is more.
func TestAnSDKThatNumbersItsRetries(t *testing.T) {
	t.Parallel()
	r := newRig(t, replays, "", "a", "b", "c")
	r.scriptAll("status=503")
	f := func(what string, question int, numbers, ledger string, flags ...string) {
		t.Helper()
		c := r.repeats("openai", question, 1, flags...)[0]
		var sent []string
		for _, e := range c.Exchanges {
			sent = append(sent, e.Number)
		}
		if got := strings.Join(sent, " "); got != numbers || c.Kind != "InternalServerError" {
			t.Errorf("%s: the SDK sent the numbers %s, want %s; the application sees %+v", what, got, numbers, c)
		}
		if got := r.repeated(c); got != ledger {
			t.Errorf("%s: the ledger has %s, want %s", what, got, ledger)
		}
	}
	f("X-Should-Retry stops it", 0, "0", "0")
	f("it doesn't see X-Should-Retry", 1, "0 1 2", "0 header1 header2", "deaf")
	f("the application asks again", 1, "0 1 2", "inferred3 inferred4 inferred5", "deaf")
	f("one of its requests is lost", 2, "0 1 2", "0 header2", "deaf", "lost")
	f("each of its bodies is another", 3, "0 1 2", "0 header1 header2", "deaf", "salted")
	if numbered, inferred := r.sample(replaysNumbered), r.sample(replaysInferred); numbered != 5 || inferred != 3 {
		t.Errorf("%v are counted as numbered and %v as inferred, want 5 and 3", numbered, inferred)
	}
}

func TestWhatIsNoReplay(t *testing.T) {
	t.Parallel()
	r := newRig(t, withOther(t, replays), "", "a", "b", "c")
	const chat, anthropic = "/v1/chat/completions", "/v1/messages"
	const generate = `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`
	body := messages("model-1", false) // which chat completions take, too
	f := func(what, key, path, body string, want int) {
		t.Helper()
		got := post(t, r.base+path, body, "Authorization", "Bearer "+key)
		if n, _ := r.record(got.header.Get("X-Request-Id")).SDKRetry(); n != want {
			t.Errorf("%s: it counts as %d, want %d", what, n, want)
		}
	}
	r.scriptAll("status=503")
	f("a first request", keyOfApp, chat, body, 0)
	f("the same again", keyOfApp, chat, body, 1)
	f("and again", keyOfApp, chat, body, 2)
	f("another caller's", keyOfOther, chat, body, 0)
	f("over another endpoint", keyOfApp, anthropic, body, 0)
	f("another body", keyOfApp, chat, strings.Replace(body, "hello", "hallo", 1), 0)
	f("a byte more", keyOfApp, chat, body+" ", 0)
	for _, model := range []string{"model-1", "model-2"} {
		for _, method := range []string{":generateContent", ":streamGenerateContent"} {
			path := "/v1beta/models/" + model + method
			f(path, keyOfApp, path, generate, 0)
			f(path+" again", keyOfApp, path, generate, 1)
		}
	}

	r.scriptAll("status=400")
	f("a mistake of the caller's", keyOfOther, anthropic, body, 0)
	f("the same mistake", keyOfOther, anthropic, body, 0)

	r.scriptAll("cut after=3")
	f("a stream that breaks", keyOfOther, chat, messages("model-1", true), 0)
	f("the same stream", keyOfOther, chat, messages("model-1", true), 1)

	r.scriptAll("ok")
	f("a success", keyOfApp, anthropic, body+" ", 0)
	f("the same after a success", keyOfApp, anthropic, body+" ", 0)
}

// withOther is the configuration at path with a second caller.
func withOther(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, `
caller "other" {
  key_sha256 = "%x"
  groups     = [route_group.m]
}
`, sha256.Sum256([]byte(keyOfOther)))
	path = filepath.Join(t.TempDir(), "fourgate.hcl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
