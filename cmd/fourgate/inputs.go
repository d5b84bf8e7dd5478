package main

import (
	"crypto/sha256"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/plugins"
	"github.com/fourgate-dev/fourgate/policies"
)

// inputs are the files that a configuration is made of.
type inputs struct {
	dir   string   // whose *.hcl and *.hcl.json are the configuration; empty if that is one file
	files []string // the other files, and the directories of policies; sorted, each once
}

// contents are hashes of the files that count, by name. What can't be read isn't there.
type contents map[string][sha256.Size]byte

// reading is what a configuration was made of, and how that was when it was read.
type reading struct {
	inputs   inputs
	contents contents
}

// inputsOf are the files of the configuration at path. It is nil if it has an error; named
// are those of its files then that are known all the same.
func inputsOf(path string, config *hcl.Config, named hcl.Named) inputs {
	in := inputs{files: []string{path}}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		in = inputs{dir: filepath.Clean(path)}
	}
	if config != nil {
		named = hcl.Named{Policies: []hcl.NamedPolicy{{Policy: config.Policy}}, Classifiers: config.Classifiers}
		for _, g := range config.Spec.Groups {
			named.Policies = append(named.Policies, hcl.NamedPolicy{Policy: config.PolicyOf(g.Name)})
		}
	}
	for _, p := range named.Policies {
		in.files = append(in.files, p.Policy.Paths...)
		if p.Policy.Shadow != nil {
			in.files = append(in.files, p.Policy.Shadow.Paths...)
		}
	}
	for _, m := range named.Classifiers {
		in.addModule(m.Module)
		if m.Shadow != nil {
			in.addModule(m.Shadow.Module)
		}
	}
	return in.tidy()
}

// addModule adds a module that is a file, which may change, and neither part of the program
// nor an artifact.
func (in *inputs) addModule(name string) {
	if !strings.HasPrefix(name, plugins.BuiltinPrefix) && !strings.Contains(name, "://") {
		in.files = append(in.files, name)
	}
}

func (in inputs) tidy() inputs {
	slices.Sort(in.files)
	in.files = slices.Compact(in.files)
	return in
}

func (in inputs) equal(other inputs) bool {
	return in.dir == other.dir && slices.Equal(in.files, other.files)
}

// with are these inputs and others of the same configuration.
func (in inputs) with(other inputs) inputs {
	in.files = slices.Concat(in.files, other.files)
	return in.tidy()
}

// with is what was read, with what a later reading has found.
func (r reading) with(later reading) reading {
	both := reading{inputs: later.inputs.with(r.inputs), contents: maps.Clone(r.contents)}
	maps.Copy(both.contents, later.contents)
	return both
}

// now reads the contents as they are.
func (in inputs) now() contents {
	c := contents{}
	for _, name := range in.parts() {
		c.add(name)
	}
	for _, root := range in.files {
		_ = policies.Walk(root, func(name string, isDir bool) error { // its error is reported by whoever loads it
			if !isDir {
				c.add(name)
			}
			return nil
		})
	}
	return c
}

// add reads a regular file. Anything else may have no end.
func (c contents) add(name string) {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return
	}
	if text, err := os.ReadFile(name); err == nil {
		c[name] = sha256.Sum256(text)
	}
}

// parts are the files of a configuration that is a directory.
func (in inputs) parts() []string {
	if in.dir == "" {
		return nil
	}
	entries, _ := os.ReadDir(in.dir)
	var names []string
	for _, e := range entries {
		if hcl.IsPart(e.Name()) {
			names = append(names, filepath.Join(in.dir, e.Name()))
		}
	}
	return names
}

// places are where a change to inputs can happen. All of them are absolute: a directory that
// is "." has no name that a path below it begins with.
type places struct {
	dirs  []string // sorted, each once
	names []string // of files, and of directories of policies; links and what they lead to
	parts string   // the directory of the configuration's files, if it is one
}

// places are those of this moment: links may lead elsewhere in the next.
func (in inputs) places() places {
	var p places
	if in.dir != "" {
		p.parts = resolved(in.dir)
		p.dirs = append(p.dirs, p.parts)
		p.addFile(in.dir)
	}
	for _, name := range slices.Concat(in.parts(), in.files) {
		p.addFile(name)
		_ = policies.Walk(name, func(name string, isDir bool) error {
			if isDir {
				p.dirs = append(p.dirs, resolved(name))
			} else if target := resolved(name); target != absolute(name) {
				p.addFile(target)
			}
			return nil
		})
	}
	slices.Sort(p.dirs)
	p.dirs = slices.Compact(p.dirs)
	return p
}

// addFile adds a file by its own name and by what a link of this name leads to.
func (p *places) addFile(name string) {
	for _, name := range []string{absolute(name), resolved(name)} {
		p.dirs = append(p.dirs, resolved(filepath.Dir(name)))
		p.names = append(p.names, filepath.Join(resolved(filepath.Dir(name)), filepath.Base(name)))
	}
}

// resolved is where a path leads to, or the path if that can't be said. It is absolute.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return absolute(target)
	}
	return absolute(path)
}

// absolute is a path from the root on, or as it is if the working directory is gone.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return filepath.Clean(path)
}

// concerned says whether a change at path, which is in one of the directories, can change
// the contents. The ledger is often beside the configuration, and is written all the time.
func (p places) concerned(path string) bool {
	path = absolute(path)
	base := filepath.Base(path)
	if slices.Contains(p.names, path) || p.parts != "" && filepath.Dir(path) == p.parts && hcl.IsPart(base) {
		return true
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return true // a step between a name and its file, as Kubernetes has one in each mount
	}
	const separator = string(filepath.Separator)
	below := slices.ContainsFunc(p.names, func(n string) bool {
		return strings.HasPrefix(path, strings.TrimSuffix(n, separator)+separator) // the root ends in one
	})
	return below && (policies.IsPolicy(base) || err != nil || info.IsDir())
}
