package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestConcerns(t *testing.T) {
	t.Parallel()
	files := []string{"etc/fourgate.hcl", "etc/policies/", "house.wasm"}
	for path, want := range map[string]bool{
		"etc/fourgate.hcl": true, "./etc/fourgate.hcl": true, "etc/policies": true, "etc/policies/gates/mine.rego": true, "house.wasm": true,
		"etc/..data": true, "etc/policies/..data": true,
		"etc/fourgate.db": false, "etc/fourgate.db-wal": false, "etc/policies-next/mine.rego": false, "etc": false, "etc/.fourgate.hcl.swp": false,
	} {
		if got := concerns(files, path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

// A change is seen although another file of the directory is written without a rest, as
// the ledger is.
func TestWatchBesideTheLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, beside := filepath.Join(dir, "fourgate.hcl"), filepath.Join(dir, "fourgate.db")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	write(config, "one")
	changes, stop := watchFiles([]string{config}, digest([]string{config}), slog.New(slog.DiscardHandler))
	defer stop()
	write(config, "two")
	tick := time.NewTicker(settle / 10)
	defer tick.Stop()
	limit := time.After(waitLimit)
	for {
		select {
		case <-changes:
			return
		case <-tick.C:
			write(beside, time.Now().String())
		case <-limit:
			t.Fatal("the change was not seen")
		}
	}
}
