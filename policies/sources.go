package policies

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

//go:embed *.rego gates/*.rego profiles/*/*.rego *.jsonschema
var embedded embed.FS

const (
	// maxFile bounds one policy file in bytes, so that a wrong path can't fill memory.
	maxFile = 1 << 20
	// maxFiles and maxText bound all files of one policy: some hundred times the default
	// policy.
	maxFiles = 1000
	maxText  = 8 << 20
	// builtinPrefix marks the places of the embedded policies, which no file on disk has.
	builtinPrefix = "builtin:"
)

// sources are the texts of one policy by their names. Gathering them goes on after a
// problem to find the others, too.
type sources struct {
	texts    map[string]string
	size     int
	problems problems
}

func gather(ctx context.Context, opts Options) *sources {
	s := &sources{texts: map[string]string{}}
	for _, p := range opts.Paths {
		if ctx.Err() != nil {
			return s
		}
		s.addPath(p)
	}
	for name, text := range opts.Modules {
		s.add(name, text)
	}
	if known := Profiles(); opts.Profile != "" && !slices.Contains(known, opts.Profile) {
		p := Problem{Argument: "profile", Message: "cannot find policy profile " + strings.TrimSpace(opts.Profile), Hint: "write one of " + strings.Join(known, ", ")}
		if meant := nearest(opts.Profile, known); meant != "" {
			p.Hint = "did you mean " + meant + "? There are " + strings.Join(known, ", ")
		}
		s.problems = append(s.problems, p)
	}
	return s
}

// add takes one file's text, if it keeps to the limits.
func (s *sources) add(name, text string) {
	switch {
	case strings.HasPrefix(name, builtinPrefix):
		s.problems.add(name, "cannot use a policy file whose name begins with %s, which is Fourgate's own; rename it", builtinPrefix)
		return
	case len(text) > maxFile:
		s.problems.add(name, "cannot use a policy file of %d bytes; split it, the limit is %d", len(text), maxFile)
		return
	case len(s.texts) == maxFiles:
		s.problems.add(name, "cannot use more than %d policy files; point policy.paths at the policy alone", maxFiles)
	case s.size <= maxText && s.size+len(text) > maxText:
		s.problems.add(name, "cannot use more than %d bytes of policy files; move lists into params or a bundle's data", maxText)
	}
	s.size += len(text)
	s.texts[name] = text
}

// full says that no more files are wanted, because there is a problem with their number
// already.
func (s *sources) full() bool { return len(s.texts) > maxFiles || s.size > maxText }

