package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/plugins"
	"github.com/fourgate-dev/fourgate/proxy"
)

// loaded is a configuration with everything that it names, ready to serve.
type loaded struct {
	config *hcl.Config
	parts  proxy.Parts
}

// load reads a configuration, compiles its policy and its classifiers, and returns every
// problem of all of them in one run. The result is nil if one of them is an error.
func load(ctx context.Context, path string, e *env, host *plugins.Host) (*loaded, hcl.Diagnostics) {
	world := hcl.Environment{LookupEnv: e.lookup}
	config, named, diags := hcl.LoadNamed(path, world)
	parts, more := compile(ctx, named, host)
	more.Illustrate(world)
	diags = append(diags, more...)
	diags.Sort()
	if diags.HasErrors() {
		return nil, diags
	}
	parts.Catalog = config.Catalog
	return &loaded{config, parts}, diags
}

// assemble compiles what a good configuration names.
func assemble(ctx context.Context, config *hcl.Config, host *plugins.Host) (proxy.Parts, hcl.Diagnostics) {
	parts, diags := compile(ctx, hcl.Named{Policies: []hcl.NamedPolicy{{Policy: config.Policy}}, Classifiers: config.Classifiers}, host)
	parts.Catalog = config.Catalog
	return parts, diags
}

// compile compiles what a configuration names, all of it whatever is wrong with some.
func compile(ctx context.Context, named hcl.Named, host *plugins.Host) (proxy.Parts, hcl.Diagnostics) {
	parts := proxy.Parts{Classifiers: map[string]engine.Classifier{}, GroupPolicies: map[string]engine.Policy{}}
	diags := compilePolicies(ctx, named, &parts)
	for _, c := range named.Classifiers {
		classifier, err := host.Load(ctx, moduleOf(c))
		if err != nil {
			diags = append(diags, named.ModuleError(c.Name, "Classifier cannot be loaded", err.Error()))
			continue
		}
		parts.Classifiers[c.Name] = classifier
	}
	return parts, diags
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

// loadOrReport loads a configuration for a command that needs it to be good: what is
// wrong is written to stderr.
func loadOrReport(ctx context.Context, path string, e *env, host *plugins.Host) (*loaded, error) {
	l, diags := load(ctx, path, e, host)
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

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
