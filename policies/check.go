package policies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
)

// CheckReport is what a check of policy files has found.
type CheckReport struct {
	Files, Rules, Tests int
	// Problems are everything that is wrong, by file and line.
	Problems []Problem
	// Doubts are what compiles and hardly means what it seems to, by file and line.
	Doubts []Problem
	// Unformatted are the files that `opa fmt` would change.
	Unformatted []string
	// Data are files that `opa test` loads as data and the proxy doesn't.
	Data []string
}

// Fine says that there is nothing to mend.
func (r *CheckReport) Fine() bool { return len(r.Problems) == 0 && len(r.Unformatted) == 0 }

// Check compiles a policy as the proxy would, and its tests beside it. With strict it also
// finds what OPA's strict mode does: imports and variables that nobody uses, and the like.
// Its error is ctx's.
func Check(ctx context.Context, opts Options, strict bool) (*CheckReport, error) {
	var ps problems
	src := gather(ctx, opts)
	if _, err := new(Loader).compiled(ctx, src, opts); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		ps.addLoadError(err)
	}
	r := &CheckReport{}
	others := &sources{texts: map[string]string{}}
	for _, root := range opts.Paths {
		r.addFiles(root, others)
	}
	ps = append(ps, others.problems...)

	own := map[string]string{}
	for _, texts := range []map[string]string{src.texts, others.texts} {
		for name, text := range texts {
			own[name] = text
		}
	}
	var again problems // what loading has found comes once more, and is said once
	all := again.parse(own, opts.Profile)
	again.checkShape(all)
	var doubts problems
	for name, text := range own {
		r.Files++
		if m := all[name]; m != nil {
			r.count(m)
			doubts.checkDoubts(m)
			if !formatted(name, text) {
				r.Unformatted = append(r.Unformatted, name)
			}
		}
	}
	slices.Sort(r.Unformatted)
	if len(again) == 0 {
		again.checkAll(own, opts.Profile, strict)
	}
	for _, p := range again {
		if !slices.ContainsFunc(ps, p.same) {
			ps = append(ps, p)
		}
	}
	var sorted problems
	sorted.addLoadError(ps.failed())
	r.Problems = sorted
	var sortedDoubts problems
	sortedDoubts.addLoadError(doubts.failed())
	r.Doubts = sortedDoubts
	return r, ctx.Err()
}

// checkAll compiles rules and tests. OPA ends at the first stage that finds anything, and
// types come last: so they are also checked by themselves, with every builtin there is.
func (ps *problems) checkAll(texts map[string]string, profile string, strict bool) {
	for _, pass := range []struct {
		builtins *ast.Capabilities
		strict   bool
	}{{testCapabilities(), strict}, {ofOwn(ast.CapabilitiesForThisVersion()), false}} {
		compiler := ast.NewCompiler().
			WithCapabilities(pass.builtins).
			WithEnablePrintStatements(true).
			WithUseTypeCheckAnnotations(true).
			WithSchemas(inputSchemas()).
			WithStrict(pass.strict).
			WithStageAfterID(ps.weights()).
			SetErrorLimit(0)
		before := len(*ps)
		if compiler.Compile(ps.parse(texts, profile)); compiler.Failed() && len(*ps) == before { // which changes the modules
			ps.fromOPA("", compiler.Errors)
		}
	}
}

// addLoadError takes over the problems of an error.
func (ps *problems) addLoadError(err error) {
	var refused *LoadError
	switch {
	case errors.As(err, &refused):
		*ps = append(*ps, refused.Problems...)
	case err != nil:
		ps.add("", "%v", err)
	}
}

// same says whether two problems say the same of the same place.
func (p Problem) same(q Problem) bool {
	return p.File == q.File && p.Line == q.Line && p.Col == q.Col && p.Message == q.Message
}

// addFiles finds what loading a policy passes over: tests, and files that only OPA loads.
func (r *CheckReport) addFiles(root string, tests *sources) {
	root = throughLink(root)
	_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch base := entryName(entry); {
		case err != nil:
			return nil // loading has said so
		case name != root && strings.HasPrefix(base, ".") && entry.IsDir():
			return filepath.SkipDir
		case entry.IsDir():
		case strings.HasSuffix(base, "_test.rego") && name != root:
			tests.addFile(name)
		case slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(base)):
			r.Data = append(r.Data, filepath.ToSlash(name))
		}
		return nil
	})
}

func entryName(entry fs.DirEntry) string {
	if entry == nil {
		return ""
	}
	return entry.Name()
}

func (r *CheckReport) count(m *ast.Module) {
	for _, rule := range m.Rules {
		name := rule.Head.Ref().String()
		if strings.HasPrefix(name, "test_") || strings.HasPrefix(name, "todo_test_") {
			r.Tests++
		} else {
			r.Rules++
		}
	}
}

// formatted says whether a file is as `opa fmt` writes it.
func formatted(name, text string) bool {
	want, err := Format(name, []byte(text))
	return err == nil && string(want) == text
}

// Format lays a Rego file out as `opa fmt` does. Its error has the places of what can't be
// parsed.
func Format(name string, text []byte) ([]byte, error) {
	out, err := format.SourceWithOpts(name, text, format.Opts{RegoVersion: ast.RegoV1})
	if err != nil {
		return nil, fmt.Errorf("cannot format policy: %w", err)
	}
	return out, nil
}
