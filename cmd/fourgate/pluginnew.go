package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/plugins/starter"
)

func pluginNewCommand(e *env) *cobra.Command {
	var language string
	var names []string
	for _, l := range starter.Languages() {
		names = append(names, l.Name)
	}
	all := strings.Join(names, "|")
	cmd := &cobra.Command{
		Use: "new -lang " + all + " NAME", Short: "Begin a classifier plugin", Args: args(cobra.ExactArgs(1)),
		Long: "Write a working classifier plugin into the new directory NAME: source, build file, a corpus\nwith the verdicts that it should give, and a README.",
		RunE: func(_ *cobra.Command, list []string) error {
			if language == "" {
				return usageError{fmt.Errorf("the language is missing; write -lang %s", all)}
			}
			lang, err := starter.Lookup(language)
			if err != nil {
				return usageError{err}
			}
			dir, name := filepath.Clean(list[0]), filepath.Base(list[0])
			files, err := lang.Files(name)
			if err != nil {
				return usageError{err}
			}
			if err := writePlugin(dir, files); err != nil {
				return fmt.Errorf("cannot write plugin: %w", err)
			}
			_, err = fmt.Fprintf(e.stdout, "%s is a classifier in %s. Next:\n\n  fourgate plugin build %s\n  fourgate plugin test %s\n\nThen add failures to %s and rules to %s.\n",
				dir, lang.Title, dir, dir, filepath.Join(dir, starter.Corpus), filepath.Join(dir, lang.Source))
			return err
		},
	}
	cmd.Flags().StringVar(&language, "lang", "", "the language: "+all)
	return cmd
}

// writePlugin writes a new plugin. It touches no directory that has something in it.
func writePlugin(dir string, files []starter.File) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("the directory %q is not empty; choose another name", dir)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Content, f.Mode); err != nil {
			return err
		}
	}
	return nil
}
