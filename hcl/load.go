package hcl

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
)

// Load reads the configuration at path, which is one file or a directory of *.hcl and
// *.hcl.json files. It reports everything that is wrong at once; the configuration is
// nil if any of it is an error. Load keeps nothing of env.
func Load(path string, env Environment) (*Config, Diagnostics) {
	cfg, _, diags := LoadNamed(path, env)
	return cfg, diags
}

// LoadNamed is [Load] for whoever loads what the configuration names, too.
func LoadNamed(path string, env Environment) (*Config, Named, Diagnostics) {
	base, files, diags := find(path, env)
	d := newDecoder(env, base)
	d.diags = diags
	var parsed []*hcl2.File
	for _, name := range files {
		src, err := env.readFile(name)
		if err != nil {
			d.add(unreadable(name, err))
			d.incomplete = true
			continue
		}
		d.cfg.Files = append(d.cfg.Files, name)
		if file := d.parse(src, name); file != nil {
			parsed = append(parsed, file)
		}
	}
	if len(parsed) > 0 {
		d.decode(parsed)
	}
	d.illustrate(d.diags)
	d.diags.Sort()
	if d.diags.HasErrors() {
		return nil, d.named(), d.diags
	}
	return d.cfg, d.named(), d.diags
}

// named returns what can be checked of what the configuration names.
func (d *decoder) named() Named {
	n := Named{modules: map[string]Diagnostic{}, policies: map[string]Diagnostic{}}
	d.namedPolicies(&n)
	if !d.incomplete && len(d.cfg.Files) > 0 && !d.hasFault([]string{"ledger"}) {
		n.Ledger = &d.cfg.Ledger
	}
	if !d.incomplete && len(d.cfg.Files) > 0 && !d.hasFault([]string{"server"}) {
		n.Server = &d.cfg.Server
	}
	for _, c := range d.cfg.Classifiers {
		if !d.hasFault([]string{"classifier", c.Name}) {
			n.Classifiers = append(n.Classifiers, c)
			if at, written := d.placeOf([]string{"classifier", c.Name, "module"}); written {
				places := Diagnostics{diagnosticAt(Error, at, "", "")}
				d.illustrate(places)
				n.modules[c.Name] = places[0]
			}
		}
	}
	return n
}

// find returns the directory that relative paths start from, and the files to read.
func find(path string, env Environment) (base string, files []string, diags Diagnostics) {
	entries, err := env.readDir(path)
	if err != nil { // not a directory, or not there: reading the file tells which
		return filepath.Dir(path), []string{path}, nil
	}
	for _, e := range entries {
		if !e.IsDir() && IsPart(e.Name()) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	slices.Sort(files)
	if len(files) == 0 {
		diags = Diagnostics{{
			Summary: "Directory has no configuration", File: path,
			Detail: "No file in it ends in .hcl or .hcl.json. Write one, or name a file with -c.",
		}}
	}
	return path, files, diags
}

// IsPart says whether a file of this name, in a directory that is a configuration, is part
// of it.
func IsPart(name string) bool {
	return !strings.HasPrefix(name, ".") && (strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json"))
}

func unreadable(name string, err error) Diagnostic {
	return Diagnostic{
		Summary: "Cannot read the configuration", File: name,
		Detail: fmt.Sprintf("%v. Name an existing file or directory with -c.", err),
	}
}

func isJSON(filename string) bool { return strings.HasSuffix(filename, ".json") }

// parse returns nil if the file has a syntax error: what the parser makes of such a
// file would give diagnostics about things that nobody wrote.
func (d *decoder) parse(src []byte, filename string) *hcl2.File {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if diag, ok := guard(src, filename); !ok {
		d.add(diag) // without a picture: it could be of a megabyte
		d.incomplete = true
		return nil
	}
	d.source[filename] = src
	var file *hcl2.File
	var diags hcl2.Diagnostics
	if isJSON(filename) {
		file, diags = json.Parse(src, filename)
	} else {
		file, diags = hclsyntax.ParseConfig(src, filename, hcl2.InitialPos)
	}
	for _, diag := range diags {
		d.add(translate(diag))
	}
	if diags.HasErrors() || file == nil {
		d.incomplete = true
		return nil
	}
	d.nav[filename] = file.Nav
	return file
}

// illustrate gives each diagnostic the source of its file, with the secrets masked.
func (d *decoder) illustrate(diags Diagnostics) {
	for i := range diags {
		name := diags[i].File
		src, read := d.source[name]
		if !read {
			continue
		}
		if d.shown[name] == nil {
			d.shown[name] = &hcl2.File{Bytes: mask(src), Nav: d.nav[name]}
		}
		diags[i].source = d.shown[name]
	}
}
