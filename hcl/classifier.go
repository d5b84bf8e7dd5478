package hcl

import (
	"encoding/hex"
	"regexp"
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
	c.Module = s.module()
	if shadow := s.inner("shadow", &classifierShadowShape); shadow.written() {
		c.Shadow = shadow.shadow()
	}
	d.cfg.Classifiers = append(d.cfg.Classifiers, c)
}

// shadow reads a candidate, which is asked about the same failures and decides nothing.
func (s *section) shadow() *Shadow {
	module := s.str("module", "")
	profile := s.word("profile", "", profileWords)
	return &Shadow{
		Module: s.module(), SHA256: s.digest("sha256"), Profile: profile,
		Timeout: classifierTimeout(module, profile),
	}
}

// The places of modules that are OCI artifacts, and the digest that both end with.
const (
	registryPrefix = "oci://"
	layoutPrefix   = "oci-layout://"
)

var artifactForm = regexp.MustCompile(`^(?:oci://[^/@\s]+/[^@:\s]+|oci-layout://[^@]+)@sha256:[0-9a-f]{64}$`)

// module reads which module to load and checks that it is pinned.
func (s *section) module() string {
	module := s.str("module", "")
	at := s.placeOfAttr("module")
	name, builtin := strings.CutPrefix(module, builtinPrefix)
	switch {
	case module == "":
		s.missing("module", `write "builtin:generic", or the path of a .wasm file.`)
	case builtin:
		if !slices.Contains(builtinModules, name) {
			s.failAt("module", at, "Unknown builtin module", "There are %s.%s",
				strings.Join(builtinNames(), ", "), didYouMean(module, builtinNames()))
		}
		if s.has("sha256") {
			s.warn(s.placeOfAttr("sha256"), "Pin of a builtin module",
				"A builtin module is part of the program and needs no sha256. Remove it.")
		}
	case strings.HasPrefix(module, registryPrefix), strings.HasPrefix(module, layoutPrefix):
		if !artifactForm.MatchString(module) {
			s.failAt("module", at, "Artifact without a digest",
				"A tag can be moved, and a module must be the one that was tested. "+
					"Write \"oci://REGISTRY/REPOSITORY@sha256:…\" or \"oci-layout://DIRECTORY@sha256:…\" with the digest of the manifest.")
			break
		}
		if rest, ok := strings.CutPrefix(module, layoutPrefix); ok {
			dir, digest, _ := strings.Cut(rest, "@")
			dir = s.resolve(dir)
			s.checkModule(dir, true)
			return layoutPrefix + dir + "@" + digest
		}
	default:
		if !s.has("sha256") {
			s.failAt("module", at, "Module without a pin",
				"A module decides what is retried, so it must be the one that was tested. "+
					"Add its digest, which sha256sum prints: sha256 = \"…\".")
		}
		module = s.resolve(module)
		s.checkModule(module, false)
	}
	return module
}

// checkModule checks that a module's file, or the directory of its layout, can be read.
func (s *section) checkModule(path string, wantDir bool) {
	isDir, err := s.env.reach(path)
	switch {
	case err != nil:
		s.failAt("module", s.placeOfAttr("module"), "Module cannot be read",
			"%s cannot be read: %v. Correct the path, or let the user that runs Fourgate read it.", bounded(path), reason(err))
	case isDir && !wantDir:
		s.failAt("module", s.placeOfAttr("module"), "Module cannot be read",
			"%s is a directory. Name the .wasm file in it, or write \"oci-layout://DIRECTORY@sha256:…\".", bounded(path))
	case wantDir && !isDir:
		s.failAt("module", s.placeOfAttr("module"), "Module cannot be read",
			"%s is a file. A layout is a directory; name it, or write the path of a .wasm file alone.", bounded(path))
	}
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
