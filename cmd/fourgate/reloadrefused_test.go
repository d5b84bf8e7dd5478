package main

import (
	"context"
	"log/slog"
	"sync"
	"testing"
)

// What a refused configuration names is watched, too: mending it there is enough.
func TestMendedFileOfARefusedConfiguration(t *testing.T) {
	t.Parallel()
	w := newTree(t)
	w.write("fourgate.hcl", smallestConfig)
	w.write("new/p.rego", "package fourgate\n\ndecision := {\n")
	log := newOutput()
	e := &env{stdout: log, stderr: log, lookup: func(string) (string, bool) { return "", false }}
	logger := slog.New(slog.NewTextHandler(log, nil))
	c := newCompiler(openHost(t))
	l, _, err := c.open(t.Context(), w.path("fourgate.hcl"), e, logger)
	if err != nil {
		t.Fatal(err)
	}
	a, err := newApp(c, l, nil, logger, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := a.watchChanges()
	ctx, stop := context.WithCancel(t.Context())
	var reloading sync.WaitGroup
	reloading.Go(func() { a.reloadOnChange(ctx, seen, e, w.path("fourgate.hcl")) })
	defer func() {
		stop()
		reloading.Wait()
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}()
	w.write("fourgate.hcl", smallestConfig+"policy { paths = [\"new\"] }\n")
	log.await(t, "reload refused")
	w.write("new/p.rego", "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": \"mended\"}\n")
	log.await(t, "msg=reloaded")
	w.write("new/p.rego", "package fourgate\n\ndecision := {\"action\": \"abort\", \"reason\": \"again\"}\n")
	log.awaitCount(t, "msg=reloaded", 2)
}
