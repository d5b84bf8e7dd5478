package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// tree is a directory with files for a watch.
type tree struct {
	t   *testing.T
	dir string
}

func newTree(t *testing.T) tree { return tree{t, t.TempDir()} }

func (w tree) path(name string) string { return filepath.Join(w.dir, name) }

func (w tree) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w tree) write(name, text string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.path(name)), 0o700))
	w.must(os.WriteFile(w.path(name), []byte(text), 0o600))
}

// link makes a link, or moves one that is there.
func (w tree) link(to, name string) {
	w.t.Helper()
	w.must(os.Symlink(to, w.path(name)+".next"))
	w.must(os.Rename(w.path(name)+".next", w.path(name)))
}

func (w tree) inputs(names ...string) inputs {
	for i := range names {
		names[i] = w.path(names[i])
	}
	return inputs{files: names}.tidy()
}

func TestConcerned(t *testing.T) {
	t.Parallel()
	w := newTree(t)
	for _, name := range []string{
		"fourgate.hcl", "fourgate.db", "policies/mine.rego", "policies/.mine.rego.swp", "policies/notes.txt",
		"conf/a.hcl", "conf/b.hcl", "conf/fourgate.db", "shared/common.rego", "shared/other.txt",
	} {
		w.write(name, "text")
	}
	w.must(os.Mkdir(w.path("policies/gates"), 0o700))
	w.link("../shared/common.rego", "policies/common.rego")
	w.link("policies", "..data")
	in := w.inputs("fourgate.hcl", "policies", "house.wasm")
	in.dir = w.path("conf")
	p := in.places()
	for name, want := range map[string]bool{
		"fourgate.hcl": true, "house.wasm": true, "policies": true, "policies/mine.rego": true, "policies/new.rego": true, "policies/gates": true,
		"policies/gone": true, "..data": true, "conf/a.hcl": true, "conf/new.hcl": true, "conf": true, "shared/common.rego": true,
		"fourgate.db": false, "fourgate.db-wal": false, "policies/.mine.rego.swp": false, "policies/notes.txt": false,
		".fourgate.hcl.swp": false, "conf/fourgate.db": false, "shared/other.txt": false, "policies-next/mine.rego": false,
	} {
		if got := p.concerned(w.path(name)); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for _, dir := range []string{"", "policies", "policies/gates", "conf", "shared"} {
		if !slices.Contains(p.dirs, resolved(w.path(dir))) {
			t.Errorf("%q isn't watched: %v", dir, p.dirs)
		}
	}
}

// A directory of policies can be named in every way that leads to it, such as "." where the
// proxy was started beside its files. It isn't parallel, since it goes to another directory.
func TestConcernedByRelativeNames(t *testing.T) {
	w := newTree(t)
	w.write("p.rego", "text")
	w.write("fourgate.db", "text")
	w.write("sub/q.rego", "text")
	t.Chdir(w.path("sub"))
	for _, c := range []struct{ root, event string }{
		{".", "q.rego"}, {".", "./q.rego"}, {"./", "q.rego"}, {".", "new.rego"}, {"./q.rego", "q.rego"}, {".", w.path("sub/q.rego")},
		{"..", "../p.rego"}, {"..", "q.rego"}, {"../sub", "q.rego"}, {w.path("sub"), "q.rego"},
	} {
		p := inputs{files: []string{c.root}}.places()
		if !p.concerned(c.event) {
			t.Errorf("%q isn't concerned by %q", c.root, c.event)
		}
		if p.concerned("../fourgate.db") {
			t.Errorf("%q is concerned by the ledger", c.root)
		}
	}
}

// A policy beside the configuration is read again, although it was named by ".".
func TestWatchSeesTheWorkingDirectory(t *testing.T) {
	w := newTree(t)
	w.write("p.rego", "1")
	t.Chdir(w.dir)
	in := inputs{files: []string{"."}}
	changes, stop := watchFiles(reading{in, in.now()}, slog.New(slog.DiscardHandler))
	defer stop()
	w.write("p.rego", "2")
	select {
	case <-changes:
	case <-time.After(waitLimit):
		t.Fatal("the change was not seen")
	}
}

// Changes of every kind are seen, one after the other by one watch.
func TestWatchSeesChanges(t *testing.T) {
	t.Parallel()
	w := newTree(t)
	w.write("conf/a.hcl", "1")
	w.write("policies/mine.rego", "1")
	w.write("releases/1/p.rego", "1")
	w.write("releases/2/p.rego", "2")
	w.write("elsewhere/house.hcl", "1")
	w.link("releases/1", "current")
	w.link("../elsewhere/house.hcl", "conf/house.hcl")
	in := w.inputs("policies", "current")
	in.dir = w.path("conf")
	changes, stop := watchFiles(reading{in, in.now()}, slog.New(slog.DiscardHandler))
	defer stop()
	for _, step := range []struct {
		name   string
		change func()
	}{
		{"a file is written", func() { w.write("conf/a.hcl", "2") }},
		{"a file is replaced", func() { w.write("next", "3"); w.must(os.Rename(w.path("next"), w.path("conf/a.hcl"))) }},
		{"a part of the configuration is new", func() { w.write("conf/b.hcl", "1") }},
		{"what a link leads to is written", func() { w.write("elsewhere/house.hcl", "2") }},
		{"a directory is new", func() { w.write("policies/gates/new.rego", "1") }},
		{"a file of the new directory is written", func() { w.write("policies/gates/new.rego", "2") }},
		{"a link to a directory is moved", func() { w.link("releases/2", "current") }},
		{"a file behind the moved link is written", func() { w.write("releases/2/p.rego", "3") }},
		{"a directory is deleted", func() { w.must(os.RemoveAll(w.path("policies"))) }},
		{"the directory is there again", func() { w.write("policies/mine.rego", "2") }},
		{"a file of the directory that is there again is written", func() { w.write("policies/mine.rego", "3") }},
	} {
		step.change()
		select {
		case <-changes:
		case <-time.After(waitLimit):
			t.Fatalf("%s: it was not seen", step.name)
		}
	}
}

// What has changed between the reading and the watch is seen.
func TestWatchBeginsWithTheReading(t *testing.T) {
	t.Parallel()
	w := newTree(t)
	w.write("fourgate.hcl", "1")
	in := w.inputs("fourgate.hcl")
	read := reading{in, in.now()}
	w.write("fourgate.hcl", "2")
	changes, stop := watchFiles(read, slog.New(slog.DiscardHandler))
	defer stop()
	select {
	case <-changes:
	case <-time.After(waitLimit):
		t.Fatal("the change was not seen")
	}
}

// A change is seen although other files of the directories are written without a rest, as
// the ledger is.
func TestWatchBesideTheLedger(t *testing.T) {
	t.Parallel()
	w := newTree(t)
	w.write("fourgate.hcl", "one")
	w.write("p.rego", "one")
	in := w.inputs("fourgate.hcl", ".")
	changes, stop := watchFiles(reading{in, in.now()}, slog.New(slog.DiscardHandler))
	defer stop()
	w.write("p.rego", "two")
	tick := time.NewTicker(settle / 10)
	defer tick.Stop()
	limit := time.After(waitLimit)
	for {
		select {
		case <-changes:
			return
		case <-tick.C:
			w.write("fourgate.db", time.Now().String())
		case <-limit:
			t.Fatal("the change was not seen")
		}
	}
}
