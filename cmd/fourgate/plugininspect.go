package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/plugins"
	"github.com/fourgate-dev/fourgate/plugins/starter"
)

func pluginInspectCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "inspect [-json] FILE.wasm|DIR|builtin:NAME", Short: "Show a module's imports, exports, limits and digest", Args: args(cobra.ExactArgs(1)),
		Long: "Show what a module imports and exports, how much of each limit it uses, its digest, and what is\nwrong with it if it would be refused: then the exit code is 1.",
		RunE: func(cmd *cobra.Command, list []string) error {
			source, err := moduleAt(list[0])
			if err != nil {
				return err
			}
			found, err := inspectModule(cmd.Context(), e, source)
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(e.stdout).Encode(inspectionJSON(source, found))
			} else {
				err = drawInspection(e.stdout, source, found)
			}
			if err == nil && len(found.Problems) > 0 {
				if !asJSON {
					fmt.Fprintf(e.stderr, "fourgate: %s would be refused:\n  %s\n", source, strings.Join(found.Problems, "\n  "))
				}
				err = reportedError{}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// externForm, useForm and inspectionForm are the JSON of plugin inspect.
type externForm struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Type string `json:"type,omitempty"`
}

type useForm struct {
	Name  string `json:"name"`
	Used  uint64 `json:"used"`
	Limit uint64 `json:"limit"`
}

type inspectionForm struct {
	Module   string       `json:"module"`
	SHA256   string       `json:"sha256"`
	Profile  string       `json:"profile"`
	Imports  []externForm `json:"imports"`
	Exports  []externForm `json:"exports"`
	Limits   []useForm    `json:"limits"`
	Problems []string     `json:"problems"`
}

func inspectionJSON(source string, found *plugins.Inspection) inspectionForm {
	f := inspectionForm{
		Module: source, SHA256: found.SHA256, Profile: found.Profile, Imports: []externForm{}, Exports: []externForm{}, Limits: []useForm{},
		Problems: append([]string{}, found.Problems...),
	}
	for _, x := range found.Imports {
		f.Imports = append(f.Imports, externForm(x))
	}
	for _, x := range found.Exports {
		f.Exports = append(f.Exports, externForm(x))
	}
	for _, u := range found.Limits {
		f.Limits = append(f.Limits, useForm{u.Name, u.Used, u.Limit})
	}
	return f
}

func drawInspection(w io.Writer, source string, found *plugins.Inspection) error {
	externs := newTable("", "NAME", "KIND", "TYPE")
	for _, part := range []struct {
		title string
		list  []plugins.Extern
	}{{"import", found.Imports}, {"export", found.Exports}} {
		for _, x := range part.list {
			externs.AppendRow(table.Row{part.title, x.Name, x.Kind, x.Type})
		}
	}
	limits := newTable("LIMIT", "USED", "OF", "")
	for _, u := range found.Limits {
		limits.AppendRow(table.Row{u.Name, u.Used, u.Limit, u.Unit})
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s\n\n%s\n", externs.Render(), limits.Render(), classifierBlock(source, found))
	return err
}

// classifierBlock is what a configuration needs to use a module.
func classifierBlock(source string, found *plugins.Inspection) string {
	if name, ok := cutBuiltin(source); ok {
		return fmt.Sprintf("classifier %q {\n  module = %q\n}\n# sha256 %s", name, source, found.SHA256)
	}
	if isReference(source) {
		return fmt.Sprintf("classifier \"name\" {\n  module = %q\n}\n# sha256 of the module: %s", source, found.SHA256)
	}
	name := strings.TrimSuffix(filepath.Base(source), ".wasm")
	if filepath.Base(source) == starter.Module {
		if full, err := filepath.Abs(source); err == nil {
			name = filepath.Base(filepath.Dir(full))
		}
	}
	if found.Profile != "" {
		return fmt.Sprintf("classifier %q {\n  module  = %q\n  sha256  = %q\n  profile = %q\n}", name, filepath.ToSlash(source), found.SHA256, found.Profile)
	}
	return fmt.Sprintf("classifier %q {\n  module = %q\n  sha256 = %q\n}", name, filepath.ToSlash(source), found.SHA256)
}
