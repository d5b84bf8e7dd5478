package hcl

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProfileGivesTime(t *testing.T) {
	t.Parallel()
	cfg := load(t, "testdata/valid/module_in_go.hcl", testEnvironment())
	want := []Classifier{{
		Name: "x", Module: filepath.Join("testdata", "valid", "x.wasm"), Profile: "wasi",
		SHA256:  "0000000000000000000000000000000000000000000000000000000000000001",
		Timeout: 250 * time.Millisecond, MemoryBytes: 16 << 20,
	}}
	if diff := cmp.Diff(want, cfg.Classifiers); diff != "" {
		t.Error(diff)
	}
}

func TestArtifactsAndShadow(t *testing.T) {
	t.Parallel()
	cfg := load(t, "testdata/valid/artifacts_and_shadow.hcl", testEnvironment())
	const zeros = "000000000000000000000000000000000000000000000000000000000000000"
	want := []Classifier{{
		Name: "from_registry", Module: "oci://registry.example.com/team/x@sha256:" + zeros + "1",
		Timeout: defaultClassifierTimeout, MemoryBytes: 16 << 20,
		Shadow: &Shadow{Module: filepath.Join("testdata", "valid", "x.wasm"), SHA256: zeros + "2", Timeout: defaultClassifierTimeout},
	}, {
		Name: "from_layout", Module: "oci-layout://" + filepath.Join("testdata", "valid", "layout", "x") + "@sha256:" + zeros + "3",
		Timeout: defaultClassifierTimeout, MemoryBytes: 16 << 20,
		Shadow: &Shadow{Module: "builtin:openai", Timeout: defaultBuiltinTimeout},
	}}
	if diff := cmp.Diff(want, cfg.Classifiers); diff != "" {
		t.Error(diff)
	}
}
