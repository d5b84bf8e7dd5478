package starter_test

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fourgate-dev/fourgate/plugins/starter"
)

func files(t *testing.T, l starter.Language, name string) fstest.MapFS {
	t.Helper()
	list, err := l.Files(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := fstest.MapFS{}
	for _, f := range list {
		if dir[f.Name] != nil {
			t.Errorf("%s is written twice", f.Name)
		}
		dir[f.Name] = &fstest.MapFile{Data: f.Content, Mode: f.Mode}
	}
	return dir
}

func TestFilesMakeAPlugin(t *testing.T) {
	t.Parallel()
	for _, l := range starter.Languages() {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			dir := files(t, l, "acme-1")
			for _, name := range []string{l.Source, starter.Corpus, "README.md", "build.sh", ".gitignore"} {
				if dir[name] == nil {
					t.Errorf("there is no %s", name)
				}
			}
			if _, err := fs.Stat(dir, strings.TrimSuffix(l.SDK, "/")); err != nil {
				t.Errorf("Fourgate's functions are missing: %v", err)
			}
			if dir["build.sh"].Mode&0o111 == 0 {
				t.Error("build.sh can't be run")
			}
			for name, f := range dir {
				if bytes.Contains(f.Data, []byte("{{")) || bytes.Contains(f.Data, []byte("<no value>")) {
					t.Errorf("%s has an unfilled place", name)
				}
			}
			found, err := starter.Detect(dir)
			if err != nil || found.Name != l.Name {
				t.Errorf("the directory is taken for %q: %v", found.Name, err)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	f := func(want string, names ...string) {
		t.Helper()
		dir := fstest.MapFS{}
		for _, n := range names {
			dir[n] = &fstest.MapFile{}
		}
		if _, err := starter.Detect(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", names, err, want)
		}
	}
	f("it has none of classifier.go, classifier.rs, classifier.ts, classifier.c")
	f("it has classifier.go and classifier.c", "classifier.go", "classifier.c")
}

func TestLookup(t *testing.T) {
	t.Parallel()
	f := func(name, want string) {
		t.Helper()
		if _, err := starter.Lookup(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", name, err, want)
		}
	}
	f("rsut", `did you mean "rust"?`)
	f("TypeScript", `did you mean "assemblyscript"?`)
	f("cobol", "use one of go, rust, assemblyscript, c")
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"acme": true, "acme-2_x": true, "": false, "2acme": false, "Acme": false, "a/b": false, "..": false, "-x": false,
		strings.Repeat("a", 65): false, "a b": false, "vendor": false, "net": false, "main": false, "networks": true, "ä": false,
	} {
		if err := starter.CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}
