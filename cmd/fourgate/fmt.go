package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/hcl"
)

func fmtCommand(e *env) *cobra.Command {
	var write, check bool
	cmd := &cobra.Command{
		Use:   "fmt [-w] [-check] FILE...",
		Short: "Format configuration files",
		Long:  "Format configuration files and print the result. A directory stands for the *.hcl files\nin it, the name - for standard input.",
		Args:  args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, names []string) error {
			files, err := formattable(names)
			if err != nil {
				return err
			}
			var diags hcl.Diagnostics
			unformatted := false
			for _, name := range files {
				src, err := readFileOrStdin(e, name)
				if err != nil {
					return err
				}
				out, problems := hcl.Format(src, name)
				diags = append(diags, problems...)
				if problems.HasErrors() {
					continue
				}
				changed := !bytes.Equal(src, out)
				switch {
				case check && changed:
					unformatted = true
					fmt.Fprintln(e.stdout, name)
				case check:
				case write && name != "-":
					if !changed {
						continue
					}
					if err := replaceFile(name, out); err != nil {
						return err
					}
					fmt.Fprintln(e.stdout, name)
				default:
					if _, err := e.stdout.Write(out); err != nil {
						return err
					}
				}
			}
			if err := report(e.stderr, diags, false); err != nil {
				return err
			}
			if diags.HasErrors() {
				return reportedError{}
			}
			if unformatted {
				return fmt.Errorf("the files listed are not formatted; run 'fourgate fmt -w' on them")
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the result back and list the files that changed")
	cmd.Flags().BoolVar(&check, "check", false, "only list the files that aren't formatted, and fail if there are any")
	return cmd
}

// formattable puts the files of a directory in its place: those that make up the
// configuration and have a layout, which JSON has not.
func formattable(names []string) ([]string, error) {
	var files []string
	for _, name := range names {
		entries, err := os.ReadDir(name)
		if err != nil { // not a directory, or not there: reading the file tells which
			files = append(files, name)
			continue
		}
		found := false
		for _, entry := range entries {
			if !entry.IsDir() && hcl.IsPart(entry.Name()) && strings.HasSuffix(entry.Name(), ".hcl") {
				files, found = append(files, filepath.Join(name, entry.Name())), true
			}
		}
		if !found {
			return nil, fmt.Errorf("cannot format %s: it has no *.hcl file; name a file, or another directory", name)
		}
	}
	return files, nil
}

func readFileOrStdin(e *env, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(e.stdin)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot format a file: %w; name one that can be read, or - for standard input", err)
	}
	return text, nil
}

// replaceFile puts new content in a file's place at once: whoever reads it meanwhile
// sees the old or the new one whole.
func replaceFile(name string, content []byte) error {
	// A link stays one: what it leads to is replaced.
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	next := name + ".fmt"
	if err := os.WriteFile(next, content, info.Mode().Perm()); err != nil {
		return err
	}
	return os.Rename(next, name)
}
