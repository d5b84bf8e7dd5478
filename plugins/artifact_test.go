package plugins_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
)

// artifact writes a module as an artifact in an OCI image layout and returns its
// reference.
func artifact(t *testing.T, binary []byte) string {
	t.Helper()
	dir := t.TempDir()
	put := func(content []byte) string {
		sum := sha256.Sum256(content)
		name := hex.EncodeToString(sum[:])
		path := filepath.Join(dir, "blobs", "sha256", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return "sha256:" + name
	}
	manifest := fmt.Sprintf(`{"schemaVersion":2,"artifactType":"application/vnd.fourgate.classifier.v1","layers":[{"mediaType":"application/wasm","digest":%q,"size":%d}]}`,
		put(binary), len(binary))
	return "oci-layout://" + dir + "@" + put([]byte(manifest))
}

// TestArtifact loads a module that is an artifact; its reference pins it, and a digest
// beside it is compared, too.
func TestArtifact(t *testing.T) {
	t.Parallel()
	host, err := plugins.Open(t.Context(), plugins.Options{FetchedDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close(t.Context())
	binary := saying(1, 2, 1, 1000)
	m := plugins.Module{Name: "x", Source: artifact(t, binary)}
	c, err := host.Load(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if v := c.Classify(new(engine.Evidence)); v.Class != engine.ClassKeyFault {
		t.Errorf("verdict %+v", v)
	}
	// It is kept: the layout can go.
	m.Source = "oci-layout://gone" + m.Source[strings.LastIndexByte(m.Source, '@'):]
	if again, err := host.Load(t.Context(), m); err != nil || again != c {
		t.Errorf("what was kept gave another classifier (%v)", err)
	}
	m.SHA256 = strings.Repeat("0", 64)
	if _, err := host.Load(t.Context(), m); err == nil || !strings.Contains(err.Error(), "not the pinned") {
		t.Errorf("error %v", err)
	}
	f := func(source, want string) {
		t.Helper()
		if _, err := host.Load(t.Context(), plugins.Module{Name: "x", Source: source}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want one with %q", source, err, want)
		}
	}
	f("oci://registry.example.com/x:v1", `cannot load classifier "x": cannot read reference`)
	f(artifact(t, []byte("no module")), "it is no WebAssembly module")
}
