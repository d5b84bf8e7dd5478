package engine

import (
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
