package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

const smallestConfig = `provider "p" {
  base_url = "http://127.0.0.1:1"
  auth     = "none"
}
route_group "m" {
  models    = ["model-1"]
  endpoints = ["openai.chat"]
  channel "p" { provider = provider.p }
}
ledger { store = "none" }
`

// A configuration may come out of a pipe, which can be read but once.
func TestConfigurationFromAPipe(t *testing.T) {
	t.Parallel()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	path := fmt.Sprintf("/dev/fd/%d", out.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("this system has no names for open files: ", err)
	}
	go func() {
		_, _ = io.WriteString(in, smallestConfig)
		_ = in.Close()
	}()
	log := newOutput()
	e := &env{now: time.Now, args: []string{"validate", "-c", path}, stdout: log, stderr: log, lookup: func(string) (string, bool) { return "", false }}
	if code := run(t.Context(), e); code != 0 {
		t.Errorf("exit code %d: %s", code, log)
	}
}

// A configuration that changes while it is read is read again, and refused if it never rests.
func TestConfigurationThatChangesWhileItIsRead(t *testing.T) {
	t.Parallel()
	f := func(changes int, want string) {
		t.Helper()
		w := newTree(t)
		put := func(n int) {
			w.write("fourgate.hcl", strings.NewReplacer("model-1", fmt.Sprintf("model-%d", n), `"http://127.0.0.1:1"`, `env("URL")`).Replace(smallestConfig))
		}
		put(0)
		readings := 0
		e := &env{lookup: func(string) (string, bool) { // is called in the middle of each reading
			if readings++; readings <= changes {
				put(readings)
			}
			return "http://127.0.0.1:1", true
		}}
		l, _, diags := newCompiler(nil).load(t.Context(), w.path("fourgate.hcl"), e)
		got := ""
		if l != nil {
			got = l.config.Spec.Groups[0].Models[0]
		} else if len(diags) == 1 {
			got = diags[0].Summary
		}
		if got != want {
			t.Errorf("after %d changes: %q (%v), want %q", changes, got, diags, want)
		}
	}
	f(0, "model-0")
	f(1, "model-1")
	f(3, "model-3")
	f(100, "Files change while they are read")
}
