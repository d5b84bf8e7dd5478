//go:build unix

package plugins_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fourgate-dev/fourgate/plugins"
)

// TestNoRegularFile shows that nothing is opened that isn't a file: to open a pipe would
// wait for ever.
func TestNoRegularFile(t *testing.T) {
	t.Parallel()
	host := openHost(t)
	pipe := filepath.Join(t.TempDir(), "pipe.wasm")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	large := filepath.Join(t.TempDir(), "large.wasm")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<30); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		pipe: "no regular file", "/dev/zero": "no regular file", t.TempDir(): "is a directory", large: "more than 16777216 bytes",
	} {
		if _, err := host.Load(t.Context(), plugins.Module{Name: "test", Source: source, SHA256: strings.Repeat("0", 64)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v lacks %q", source, err, want)
		}
	}
}
