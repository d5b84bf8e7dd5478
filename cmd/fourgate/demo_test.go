package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestDemo starts the demo as the README does and sends what it prints.
func TestDemo(t *testing.T) {
	t.Parallel()
	clock := new(movable)
	c := startAt(t, clock, nil, "demo", "-listen", "127.0.0.1:0")
	text := c.stdout.await(t, "Ctrl-C ends it.")
	base := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(text)
	for i, want := range []string{
		"provider_transient/overloaded", "provider_transient/server_error", "provider_transient/network", "rate_limited/", "key_fault/invalid_credential",
	} {
		clock.forward(5 * time.Second) // a key that was rate-limited is warm again
		got := post(t, base+"/v1/chat/completions", chat("demo-model", true))
		if got.status != 200 || !strings.Contains(got.body, "[DONE]") {
			t.Fatalf("request %d: got %d %s", i+1, got.status, got.body)
		}
		line := regexp.MustCompile(`#1 amber .*`).FindAllString(c.stdout.await(t, want), -1)
		last := line[len(line)-1]
		for _, part := range []string{want, "class=pass phase=pass idempotency=pass budget=pass", "=> fallback to birch"} {
			if !strings.Contains(last, part) {
				t.Errorf("request %d: %q is not in the line %q", i+1, part, last)
			}
		}
	}
	store := regexp.MustCompile(`-ledger (\S+)`).FindStringSubmatch(text)[1]
	for limit := time.Now().Add(waitLimit); ; {
		var out bytes.Buffer
		e := &env{now: time.Now, args: []string{"ledger", "list", "-ledger", store}, stdout: &out, stderr: &out}
		if code := run(t.Context(), e); code == exitOK && strings.Contains(out.String(), "amber(key_fault)") {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the ledger doesn't show the dead key:\n%s", &out)
		}
	}
	if code := c.end(t); code != exitOK {
		t.Errorf("exit code %d: %s", code, c.stderr)
	}
}
