package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fourgate-dev/fourgate/plugins"
	"github.com/fourgate-dev/fourgate/plugins/starter"
)

func pluginBuildCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "build DIR", Short: "Build a classifier plugin and check the module", Args: args(cobra.ExactArgs(1)),
		Long: "Build " + starter.Module + " in a plugin's directory with the toolchain of its language, then check\nthat it fits the ABI and its limits. CC and RUSTC name other compilers than clang and rustc.",
		RunE: func(cmd *cobra.Command, list []string) error {
			dir := list[0]
			if err := buildPlugin(cmd.Context(), e, dir); err != nil {
				return fmt.Errorf("cannot build plugin %q: %w", dir, err)
			}
			found, err := inspectModule(cmd.Context(), e, filepath.Join(dir, starter.Module))
			if err != nil {
				return err
			}
			if len(found.Problems) > 0 {
				return fmt.Errorf("the module is built, but it would be refused:\n  %s", strings.Join(found.Problems, "\n  "))
			}
			_, err = fmt.Fprintf(e.stdout, "%s: %d bytes, sha256 %s\n", filepath.Join(dir, starter.Module), found.Limits[0].Used, found.SHA256)
			return err
		},
	}
}

// buildPlugin runs the toolchain of the language in which a plugin is written.
func buildPlugin(ctx context.Context, e *env, dir string) error {
	if info, err := os.Stat(dir); err != nil {
		return err
	} else if !info.IsDir() {
		return errors.New("it is no directory")
	}
	lang, err := starter.Detect(os.DirFS(dir))
	if err != nil {
		return err
	}
	tools, err := findTools(ctx, e, lang)
	if err != nil {
		return err
	}
	for _, step := range lang.Steps {
		if step.Once != "" && isNewer(filepath.Join(dir, step.Once), filepath.Join(dir, step.After)) {
			continue
		}
		if f, ok := e.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			fmt.Fprintf(f, "%s …\n", strings.Join(step.Args[:min(len(step.Args), 2)], " "))
		}
		var out, warnings bytes.Buffer
		cmd := exec.CommandContext(ctx, tools[step.Args[0]], step.Args[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), step.Env...), &out, &warnings
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w\n%s", step.Args[0], err, strings.TrimSpace(out.String()+warnings.String()))
		}
		// Warnings are worth reading, also when all went well.
		if _, err := io.Copy(e.stderr, &warnings); err != nil {
			return err
		}
	}
	return nil
}

// findTools returns the program to run for each of a language's tools.
func findTools(ctx context.Context, e *env, lang starter.Language) (map[string]string, error) {
	tools := map[string]string{}
	var missing []error
	for _, t := range lang.Tools {
		name := t.Name
		if t.Override != "" {
			if other, ok := e.lookup(t.Override); ok && other != "" {
				name = other
			}
		}
		path, err := exec.LookPath(name)
		if err == nil && t.Name == "rustc" {
			err = rustTarget(ctx, path)
		}
		if err != nil {
			missing = append(missing, fmt.Errorf("%s is needed for %s: %w; %s", t.Name, lang.Title, err, t.Install))
			continue
		}
		tools[t.Name] = path
	}
	return tools, errors.Join(missing...)
}

// rustTarget says whether a Rust compiler has the library for WebAssembly, which is
// installed apart from it.
func rustTarget(ctx context.Context, rustc string) error {
	out, err := exec.CommandContext(ctx, rustc, "--print", "target-libdir", "--target", "wasm32-unknown-unknown").Output()
	if err != nil {
		return err
	}
	if libs, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "libcore-*")); err != nil || len(libs) == 0 {
		return fmt.Errorf("%s lacks the target wasm32-unknown-unknown", rustc)
	}
	return nil
}

func isNewer(path, than string) bool {
	a, err := os.Stat(path)
	if err != nil {
		return false
	}
	b, err := os.Stat(than)
	return err == nil && !a.ModTime().Before(b.ModTime())
}

// inspectModule looks at one module with a host of its own.
func inspectModule(ctx context.Context, e *env, source string) (*plugins.Inspection, error) {
	host, err := plugins.Open(ctx, hostOptions(e))
	if err != nil {
		return nil, err
	}
	found, err := host.Inspect(ctx, plugins.Module{Name: source, Source: source})
	return found, firstOf(err, host.Close(context.WithoutCancel(ctx)))
}
