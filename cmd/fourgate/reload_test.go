package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestReloadOfModules swaps the classifier's module again and again while callers send
// requests whose first channel fails: every request is answered, and each failure is
// classified by one of the versions.
func TestReloadOfModules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(trio)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var versions []string
	for _, name := range []string{"generic", "openai"} {
		module, err := os.ReadFile(filepath.Join("..", "..", "plugins", "builtin", name, name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".wasm")
		if err := os.WriteFile(path, module, 0o600); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(module)
		versions = append(versions, fmt.Sprintf("\nclassifier \"house\" {\n  module = %q\n  sha256 = %q\n}\n", path, hex.EncodeToString(sum[:])))
	}
	config := filepath.Join(dir, "fourgate.hcl")
	// Every request needs a second attempt, which the retry budget would stop.
	text = append(text, "\nretry_budget {\n  floor = 1000\n  cap   = 1000\n}\n"...)
	serving := strings.Replace(string(text), "base_url = env(\"A_URL\")", "base_url = env(\"A_URL\")\n  classifier = classifier.house", 1)
	put := func(version string) {
		t.Helper()
		// Written beside and renamed, so that no reload reads half of it.
		if err := os.WriteFile(config+".next", []byte(serving+version), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(config+".next", config); err != nil {
			t.Fatal(err)
		}
	}
	put(versions[0])
	r := newRig(t, config, "", "a", "b", "c")
	r.script("a", "status=503")

	var callers sync.WaitGroup
	var done atomic.Bool
	var answered atomic.Int64
	for range 2 {
		callers.Go(func() {
			for !done.Load() {
				if got := post(t, r.base+"/v1/chat/completions", chat("model-1", false)); got.status != 200 || got.err != nil {
					t.Errorf("status %d, %v: %s", got.status, got.err, got.body)
					return
				}
				answered.Add(1)
			}
		})
	}
	const reloads = 6
	for i := range reloads {
		put(versions[(i+1)%len(versions)])
		r.proxy.stderr.awaitCount(t, "msg=reloaded", i+1)
	}
	done.Store(true)
	callers.Wait()
	if answered.Load() == 0 {
		t.Error("no request was answered meanwhile")
	}
	if log := r.proxy.stderr.String(); strings.Contains(log, "reload refused") || strings.Contains(log, "set aside") {
		t.Error(log)
	}
}
