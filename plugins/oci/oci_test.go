package oci_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/fourgate-dev/fourgate/plugins/oci"
)

var module = []byte("\x00asm\x01\x00\x00\x00 some module")

func manifest(layers ...string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":%q,`+
		`"config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"%s","size":2},"layers":[%s]}`,
		oci.ArtifactType, digest.FromString("{}"), strings.Join(layers, ","))
}

func layer(mediaType string, content []byte, size int) string {
	return fmt.Sprintf(`{"mediaType":%q,"digest":"%s","size":%d}`, mediaType, digest.FromBytes(content), size)
}

func good() string { return manifest(layer(oci.LayerType, module, len(module))) }

// layout writes blobs into a directory as the OCI image layout has them and returns it.
func layout(t *testing.T, blobs ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		if err := os.WriteFile(filepath.Join(dir, "blobs", "sha256", digest.FromString(b).Encoded()), []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func fetch(t *testing.T, text string, o oci.Options) ([]byte, error) {
	t.Helper()
	ref, err := oci.Parse(text)
	if err != nil {
		return nil, err
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1000
	}
	return oci.Fetch(t.Context(), ref, o)
}

func TestParse(t *testing.T) {
	t.Parallel()
	sum := "sha256:" + strings.Repeat("ab", 32)
	for _, text := range []string{
		"oci://registry.example.com/team/mine@" + sum,
		"oci://localhost:5000/mine@" + sum,
		"oci-layout:///var/lib/plugins/mine@" + sum,
		"oci-layout://plugins/mine@" + sum,
	} {
		if ref, err := oci.Parse(text); err != nil || ref.String() != text {
			t.Errorf("%s was read as %s (%v)", text, ref, err)
		}
	}
	f := func(text, want string) {
		t.Helper()
		if _, err := oci.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want one with %q", text, err, want)
		}
	}
	f("oci://registry.example.com/team/mine", "it has no digest; a tag can be moved")
	f("oci://registry.example.com/team/mine:v1", "it has no digest")
	f("oci://registry.example.com/team/mine:v1@"+sum, `it has the tag "v1" beside its digest`)
	f("oci://registry.example.com/team/mine@sha256:12", "64 hexadecimal digits")
	f("oci://registry.example.com/team/mine@sha512:"+strings.Repeat("ab", 64), "64 hexadecimal digits")
	f("oci://registry.example.com@"+sum, "oci://REGISTRY/REPOSITORY@sha256:")
	f("oci://registry.example.com/Team@"+sum, "in lower case")
	f("oci-layout://@"+sum, "names no directory")
	f("https://registry.example.com/x@"+sum, "begins neither")
}

func FuzzParse(f *testing.F) {
	f.Add("oci://registry.example.com/team/mine@sha256:" + strings.Repeat("ab", 32))
	f.Add("oci-layout:///dir@sha256:" + strings.Repeat("ab", 32))
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := oci.Parse(text)
		if err != nil {
			return
		}
		if again, err := oci.Parse(ref.String()); err != nil || again != ref {
			t.Errorf("%q gives %v, and that gives %v (%v)", text, ref, again, err)
		}
	})
}

