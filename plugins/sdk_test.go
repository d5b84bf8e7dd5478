package plugins

import (
	"os"
	"strings"
	"testing"
)

// TestSDKsHaveAllFunctions keeps the languages' files with the ABI: a function that is
// added there must come to every author.
func TestSDKsHaveAllFunctions(t *testing.T) {
	t.Parallel()
	for file, form := range map[string]string{
		"sdk/c/fourgate.h":     "FG_IMPORT(%) ",
		"sdk/rust/fourgate.rs": "pub fn %(",
		"sdk/go/fourgate.go":   "//go:wasmimport fourgate %\n",
		"../docs/plugins.md":   "`%(",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range abiFunctions {
			if want := strings.Replace(form, "%", f.name, 1); !strings.Contains(string(text), want) {
				t.Errorf("%s has no %q", file, want)
			}
		}
	}
}
