package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
	_, admin, _ := strings.Cut(r.proxy.stdout.await(t, "metrics and health on "), "metrics and health on ")
	admin, _, _ = strings.Cut(admin, "\n")
	// The replaced version goes with a garbage collection; the other and the default one stay.
	for limit, held := time.Now().Add(waitLimit), 3; held > 2; {
		runtime.GC()
		held = heldModules(t, strings.TrimSpace(admin))
		if time.Now().After(limit) {
			t.Fatalf("%d modules are held", held)
		}
	}
	if log := r.proxy.stderr.String(); strings.Contains(log, "reload refused") || strings.Contains(log, "classifier set aside") {
		t.Error(log)
	}
}

// heldModules reads from the metrics how many modules the proxy holds.
func heldModules(t *testing.T, admin string) int {
	t.Helper()
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, count, _ := strings.Cut(string(text), "\nfourgate_classifier_modules ")
	count, _, _ = strings.Cut(count, "\n")
	n, err := strconv.Atoi(count)
	if err != nil {
		t.Fatalf("the modules are not counted: %v", err)
	}
	return n
}
