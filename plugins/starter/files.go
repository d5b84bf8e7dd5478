package starter

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/fourgate-dev/fourgate/plugins/sdk"
)

//go:embed template
var templates embed.FS

// File is one file of a new plugin.
type File struct {
	Name    string // with slashes, below the plugin's directory
	Content []byte
	Mode    fs.FileMode
}

// Modes of the files that are written.
const (
	modeFile   fs.FileMode = 0o644
	modeScript fs.FileMode = 0o755
)

// maxName bounds a plugin's name.
const maxName = 64

// takenNames are those that the Go toolchain gives another meaning: a package of a program,
// a directory that it reads in its own way, and the first parts of the standard library's
// packages, which would hide the module.
var takenNames = []string{
	"all", "archive", "bufio", "builtin", "bytes", "cmd", "cmp", "compress", "container", "context", "crypto", "database",
	"debug", "embed", "encoding", "errors", "expvar", "flag", "fmt", "go", "hash", "html", "image", "index", "internal", "io",
	"iter", "log", "main", "maps", "math", "mime", "net", "os", "path", "plugin", "reflect", "regexp", "runtime", "slices",
	"sort", "std", "strconv", "strings", "structs", "sync", "syscall", "testdata", "testing", "text", "time", "tool", "unicode",
	"unique", "unsafe", "vendor", "weak",
}

// CheckName says what is wrong with a plugin's name. It becomes a directory, a package
// and a block's label, so it has letters, digits, - and _ and begins with a letter.
func CheckName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a plugin's name has 1 to %d characters", maxName)
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '-' || c == '_')) {
			return fmt.Errorf("the name %q is none for a plugin; use lower-case letters, digits, - and _, and begin with a letter", name)
		}
	}
	if slices.Contains(takenNames, name) {
		return fmt.Errorf("the name %q is taken in Go; use another one, such as %q", name, name+"-classifier")
	}
	return nil
}

// Files returns all files of a new plugin of that name.
func (l Language) Files(name string) ([]File, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	data := struct {
		Name, Module string
		Language     Language
	}{name, strings.ReplaceAll(name, "-", "_"), l}
	var files []File
	for _, dir := range []string{"template/all", "template/" + l.Name} {
		entries, err := templates.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("cannot read templates of %s: %w", l.Name, err)
		}
		for _, e := range entries {
			content, err := templates.ReadFile(path.Join(dir, e.Name()))
			if err != nil {
				return nil, fmt.Errorf("cannot read template %q: %w", e.Name(), err)
			}
			target, isTemplate := strings.CutSuffix(e.Name(), ".tmpl")
			if isTemplate {
				if content, err = render(e.Name(), content, data); err != nil {
					return nil, err
				}
			}
			files = append(files, File{target, content, modeFile})
		}
	}
	files = append(files, File{".gitignore", []byte("/" + Module + "\n/node_modules/\n"), modeFile}, File{"build.sh", l.script(), modeScript})
	more, err := l.sdkFiles()
	return append(files, more...), err
}

func render(name string, text []byte, data any) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("cannot read template %q: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("cannot fill template %q: %w", name, err)
	}
	return out.Bytes(), nil
}

// sdkFiles are Fourgate's functions for the language. A directory gets all of them, a
// file's name only the one.
func (l Language) sdkFiles() ([]File, error) {
	entries, err := sdk.Files.ReadDir(l.Name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the functions for %s: %w", l.Name, err)
	}
	var files []File
	for _, e := range entries {
		content, err := sdk.Files.ReadFile(path.Join(l.Name, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("cannot read the functions for %s: %w", l.Name, err)
		}
		name := e.Name()
		if strings.HasSuffix(l.SDK, "/") {
			name = l.SDK + name
		}
		files = append(files, File{name, content, modeFile})
	}
	return files, nil
}

// script is the build as a shell script, for whoever has no fourgate at hand.
func (l Language) script() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n# Builds %s. Needs %s.\nset -eu\ncd \"$(dirname \"$0\")\"\n", Module, l.Needs)
	for _, s := range l.Steps {
		if s.Once != "" {
			fmt.Fprintf(&b, "[ %s -nt %s ] || ", s.Once, s.After)
		}
		for _, v := range s.Env {
			b.WriteString(v + " ")
		}
		for i, a := range s.Args {
			switch tool := l.override(a); {
			case i == 0 && tool != "":
				fmt.Fprintf(&b, `"${%s:-%s}"`, tool, a)
			case strings.ContainsAny(a, " $\"'"):
				b.WriteString(" '" + a + "'")
			case i == 0:
				b.WriteString(a)
			default:
				b.WriteString(" " + a)
			}
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

func (l Language) override(tool string) string {
	for _, t := range l.Tools {
		if t.Name == tool {
			return t.Override
		}
	}
	return ""
}
