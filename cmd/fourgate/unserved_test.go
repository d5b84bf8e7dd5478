package main

import (
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
)

// TestATimelineSaysWhyNoAttemptWasMade, since the caller's error sends people to it.
func TestATimelineSaysWhyNoAttemptWasMade(t *testing.T) {
	t.Parallel()
	f := func(unserved string, want ...string) {
		t.Helper()
		r, err := engine.ParseRecord([]byte(`{"request_id":"r","at":"2026-03-01T12:00:00Z",` + unserved + `"attempts":[],"terminal":"exhausted","status":503}`))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := drawTimeline(&b, r, nil); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%q is missing in:\n%s", w, b.String())
			}
		}
	}
	f("", "no attempt was made\n")
	f(`"unserved":{"why":"no_channel","out":[{"group":"g","channel":"a","why":"breaker open","until":"2026-03-01T12:01:00Z"},`+
		`{"group":"g","channel":"b","why":"disabled by hand"},{"group":"g","channel":"c","why":"no usable key"}],"more":3},`,
		"no attempt was made: every channel was out\n", "  g/a: breaker open until 2026-03-01 1", "  g/b: disabled by hand\n",
		"  g/c: no usable key\n", "  and 3 more\n")
	for why, want := range map[string]string{
		"caller_rate": "the caller's rate", "group_rates": "of all its route groups", "policy": "the policy left", "retry_budget": "retry budget was spent",
		"budget": "useful time", "gone": "went out meanwhile", "by a later version": "no attempt was made\n",
	} {
		f(`"unserved":{"why":"`+why+`"},`, want)
	}
}
