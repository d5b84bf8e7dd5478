package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/plugins"
	"github.com/fourgate-dev/fourgate/plugins/starter"
)

func pluginCommand(e *env) *cobra.Command {
	return group("plugin", "Write, build, test and inspect classifier plugins",
		pluginNewCommand(e), pluginBuildCommand(e), pluginTestCommand(e), pluginInspectCommand(e), pluginLearnCommand(e))
}

func cutBuiltin(source string) (string, bool) {
	return strings.CutPrefix(source, plugins.BuiltinPrefix)
}

// isReference says whether a module is named by where an artifact of it is kept.
func isReference(source string) bool { return strings.Contains(source, "://") }

// moduleAt returns the source of a module that a command line names: a file, a plugin's
// directory with its built module in it, a built-in one or an artifact.
func moduleAt(name string) (string, error) {
	if _, builtin := cutBuiltin(name); builtin || isReference(name) {
		return name, nil
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot read plugin: %w; name a plugin's directory, a .wasm file or %sNAME", err, plugins.BuiltinPrefix)
	case !info.IsDir():
		return name, nil
	}
	path := filepath.Join(name, starter.Module)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("cannot read plugin %q: it is not built; run 'fourgate plugin build %s'", name, name)
	}
	return path, nil
}

// staleModule says that a source is newer than the module that is about to be used.
func staleModule(dir string) bool {
	lang, err := starter.Detect(os.DirFS(dir))
	if err != nil {
		return false
	}
	source, err := os.Stat(filepath.Join(dir, lang.Source))
	if err != nil {
		return false
	}
	module, err := os.Stat(filepath.Join(dir, starter.Module))
	return err == nil && source.ModTime().After(module.ModTime())
}
