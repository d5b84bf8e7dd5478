package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReloadOnChangedFile edits the configuration and its policy under a running proxy.
func TestReloadOnChangedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, policy := filepath.Join(dir, "fourgate.hcl"), filepath.Join(dir, "policies", "own.rego")
	text, err := os.ReadFile(trio)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Dir(policy), 0o700); err != nil {
		t.Fatal(err)
	}
	const standard = "package fourgate\n\ndecision := data.fourgate.standard.decision\n"
	write(policy, standard)
	first := string(text) + "policy {\n  paths = [\"policies\"]\n}\n"
	write(config, first)
	r := newRig(t, config, "", "a", "b", "c")
	status := func(model string) int {
		t.Helper()
		return post(t, r.base+"/v1/chat/completions", chat(model, false)).status
	}
	if got := status("model-2"); got != 404 {
		t.Errorf("before the change model-2 gives %d", got)
	}

	write(config, strings.ReplaceAll(first, "model-1", "model-2"))
	r.proxy.stderr.await(t, "msg=reloaded")
	if got, old := status("model-2"), status("model-1"); got != 200 || old != 404 {
		t.Errorf("after the change model-2 gives %d and model-1 %d", got, old)
	}

	write(config, "route_group {")
	r.proxy.stderr.await(t, "reload refused")
	if got := status("model-2"); got != 200 {
		t.Errorf("after a bad change model-2 gives %d", got)
	}

	r.script("a", "status=503")
	if got := status("model-2"); got != 200 {
		t.Errorf("the standard policy gives %d", got)
	}
	write(config, strings.ReplaceAll(first, "model-1", "model-2"))
	write(policy, "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": \"never\"}\n")
	r.proxy.stderr.awaitCount(t, "msg=reloaded", 2)
	if got := status("model-2"); got != 503 {
		t.Errorf("the changed policy gives %d, want the upstream's own 503", got)
	}
}
