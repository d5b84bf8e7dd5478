package hcl

import (
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// builtinModules are the classifiers that are part of the program.
var builtinModules = []string{"generic", "openai", "anthropic", "gemini"}

const builtinPrefix = "builtin:"

var profileWords = words{now: []string{"wasi"}}

func (d *decoder) classifier(label string, s *section) {
	module := s.str("module", "")
	profile := s.word("profile", "", profileWords)
	maxMemory := int64(maxClassifierMemory)
	if profile != "" {
		maxMemory = maxProfileMemory
	}
	c := Classifier{
		Name:        label,
		Module:      module,
		SHA256:      s.digest("sha256"),
		Profile:     profile,
		Timeout:     s.duration("timeout", classifierTimeout(module, profile), minClassifierTimeout, maxClassifierTimeout),
		MemoryBytes: s.size("memory", defaultClassifierMemory, minClassifierMemory, maxMemory),
	}
	if strings.HasPrefix(label, builtinPrefix) {
		s.fail(s.path, s.place, "Reserved classifier name",
			"Names that begin with %q belong to modules of the program. Choose another name.", builtinPrefix)
	}
	at := s.placeOfAttr("module")
	name, builtin := strings.CutPrefix(c.Module, builtinPrefix)
	switch {
	case c.Module == "":
		s.missing("module", `write "builtin:generic", or the path of a .wasm file.`)
	case builtin:
		if !slices.Contains(builtinModules, name) {
			s.failAt("module", at, "Unknown builtin module", "There are %s.%s",
				strings.Join(builtinNames(), ", "), didYouMean(c.Module, builtinNames()))
		}
		if s.has("sha256") {
			s.warn(s.placeOfAttr("sha256"), "Pin of a builtin module",
				"A builtin module is part of the program and needs no sha256. Remove it.")
		}
	case strings.HasPrefix(c.Module, "oci://"):
		s.failAt("module", at, "Not supported by this version",
			"Modules from a registry are part of the language, but this version of Fourgate can't fetch them yet. "+
				"Write the path of a .wasm file.")
	default:
		if !s.has("sha256") {
			s.failAt("module", at, "Module without a pin",
				"A module decides what is retried, so it must be the one that was tested. "+
					"Add its digest, which sha256sum prints: sha256 = \"…\".")
		}
		c.Module = d.resolve(c.Module)
	}
	d.cfg.Classifiers = append(d.cfg.Classifiers, c)
}

// classifierTimeout is the default for a module.
func classifierTimeout(module, profile string) time.Duration {
	switch {
	case strings.HasPrefix(module, builtinPrefix):
		return defaultBuiltinTimeout
	case profile != "":
		return defaultProfileTimeout
	}
	return defaultClassifierTimeout
}

// builtinNames are the builtin modules as a configuration names them.
func builtinNames() []string {
	names := make([]string, len(builtinModules))
	for i, m := range builtinModules {
		names[i] = builtinPrefix + m
	}
	return names
}

// digest reads a SHA-256 in hex.
func (s *section) digest(name string) string {
	text := strings.ToLower(s.str(name, ""))
	if text == "" && !s.has(name) || s.isFaulty(join(s.path, name)) {
		return ""
	}
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != 32 {
		s.failAt(name, s.placeOfAttr(name), "Not a SHA-256",
			"%q is 64 hexadecimal digits, as sha256sum prints them.", name)
		return ""
	}
	return text
}

// checkClassifiers adds the classifier of providers that name none, and warns of those
// that nobody uses.
func (d *decoder) checkClassifiers() {
	for _, p := range d.cfg.Spec.Providers {
		if p.Classifier == defaultClassifier {
			d.cfg.Classifiers = append(d.cfg.Classifiers, Classifier{
				Name: defaultClassifier, Module: defaultClassifier,
				Timeout: classifierTimeout(defaultClassifier, ""), MemoryBytes: defaultClassifierMemory,
			})
			break
		}
	}
	if d.diags.HasErrors() {
		return // a mistyped reference would make its classifier look unused
	}
	for _, c := range d.cfg.Classifiers {
		if at, written := d.ranges[pathKey([]string{"classifier", c.Name})]; written && !d.isReferred("classifier", c.Name) {
			d.warn(at, "Unused classifier",
				"No provider names it. Add classifier = %s to a provider, or remove the block.", spell("classifier", c.Name))
		}
	}
}
