package engine

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// A time is written as the shortest decimal that is it, as strconv does.
func TestAppendMS(t *testing.T) {
	t.Parallel()
	same := func(us int64) {
		t.Helper()
		want := strconv.FormatFloat(float64(us)/1000, 'f', -1, 64)
		if got := string(appendMS([]byte("x"), time.Duration(us)*time.Microsecond)); got != "x"+want {
			t.Errorf("%d µs: %s, want %s", us, got, want)
		}
	}
	for _, us := range []int64{0, 1, 10, 100, 999, 1000, 1001, 1010, 1100, 12_345, -1, -999, -1000, -2500, maxMicros, -maxMicros, maxMicros - 1} {
		same(us)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		same(rnd.Int64N(2*maxMicros) - maxMicros)
		same(rnd.Int64N(100_000))
	}
}

// The revision of the policy that decides comes back from the public form.
func TestRecordNamesThePolicy(t *testing.T) {
	t.Parallel()
	r := RecordRefusal(time.Now(), &Request{ID: "r", Caller: &Caller{}, Policy: "0a1b2c"}, &Refusal{Kind: RefusalPolicy}, 503)
	back, err := ParseRecord(r.AppendJSON(nil))
	if err != nil || back.Policy() != "0a1b2c" {
		t.Errorf("policy %q, %v", back.Policy(), err)
	}
	if back, err = ParseRecord([]byte(`{"request_id":"r"}`)); err != nil || back.Policy() != "" {
		t.Errorf("policy %q, %v", back.Policy(), err)
	}
}

// Where the number of an SDK's retries comes from is in the public form, if there is any.
func TestRecordNamesTheSourceOfRetries(t *testing.T) {
	t.Parallel()
	f := func(req *Request, want string) {
		t.Helper()
		req.ID, req.Caller = "r", &Caller{}
		text := RecordRefusal(time.Now(), req, &Refusal{Kind: RefusalRate}, 429).AppendJSON(nil)
		var got struct {
			Source *string `json:"sdk_retry_source"`
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got.Source == nil && want != "" || got.Source != nil && *got.Source != want {
			t.Errorf("want %q: %s", want, text)
		}
		back, err := ParseRecord(text)
		if err != nil {
			t.Fatal(err)
		}
		if n, source := back.SDKRetry(); n != req.SDKRetry || source.String() != want {
			t.Errorf("%d retries by %q came back, want %d by %q", n, source, req.SDKRetry, want)
		}
	}
	f(&Request{}, "")
	f(&Request{SDKRetry: 2}, "header")
	f(&Request{SDKRetry: 1, retrySource: RetrySourceInferred}, "inferred")
	if back, err := ParseRecord([]byte(`{"sdk_retry":1,"sdk_retry_source":"by a later version"}`)); err != nil || back.sdkRetrySource != RetrySourceNone {
		t.Errorf("an unknown source is read as %q, %v", back.sdkRetrySource, err)
	}
}
