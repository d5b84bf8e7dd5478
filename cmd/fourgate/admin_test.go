package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

func TestAdminURL(t *testing.T) {
	t.Parallel()
	f := func(listen, want string) {
		t.Helper()
		if got, err := adminURL(listen); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", listen, got, err, want)
		}
	}
	f("127.0.0.1:8081", "http://127.0.0.1:8081")
	f("localhost:8081", "http://localhost:8081")
	f(":8081", "http://127.0.0.1:8081")
	f("0.0.0.0:8081", "http://127.0.0.1:8081")
	f("[::]:8081", "http://[::1]:8081")
	f("[fe80::1]:8081", "http://[fe80::1]:8081")
	f("10.0.0.7:8081", "http://10.0.0.7:8081")
	for _, listen := range []string{"", "8081", "127.0.0.1:0"} {
		if got, err := adminURL(listen); err == nil {
			t.Errorf("%q: %q, want an error", listen, got)
		}
	}
}

// TestAdminToken has the command find the token where the proxy has it from.
func TestAdminToken(t *testing.T) {
	t.Parallel()
	r := standingRig(t, oneGroup(""))
	text, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	locked := filepath.Join(filepath.Dir(r.config), "locked.hcl")
	text = bytes.Replace(text, []byte("debug_headers = true"), []byte(`admin_token   = env("TOKEN")`), 1)
	if err := os.WriteFile(locked, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r.vars["TOKEN"], r.vars["LEDGER"] = "the-admin-token", r.ledger+"2"
	r.proxy = startAt(t, r.clock, r.vars, "serve", "-c", locked)
	r.base = r.proxy.base(t)
	if got := r.get(r.admin() + "/api/standing"); !strings.Contains(got, `"status":401`) {
		t.Errorf("without the token: %s", got)
	}
	if got := r.cli("admin", "disable", "-c", locked, "-admin", r.admin(), "m/a"); got != "m/a is disabled until it is enabled\n" {
		t.Errorf("disable: %s", got)
	}
	if got := r.cli("chain", "-c", locked, "-admin", r.admin(), "model-1"); !strings.Contains(got, ", now (") || !strings.Contains(got, "disabled by hand") {
		t.Errorf("chain: %s", got)
	}
	if all := r.proxy.stderr.String() + r.proxy.stdout.String(); strings.Contains(all, "the-admin-token") || !strings.Contains(all, "by=admin_token") {
		t.Errorf("the log:\n%s", all)
	}
}

func TestChannelIsTakenOutByHand(t *testing.T) {
	t.Parallel()
	r := standingRig(t, oneGroup(`
  breaker {
    mode     = "consecutive"
    failures = 1
    open_for = "1h"
  }`))
	where := []string{"-c", r.config, "-admin", r.admin()}
	admin := func(args ...string) string {
		t.Helper()
		return r.cli(append(append([]string{"admin", args[0]}, where...), args[1:]...)...)
	}
	if got := admin("standing"); got != "nothing is set aside\n" {
		t.Errorf("standing: %s", got)
	}
	if got := admin("disable", "-for", "30m", "m/a"); !strings.HasPrefix(got, "m/a is disabled until ") {
		t.Errorf("disable: %s", got)
	}
	r.chat(200)
	r.wantCalls("a=0 b=1 c=0")
	if got := r.liveChain(); got != "b c a(disabled by hand)" {
		t.Errorf("chain -live: %s", got)
	}
	if got := r.cli("chain", "-c", r.config, "model-1"); !strings.Contains(got, "when everything is well") || strings.Contains(got, "disabled") {
		t.Errorf("chain without -live: %s", got)
	}
	r.script("b", "status=503")
	r.chat(200) // opens b's breaker
	if got := admin("standing"); !strings.Contains(got, "breaker_open") || !strings.Contains(got, "m/b") || !strings.Contains(got, "channel_disabled") || !strings.Contains(got, "30m0s") {
		t.Errorf("standing: %s", got)
	}
	text := r.get(r.admin() + "/readyz?verbose")
	for _, line := range []string{"ready\n", "[+] callers: requests are taken\n", "[+] config: generation 1 since ", "[+] group m: 1 of 3 channels usable, out: a (disabled by hand until ", "b (breaker open until ", "policy ", "[+] shared state: none"} {
		if !strings.Contains(text, line) {
			t.Errorf("readyz?verbose has no %q:\n%s", line, text)
		}
	}
	admin("enable", "m/a")
	if got := admin("reset", "-kind", "breaker_open", "-group", "m"); !strings.HasPrefix(got, "put back what was set aside:\nKIND ") || !strings.Contains(got, "WOULD HAVE ENDED IN") {
		t.Errorf("a reset says:\n%s", got)
	}
	if got := admin("reset", "-all"); got != "nothing that fits was set aside\n" {
		t.Errorf("reset: %s", got)
	}
	if got := r.liveChain(); got != "a b c" {
		t.Errorf("chain -live: %s", got)
	}
	r.proxy.end(t) // and everything is in the ledger
	var told struct{ Changes []ledger.Change }
	if err := json.Unmarshal([]byte(r.cli("ledger", "changes", "-c", r.config, "-json", "-since", "1h")), &told); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range told.Changes {
		line := c.Action + " " + c.Kind + " " + c.Group + "/" + c.Channel + " before: " + asidesText(c.Before)
		if c.By != "nobody in particular" || !strings.HasPrefix(c.From, "127.0.0.1:") || c.At.IsZero() || c.Generation != 1 {
			t.Errorf("%s: by %q from %q at %v, generation %d", line, c.By, c.From, c.At, c.Generation)
		}
		got = append(got, line)
	}
	want := []string{
		"reset  / before: ",
		"reset breaker_open m/ before: breaker_open m/b",
		"enable channel_disabled m/a before: channel_disabled m/a",
		"disable channel_disabled m/a before: ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if text := r.cli("ledger", "changes", "-c", r.config); !strings.Contains(text, "channel m/b") && !strings.Contains(text, "breaker_open m/b") {
		t.Errorf("as a table:\n%s", text)
	}
	if log := r.proxy.stderr.String(); !strings.Contains(log, "msg=changed action=disable") {
		t.Error("the log has no line about the change")
	}
}