// addPath adds a file, or all policy files below a directory.
func (s *sources) addPath(root string) {
	found := 0
	err := Walk(root, func(name string, isDir bool) error {
		switch {
		case s.full():
			return filepath.SkipAll
		case !isDir:
			found++
			s.addFile(name)
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.problems.add(root, "cannot find this path; name a directory or a .rego file that exists, or none to use the default policy")
	case err != nil:
		s.problems.add(root, "cannot read this policy path: %v", err)
	case found == 0:
		s.problems.add(root, "cannot find any .rego file here; a policy needs one with the package of its query")
	}
}

// Walk calls visit for what [Options.Paths] means by a path, in lexical order: the path
// itself if it is a file, or else the directory, those below it, and their policy files.
// Tests and hidden names are left out. A link is followed if it is the path itself or a
// policy file. Walk ends with the first error, which is visit's or the file system's;
// visit may return [fs.SkipAll].
func Walk(root string, visit func(name string, isDir bool) error) error {
	start := throughLink(root)
	return filepath.WalkDir(start, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := name != start && strings.HasPrefix(entry.Name(), ".")
		switch {
		case hidden && entry.IsDir():
			return filepath.SkipDir
		case hidden, !entry.IsDir() && name != start && !IsPolicy(entry.Name()):
			return nil
		}
		return visit(filepath.Clean(name), entry.IsDir())
	})
}

// throughLink is a path that [filepath.WalkDir] goes into though it is a link: whoever
// publishes a directory often moves a link to its next version.
func throughLink(root string) string {
	if info, err := os.Stat(root); err == nil && info.IsDir() {
		return root + string(filepath.Separator)
	}
	return root
}

// IsPolicy says whether a file of this name, below a directory of policies, is one.
func IsPolicy(name string) bool {
	return strings.HasSuffix(name, ".rego") && !strings.HasSuffix(name, "_test.rego")
}

func (s *sources) addFile(name string) {
	info, err := os.Stat(name)
	if err != nil {
		s.problems.add(name, "cannot read this policy file: %v", err)
		return
	}
	if text, ok := s.problems.readFile(name, info); ok {
		s.add(filepath.ToSlash(name), text)
	}
}

// readFile reads a policy file of a size that can be used. A pipe or a device, which may
// have no end, is none.
func (ps *problems) readFile(name string, info fs.FileInfo) (text string, ok bool) {
	switch {
	case !info.Mode().IsRegular():
		ps.add(name, "cannot use this as a policy file: it is a directory, a pipe or a device; rename it")
		return "", false
	case info.Size() > maxFile:
		ps.add(name, "cannot use a policy file of %d bytes; split it, the limit is %d", info.Size(), maxFile)
		return "", false
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		ps.add(name, "cannot read this policy file: %v", err)
		return "", false
	}
	return string(raw), true
}

// below are the embedded files that stand below the user's own, by name: the default
// policy, the profile that is chosen with its entry point, and those that a file names.
func below(own map[string]string, profile string) map[string]string {
	texts := map[string]string{}
	err := fs.WalkDir(embedded, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !IsPolicy(name) || name == "entry.rego" && profile != "" {
			return err
		}
		if rest, found := strings.CutPrefix(name, "profiles/"); found && path.Dir(rest) != profile && !mention(own, path.Dir(rest)) {
			return nil
		}
		text, err := embedded.ReadFile(name)
		texts[builtinPrefix+name] = string(text)
		return err
	})
	if err != nil {
		panic("BUG: the embedded policy cannot be read: " + err.Error())
	}
	if profile != "" {
		name, text := profileEntry(profile)
		texts[name] = text
	}
	return texts
}

// mention says whether a file may use a profile.
func mention(texts map[string]string, profile string) bool {
	for _, text := range texts {
		if strings.Contains(text, "profiles") && strings.Contains(text, profile) {
			return true
		}
	}
	return false
}

// modules are the parsed files of a policy.
type modules map[string]*ast.Module

// parse reads the texts, and adds each package of the embedded policies that none of
// them has replaced.
func (ps *problems) parse(texts map[string]string, profile string) modules {
	own := modules{}
	for name, text := range texts {
		if m := ps.parseOne(name, text); m != nil {
			own[name] = m
		}
	}
	all := modules{}
	for name, text := range below(texts, profile) {
		if m := ps.parseOne(name, text); m != nil && !own.replace(m.Package.Path) {
			all[name] = m
		}
	}
	maps.Copy(all, own)
	return all
}

func (ps *problems) parseOne(name, text string) *ast.Module {
	if !ps.checkNesting(name, text) {
		return nil
	}
	m, err := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{
		ProcessAnnotation: true, RegoVersion: ast.RegoV1, Capabilities: capabilities(),
	})
	if err != nil {
		ps.fromOPA(name, err)
		return nil
	}
	return m
}

// entryPackage is the one of both entry points.
var entryPackage = ast.MustParseRef("data.fourgate")

// replace says whether the user's own files take an embedded package's place. Those that
// have nothing but the route entry point leave the decision to the embedded one.
func (own modules) replace(pkg ast.Ref) bool {
	var replaced, decides, routes bool
	for _, m := range own {
		if !m.Package.Path.Equal(pkg) {
			continue
		}
		replaced = true
		for _, r := range m.Rules {
			decides = decides || r.Head.Name == "decision"
			routes = routes || r.Head.Name == "route"
		}
	}
	return replaced && !(pkg.Equal(entryPackage) && routes && !decides)
}
