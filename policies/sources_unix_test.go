//go:build unix

package policies

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Reading a pipe that nobody writes to would wait for ever, and a reload with it.
func TestPipesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.rego"), []byte(region), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "q.rego")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	linked := t.TempDir()
	if err := os.Symlink(pipe, filepath.Join(linked, "q.rego")); err != nil {
		t.Fatal(err)
	}
	for name, load := range map[string]func() error{
		"in a directory": func() error { _, err := Load(t.Context(), Options{Paths: []string{dir}}); return err },
		"named itself":   func() error { _, err := Load(t.Context(), Options{Paths: []string{pipe}}); return err },
		"behind a link":  func() error { _, err := Load(t.Context(), Options{Paths: []string{linked}}); return err },
		"for tests":      func() error { _, err := RunTests(t.Context(), TestOptions{Paths: []string{dir}}); return err },
	} {
		if err := load(); err == nil || !strings.Contains(err.Error(), "q.rego") || !strings.Contains(err.Error(), "pipe") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
