package main

import (
	"fmt"
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
			if list[0] == "" {
				return errNoName
			}
			dir, name := filepath.Clean(list[0]), filepath.Base(list[0])
			files, err := lang.Files(name)
			if err != nil {
				return usageError{err}
			}
			if err := writeNew(dir, files); err != nil {
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
