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

	"github.com/fourgate-dev/fourgate/policies"
)

// The templates don't end in .rego, so that no tool takes them for policies.
//
//go:embed template/*.tmpl
var templates embed.FS

// File is one file of a new policy.
type File struct {
	Name    string // below the policy's directory
	Content []byte
	Mode    fs.FileMode
}

const modeFile fs.FileMode = 0o644

// maxName bounds a policy's name.
const maxName = 64

// CheckName says what is wrong with a policy's name. It becomes a directory that is named
// in a configuration, so it has letters, digits, - and _ and begins with a letter.
func CheckName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a policy's name has 1 to %d characters", maxName)
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '-' || c == '_')) {
			return fmt.Errorf("the name %q is none for a policy; use lower-case letters, digits, - and _, and begin with a letter", name)
		}
	}
	return nil
}

// base is the embedded policy that a new one leaves most cases to.
type base struct {
	Package string // to import
	Name    string // that the import has
	Mock    string // the package as a test says it that imports data.fourgate
	Profile string // empty for the default policy
}

func baseOf(profile string) (base, error) {
	known := policies.Profiles()
	switch {
	case profile == "":
		return base{Package: "data.fourgate.standard", Name: "standard", Mock: "fourgate.standard"}, nil
	case !slices.Contains(known, profile):
		return base{}, fmt.Errorf("there is no profile %q; use one of %s", profile, strings.Join(known, ", "))
	}
	return base{Package: "data.fourgate.profiles." + profile, Name: profile, Mock: "fourgate.profiles." + profile, Profile: profile}, nil
}

// Files returns all files of a new policy of that name. The README's commands name its
// directory as dir. A profile stands for the default policy where it isn't empty.
func Files(name, dir, profile string) ([]File, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	from, err := baseOf(profile)
	if err != nil {
		return nil, err
	}
	data := struct {
		Name, Dir string
		Base      base
		Beside    string // the flag for the commands that load the policy beside its base
	}{Name: name, Dir: dir, Base: from}
	if profile != "" {
		data.Beside = "-profile " + profile + " "
	}
	entries, err := templates.ReadDir("template")
	if err != nil {
		return nil, fmt.Errorf("cannot read templates: %w", err)
	}
	var files []File
	for _, e := range entries {
		text, err := templates.ReadFile(path.Join("template", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("cannot read template %q: %w", e.Name(), err)
		}
		content, err := fill(e.Name(), text, data)
		if err != nil {
			return nil, err
		}
		files = append(files, File{strings.TrimSuffix(e.Name(), ".tmpl"), content, modeFile})
	}
	for name, content := range policies.Schemas() {
		files = append(files, File{name, content, modeFile})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

func fill(name string, text []byte, data any) ([]byte, error) {
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
