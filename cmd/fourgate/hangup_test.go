package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// SIGHUP asks for the policy bundle at once, however long the next question is away, and a
// server that hangs then holds up no reload.
func TestHangupAsksForTheBundle(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.offer("v1", true, policyVersion(1))
	var hangs, over atomic.Bool
	asked, offers := make(chan struct{}, 100), p.server.Config.Handler
	p.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hangs.Load() {
			offers.ServeHTTP(w, r)
			return
		}
		asked <- struct{}{}
		<-r.Context().Done()
		over.Store(true)
	})
	dir := t.TempDir()
	config := filepath.Join(dir, "fourgate.hcl")
	for path, text := range map[string]string{
		config: fmt.Sprintf(`provider "p" {
  base_url = "http://127.0.0.1:1"
  auth     = "none"
}
route_group "m" {
  models    = ["model-1"]
  endpoints = ["openai.chat"]
  channel "p" { provider = provider.p }
}
policy {
  bundle {
    url        = "%s/policy.tar.gz"
    public_key = file("bundle.pub")
    poll       = "24h"
  }
}
ledger { store = "none" }
`, p.server.URL),
		filepath.Join(dir, "bundle.pub"): p.public,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := newOutput()
	e := &env{stdout: log, stderr: log, lookup: func(string) (string, bool) { return "", false }}
	logger := slog.New(slog.NewTextHandler(log, nil))
	c := newCompiler(openHost(t))
	l, source, err := c.open(t.Context(), config, e, logger)
	if err != nil {
		t.Fatal(err)
	}
	a, err := newApp(c, l, nil, logger, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.follow(source)
	seen := a.watchChanges()
	ctx, stop := context.WithCancel(t.Context())
	var reloading sync.WaitGroup
	reloading.Go(func() { a.reloadOnChange(ctx, seen, e, config) })
	defer func() {
		stop()
		reloading.Wait()
		a.unfollow()
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}()
	p.offer("v2", true, policyVersion(2))
	seen.hangup <- syscall.SIGHUP
	log.await(t, "revision=v2")

	hangs.Store(true)
	seen.hangup <- syscall.SIGHUP
	log.awaitCount(t, "msg=reloaded", 2)
	<-asked
	seen.hangup <- syscall.SIGHUP
	log.awaitCount(t, "msg=reloaded", 3)
	if over.Load() {
		t.Error("the reload has waited for the bundle")
	}
}
