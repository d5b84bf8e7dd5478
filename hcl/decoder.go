package hcl

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
)

// decoder reads the blocks of one configuration. It goes on after an error: a value
// that can't be used is replaced by its default, and the place is remembered as
// faulty so that later checks don't report it again.
type decoder struct {
	env  Environment
	base string // the directory that relative paths start from
	eval *hcl2.EvalContext
	cfg  *Config

	source map[string][]byte     // by file name, of the files that may be shown
	shown  map[string]*hcl2.File // the same masked, once one is needed
	nav    map[string]any        // the HCL library's way to name the block of a place, by file name

	diags  Diagnostics
	ranges map[string]hcl2.Range // the place of each block and attribute, by pathKey
	faulty map[string]bool       // the paths that already have an error, by pathKey
	refs   []reference
	outer  *policyBlock // the policy of all groups
	// incomplete says that a file is missing from the picture, so that what seems to
	// be missing may be there.
	incomplete bool
}

func newDecoder(env Environment, base string) *decoder {
	return &decoder{
		env: env, base: base, eval: evalContext(env), cfg: &Config{},
		source: map[string][]byte{}, shown: map[string]*hcl2.File{}, nav: map[string]any{},
		ranges: map[string]hcl2.Range{}, faulty: map[string]bool{},
	}
}

// pathKey makes a map key of a path; no name can have a NUL in it.
func pathKey(path []string) string { return strings.Join(path, "\x00") }

// join returns a longer path without touching the shorter one's array.
func join(path []string, more ...string) []string {
	return slices.Concat(path, more)
}

func (d *decoder) add(diag Diagnostic) { d.diags = append(d.diags, diag) }

// fail reports an error at a path.
func (d *decoder) fail(path []string, place hcl2.Range, summary, detail string, args ...any) {
	d.faulty[pathKey(path)] = true
	d.add(diagnosticAt(Error, place, summary, fmt.Sprintf(detail, args...)))
}

// warn reports what works but is hardly meant.
func (d *decoder) warn(place hcl2.Range, summary, detail string, args ...any) {
	d.add(diagnosticAt(Warning, place, summary, fmt.Sprintf(detail, args...)))
}

// isFaulty says whether the path, or a block around it, already has an error.
func (d *decoder) isFaulty(path []string) bool {
	for n := len(path); n > 0; n-- {
		if d.faulty[pathKey(path[:n])] {
			return true
		}
	}
	return false
}

// hasFault says whether the path, or anything below it, has an error.
func (d *decoder) hasFault(path []string) bool {
	key := pathKey(path)
	for faulty := range d.faulty {
		if faulty == key || strings.HasPrefix(faulty, key+"\x00") {
			return true
		}
	}
	return false
}

// placeOf returns the place of a path, or of the nearest thing around it.
func (d *decoder) placeOf(path []string) (hcl2.Range, bool) {
	for n := len(path); n > 0; n-- {
		if place, ok := d.ranges[pathKey(path[:n])]; ok {
			return place, true
		}
	}
	return hcl2.Range{}, false
}

// resolve makes a path relative to the configuration's directory usable from here.
func (d *decoder) resolve(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.base, path)
}

// place says where something is, in words for another place's diagnostic.
func place(r hcl2.Range) string { return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line) }
