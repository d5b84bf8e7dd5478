package hcl

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// seeds adds the configurations of testdata and the hostile shapes that the guard is
// for.
func seeds(f *testing.F) {
	f.Helper()
	for _, pattern := range []string{"testdata/valid/*.hcl", "testdata/invalid/s*.hcl", "testdata/json/*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range files {
			src, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src, filepath.Ext(path) == ".json")
		}
	}
	for _, unit := range []string{"[", "{", "(", "!", "a?", "a[*]", "\"${", "%{if a}", "<<X\n"} {
		f.Add(append([]byte("a = "), bytes.Repeat([]byte(unit), 2000)...), false)
		f.Add(bytes.Repeat([]byte(unit), 2000), true)
	}
	f.Add([]byte("\xef\xbb\xbfserver {\r\n}\r\n"), false)
	f.Add([]byte("a = \"\x00\xff\""), false)
}

// Load ends on any source, with a configuration or with errors that have a place, and
// all of them can be drawn.
func FuzzLoad(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte, isJSON bool) {
		name := "x.hcl"
		if isJSON {
			name = "x.hcl.json"
		}
		cfg, diags := Load(name, inMemory(map[string]string{name: string(src)}))
		if (cfg == nil) != diags.HasErrors() {
			t.Errorf("configuration %t, %v", cfg != nil, diags)
		}
		if cfg != nil && cfg.Catalog == nil {
			t.Error("a configuration without a catalog")
		}
		var out bytes.Buffer
		if err := WriteDiagnostics(&out, diags, true, 40); err != nil {
			t.Error(err)
		}
		for _, d := range diags {
			if d.Summary == "" || d.Detail == "" {
				t.Errorf("empty words: %+v", d)
			}
		}
	})
}

// Format ends on any source; what it returns is stable and still parses.
func FuzzFormat(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte, _ bool) {
		once, diags := Format(src, "x.hcl")
		if (once == nil) != diags.HasErrors() && len(src) > 0 {
			t.Fatalf("%q: %v", once, diags)
		}
		if diags.HasErrors() {
			return
		}
		twice, diags := Format(once, "x.hcl")
		if diags.HasErrors() || !bytes.Equal(once, twice) {
			t.Errorf("not stable:\n%q\n%q\n%v", once, twice, diags)
		}
	})
}

// The masked source has the size and the lines of the real one, so that places stay
// true.
func FuzzMask(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte, _ bool) {
		shown := mask(src)
		if len(shown) != len(src) || bytes.Count(shown, []byte("\n")) != bytes.Count(src, []byte("\n")) {
			t.Errorf("%q became %q", src, shown)
		}
	})
}