func TestLayout(t *testing.T) {
	t.Parallel()
	f := func(name, manifest, want string, blobs ...string) {
		t.Helper()
		dir := layout(t, append(blobs, manifest)...)
		got, err := fetch(t, "oci-layout://"+dir+"@"+digest.FromString(manifest).String(), oci.Options{})
		switch {
		case want == "" && (err != nil || !bytes.Equal(got, module)):
			t.Errorf("%s: %q (%v)", name, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v; want one with %q", name, err, want)
		}
	}
	m := string(module)
	f("good", good(), "", m)
	f("no layer", manifest(), "one layer", m)
	f("two layers", manifest(layer(oci.LayerType, module, len(module)), layer(oci.LayerType, module, len(module))), "has 2 layers", m)
	f("another layer", manifest(layer("application/tar", module, len(module))), "one layer of the type", m)
	f("another artifact", strings.Replace(good(), "classifier.v1", "classifier.v2", 1), "its artifact type is", m)
	f("an index", strings.Replace(good(), "image.manifest", "image.index", 1), "use the digest of the image manifest itself", m)
	f("no JSON", "{", "no JSON", m)
	f("a module that is not there", good(), "its module is not there")
	f("too large by its word", manifest(layer(oci.LayerType, module, 5000)), "has 5000 bytes; the limit is 1000", m)
	f("larger than its word", manifest(layer(oci.LayerType, module, 3)), "more than the 3 bytes", m)
	f("smaller than its word", manifest(layer(oci.LayerType, module, 500)), "", m) // the digest is what counts
	f("a manifest that is too large", good()+strings.Repeat(" ", 70_000), "more than the 65536 bytes", m)

	dir := layout(t, good(), m)
	_, err := fetch(t, "oci-layout://"+dir+"@"+digest.FromString("other").String(), oci.Options{})
	if err == nil || !strings.Contains(err.Error(), "its manifest is not there; check the name and the digest") {
		t.Errorf("error %v", err)
	}
	broken := filepath.Join(dir, "blobs", "sha256", digest.FromBytes(module).Encoded())
	if err := os.WriteFile(broken, []byte("\x00asm\x01\x00\x00\x00 evil module"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t, "oci-layout://"+dir+"@"+digest.FromString(good()).String(), oci.Options{}); err == nil || !strings.Contains(err.Error(), "its bytes have the digest") {
		t.Errorf("a changed module: error %v", err)
	}
}

// registry serves one artifact as a registry does, and counts.
type registry struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string
	module []byte
	hang   chan struct{}
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{module: module}
	sums := map[string]func() (string, []byte){
		"/v2/team/mine/manifests/" + digest.FromString(good()).String(): func() (string, []byte) {
			return "application/vnd.oci.image.manifest.v1+json", []byte(good())
		},
		"/v2/team/mine/blobs/" + digest.FromBytes(module).String(): func() (string, []byte) {
			return "application/octet-stream", r.module
		},
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, q.Method+" "+q.URL.Path)
		hang := r.hang
		r.mu.Unlock()
		if hang != nil {
			<-hang
		}
		blob, ok := sums[q.URL.Path]
		if !ok {
			http.NotFound(w, q)
			return
		}
		mediaType, body := blob()
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if _, err := w.Write(body); err != nil {
			t.Log(err)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *registry) ref(sum digest.Digest) string {
	return "oci://" + strings.TrimPrefix(r.URL, "http://") + "/team/mine@" + sum.String()
}

func (r *registry) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	cache := oci.Options{CacheDir: filepath.Join(t.TempDir(), "cache")}
	ref := r.ref(digest.FromString(good()))
	for range 2 {
		if got, err := fetch(t, ref, cache); err != nil || !bytes.Equal(got, module) {
			t.Fatalf("%q (%v)", got, err)
		}
		if n := r.requests(); n != 2 {
			t.Errorf("the registry was asked %d times; want 2, and none for what is kept: %v", n, r.asked)
		}
	}
	// What was damaged in the cache is fetched again.
	kept := filepath.Join(cache.CacheDir, "sha256", digest.FromBytes(module).Encoded())
	if err := os.WriteFile(kept, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := fetch(t, ref, cache); err != nil || !bytes.Equal(got, module) || r.requests() != 3 {
		t.Errorf("%q (%v) after %d requests", got, err, r.requests())
	}

	f := func(ref, want string, o oci.Options) {
		t.Helper()
		if _, err := fetch(t, ref, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want one with %q", ref, err, want)
		}
	}
	f(r.ref(digest.FromString("other")), "its manifest is not there", oci.Options{})
	f(ref, "the limit is 5", oci.Options{MaxBytes: 5})
	r.module = bytes.ToUpper(module)
	f(ref, "digest", oci.Options{})
	f(ref, "cannot keep it in the cache", oci.Options{CacheDir: "/dev/null"})

	hang := make(chan struct{})
	defer close(hang)
	r.mu.Lock()
	r.hang = hang
	r.mu.Unlock()
	f(ref, "it took longer than 50ms", oci.Options{Timeout: 50 * time.Millisecond})
}
