package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	_ "time/tzdata" // for policy.timezone: an image from scratch has no time zones, and they are 450 kB

	"golang.org/x/term"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/plugins"
	"github.com/fourgate-dev/fourgate/policies"
	"github.com/fourgate-dev/fourgate/policies/bundle"
	"github.com/fourgate-dev/fourgate/proxy"
)

// loaded is a configuration with everything that it names, ready to serve.
type loaded struct {
	config *hcl.Config
	read   reading
	named  hcl.Named
	parts  proxy.Parts
	// candidates are asked beside the policies of parts: by group, that of all groups by
	// the empty name.
	candidates map[string]engine.Policy
}

// compiler makes parts of what configurations name. One lives as long as the process, so
// that a reload compiles only what has changed.
type compiler struct {
	host     *plugins.Host // nil leaves classifiers out
	policies policies.Loader
	bundles  *bundle.Metrics
	// onlyLooks is for commands that change nothing: they may run as another user than the
	// proxy, which couldn't write to a cache of theirs.
	onlyLooks bool
}

func newCompiler(host *plugins.Host) *compiler {
	return &compiler{host: host, bundles: bundle.NewMetrics()}
}

// newInspector returns a compiler for a command that only looks.
func newInspector(host *plugins.Host) *compiler {
	c := newCompiler(host)
	c.onlyLooks = true
	return c
}

// maxReadings is how often a configuration is read whose files change meanwhile.
const maxReadings = 5

// load reads a configuration, compiles its policies and its classifiers, and returns every
// problem of all of them in one run. The result is nil if one of them is an error. It is of
// one moment: a configuration whose files change while they are read is read again.
// Policies that come from a bundle are left out; see [compiler.withBundle].
func (c *compiler) load(ctx context.Context, path string, e *env) (*loaded, reading, hcl.Diagnostics) {
	world := hcl.Environment{LookupEnv: e.lookup}
	again := canReadAgain(path)
	var read reading
	if again { // only to know what to look at before all of it is read
		config, named, _ := hcl.LoadNamed(path, world)
		read.inputs = inputsOf(path, config, named)
	}
	for range maxReadings {
		read.contents = read.inputs.now()
		config, named, diags := hcl.LoadNamed(path, world)
		l, more := c.compile(ctx, named)
		inputs := inputsOf(path, config, named)
		if again && ctx.Err() == nil && !(inputs.equal(read.inputs) && maps.Equal(inputs.now(), read.contents)) {
			read.inputs = inputs
			continue
		}
		more.Illustrate(world)
		diags = append(diags, more...)
		diags.Sort()
		if diags.HasErrors() {
			return nil, read, diags
		}
		l.config, l.parts.Catalog, l.read = config, config.Catalog, read
		return l, read, diags
	}
	return nil, read, hcl.Diagnostics{{
		Summary: "Files change while they are read", File: path,
		Detail: "No two readings have found the same. Write files beside their places and rename them, or wait until they rest.",
	}}
}

// canReadAgain says whether a configuration is in files. A pipe, such as a shell's <(…), can
// be read but once.
func canReadAgain(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular() || info.IsDir()
}

// assemble compiles what a good configuration names.
func (c *compiler) assemble(ctx context.Context, config *hcl.Config) (*loaded, hcl.Diagnostics) {
	l, diags := c.compile(ctx, hcl.Named{Policies: []hcl.NamedPolicy{{Policy: config.Policy}}, Classifiers: config.Classifiers})
	l.config, l.parts.Catalog = config, config.Catalog
	return l, diags
}

// compile compiles what a configuration names, all of it whatever is wrong with some.
func (c *compiler) compile(ctx context.Context, named hcl.Named) (*loaded, hcl.Diagnostics) {
	l := &loaded{
		named: named, candidates: map[string]engine.Policy{},
		parts: proxy.Parts{Classifiers: map[string]engine.Classifier{}, GroupPolicies: map[string]engine.Policy{}},
	}
	diags := c.compilePolicies(ctx, l, nil)
	if c.host == nil {
		return l, diags
	}
	for _, m := range named.Classifiers {
		classifier, err := c.host.Load(ctx, moduleOf(m))
		if err != nil {
			diags = append(diags, named.ModuleError(m.Name, "Classifier cannot be loaded", err.Error()))
			continue
		}
		l.parts.Classifiers[m.Name] = classifier
	}
	return l, diags
}

// moduleOf is a classifier of the configuration as the plugin host loads it.
func moduleOf(c hcl.Classifier) plugins.Module {
	m := plugins.Module{
		Name: c.Name, Source: c.Module, SHA256: c.SHA256, Profile: c.Profile, Timeout: c.Timeout, MemoryBytes: c.MemoryBytes,
	}
	if s := c.Shadow; s != nil {
		m.Shadow = &plugins.Module{Source: s.Module, SHA256: s.SHA256, Profile: s.Profile, Timeout: s.Timeout}
	}
	return m
}

// fetchedDir is where modules from registries are kept, empty if this environment has no
// place for a cache.
func fetchedDir(e *env) string {
	if dir, ok := e.lookup("XDG_CACHE_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "fourgate")
	}
	if home, ok := e.lookup("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "fourgate")
	}
	return ""
}

// hostOptions are the plugin host's settings in this environment.
func hostOptions(e *env) plugins.Options {
	return plugins.Options{FetchedDir: fetchedDir(e), CacheDir: compiledDir(e)}
}

// compiledDir is where compiled modules are kept: a module in Go takes a second to compile
// and a twentieth of it to read back. A cache that can't be made is none.
func compiledDir(e *env) string {
	dir := fetchedDir(e)
	if dir == "" {
		return ""
	}
	// A home is not made: a service's often names one that isn't there.
	if _, err := os.Stat(filepath.Dir(filepath.Dir(dir))); err != nil {
		return ""
	}
	dir = filepath.Join(dir, "compiled")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	return dir
}

// report writes diagnostics to w as a person or a program wants them.
func report(w io.Writer, diags hcl.Diagnostics, asJSON bool) error {
	if asJSON {
		if diags == nil {
			diags = hcl.Diagnostics{}
		}
		return json.NewEncoder(w).Encode(struct {
			Diagnostics hcl.Diagnostics `json:"diagnostics"`
		}{diags})
	}
	if len(diags) == 0 {
		return nil
	}
	width, color := 0, false
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		color = os.Getenv("NO_COLOR") == ""
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			width = n
		}
	}
	return hcl.WriteDiagnostics(w, diags, color, width)
}

// reported writes what is wrong to stderr, and returns the error that a command ends with.
func reported(e *env, diags hcl.Diagnostics) error {
	return firstOf(report(e.stderr, diags, false), reportedError{})
}

// goodOrReported is for a command that needs a configuration to be good: what is wrong is
// written to stderr.
func goodOrReported(l *loaded, diags hcl.Diagnostics, path string, e *env) (*loaded, error) {
	if err := report(e.stderr, diags, false); err != nil {
		return nil, err
	}
	if l == nil {
		errs, _ := diags.Count()
		fmt.Fprintf(e.stderr, "fourgate: %s in %s\n", count(errs, "error"), path)
		return nil, reportedError{}
	}
	return l, nil
}

// quietLogger is for commands whose output is something else: it tells of trouble only.
func quietLogger(e *env) *slog.Logger {
	return slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
