package policies

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

//go:embed *.rego gates/*.rego input.jsonschema
var embedded embed.FS

const (
	defaultQuery = "data.fourgate.decision"
	// defaultTimeout is some thousand times what the default policy takes.
	defaultTimeout = 250 * time.Millisecond
	// maxFile bounds one policy file in bytes, so that a wrong path can't fill memory.
	maxFile = 1 << 20
	// builtinPrefix marks the places of the default policy, which no file on disk has.
	builtinPrefix = "builtin:"
)

// Options say which policy to load.
type Options struct {
	// Paths are files and directories with *.rego, searched below; *_test.rego and
	// hidden names are left out. Without any the default policy is used alone. A
	// package of the default policy is left out when a file here has the same one.
	Paths []string
	// Query is the entry point, data.fourgate.decision if it is empty.
	Query string
	// Timeout bounds one evaluation; zero means 250 ms. A late one is tried once more.
	Timeout time.Duration
	// Params are data.params and input.params. The map is copied.
	Params map[string]any
	// Memory is how many answers are remembered: zero means 4096, less means none.
	Memory int
}

// Problem is one reason why a policy can't be loaded. Line and Col count from 1; they
// are 0 where only the file, or nothing, can be named.
type Problem struct {
	File      string
	Line, Col int
	Message   string
}

func (p Problem) String() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Line == 0:
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, p.Message)
}

// LoadError lists everything that is wrong with a policy, by file and line.
type LoadError struct{ Problems []Problem }

func (e *LoadError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "cannot load policy: " + strings.Join(lines, "\n")
}

// Load compiles a policy. Its error is a [*LoadError], or ctx's.
func Load(ctx context.Context, opts Options) (*Set, error) {
	l := loading{modules: map[string]*ast.Module{}}
	for _, p := range opts.Paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l.addPath(p)
	}
	l.addDefaults()
	if len(l.problems) > 0 {
		return nil, l.failed()
	}
	set := l.compile(cmp.Or(opts.Query, defaultQuery), opts.Params)
	if len(l.problems) > 0 {
		return nil, l.failed()
	}
	set.timeout = cmp.Or(opts.Timeout, defaultTimeout)
	if limit := cmp.Or(opts.Memory, defaultMemory); limit > 0 {
		set.memory = newMemory(limit)
	}
	return set, nil
}

// loading is a load under way: it goes on after a problem to find the others, too.
type loading struct {
	modules  map[string]*ast.Module
	problems []Problem
}

func (l *loading) failed() *LoadError {
	slices.SortStableFunc(l.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return &LoadError{slices.Compact(l.problems)}
}

func (l *loading) problem(file string, format string, args ...any) {
	l.problems = append(l.problems, Problem{File: file, Message: fmt.Sprintf(format, args...)})
}

// addPath adds a file, or all policy files below a directory.
func (l *loading) addPath(root string) {
	found := 0
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := name != root && strings.HasPrefix(entry.Name(), ".")
		switch {
		case hidden && entry.IsDir():
			return filepath.SkipDir
		case hidden, entry.IsDir(), name != root && !isPolicy(entry.Name()):
			return nil
		}
		found++
		l.addFile(name)
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.problem(root, "cannot find this policy path; correct policy.paths or leave it out to use the default policy")
	case err != nil:
		l.problem(root, "cannot read this policy path: %v", err)
	case found == 0:
		l.problem(root, "cannot find any .rego file here; a policy needs one with the package of its query")
	}
}

func isPolicy(name string) bool {
	return strings.HasSuffix(name, ".rego") && !strings.HasSuffix(name, "_test.rego")
}

func (l *loading) addFile(name string) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		l.problem(name, "cannot read this policy file: %v", err)
		return
	case info.Size() > maxFile:
		l.problem(name, "cannot use a policy file of %d bytes; split it, the limit is %d", info.Size(), maxFile)
		return
	}
	text, err := os.ReadFile(name)
	if err != nil {
		l.problem(name, "cannot read this policy file: %v", err)
		return
	}
	l.parse(filepath.ToSlash(name), string(text))
}

// addDefaults adds each package of the default policy that no file has replaced.
func (l *loading) addDefaults() {
	own := make([]ast.Ref, 0, len(l.modules))
	for _, m := range l.modules {
		own = append(own, m.Package.Path)
	}
	for _, dir := range []string{".", "gates"} {
		entries, err := embedded.ReadDir(dir)
		if err != nil {
			panic("BUG: the embedded policy has no " + dir)
		}
		for _, entry := range entries {
			if !isPolicy(entry.Name()) {
				continue
			}
			name := path.Join(dir, entry.Name())
			text, err := embedded.ReadFile(name)
			if err != nil {
				panic("BUG: the embedded policy has no " + name)
			}
			m := l.parse(builtinPrefix+name, string(text))
			if m != nil && slices.ContainsFunc(own, func(r ast.Ref) bool { return r.Equal(m.Package.Path) }) {
				delete(l.modules, builtinPrefix+name)
			}
		}
	}
}

func (l *loading) parse(name, text string) *ast.Module {
	m, err := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{
		ProcessAnnotation: true, RegoVersion: ast.RegoV1, Capabilities: capabilities(),
	})
	if err != nil {
		l.fromOPA(name, err)
		return nil
	}
	l.modules[name] = m
	return m
}

// compile makes the set, or adds problems.
func (l *loading) compile(query string, params map[string]any) *Set {
	entry, err := ast.ParseRef(query)
	if err != nil || !entry.HasPrefix(ast.DefaultRootRef) || !entry.IsGround() {
		l.problem("", "cannot use query %q: write the name of a rule, such as %q", query, defaultQuery)
		return nil
	}
	if params == nil {
		params = map[string]any{}
	}
	value, err := ast.InterfaceToValue(params)
	if err != nil {
		l.problem("", "cannot use policy params: %v", err)
		return nil
	}
	l.checkKnobs(value)
	places := mark(l.modules, entry)
	markable := capabilities()
	markable.Builtins = append(markable.Builtins, markBuiltin)
	compiler := ast.NewCompiler().
		WithCapabilities(markable).
		WithEnablePrintStatements(false).
		WithUseTypeCheckAnnotations(true).
		WithSchemas(inputSchema()).
		SetErrorLimit(0)
	compiler.Compile(l.modules)
	if compiler.Failed() {
		l.fromOPA("", compiler.Errors)
		return nil
	}
	if len(compiler.GetRules(entry)) == 0 {
		l.problem("", "cannot find a rule for query %q; define it, or correct policy.query", query)
		return nil
	}
	body, err := compiler.QueryCompiler().Compile(ast.NewBody(ast.Equality.Expr(ast.VarTerm(string(answerVar)), ast.NewTerm(entry))))
	if err != nil {
		l.fromOPA("", err)
		return nil
	}
	term := ast.NewTerm(value)
	return &Set{
		compiler: compiler,
		query:    body,
		store:    inmem.NewFromASTObject(ast.NewObject(ast.Item(ast.StringTerm("params"), term))),
		params:   ast.Item(ast.StringTerm("params"), term),
		reads:    readsOf(compiler.Modules),
		places:   places,
	}
}

// fromOPA adds OPA's own problems with their places.
func (l *loading) fromOPA(file string, err error) {
	var list ast.Errors
	var one *ast.Error
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = ast.Errors{one}
	default:
		l.problem(file, "%v", err)
		return
	}
	for _, e := range list {
		p := Problem{File: file, Message: refusal(e.Message)}
		if e.Location != nil {
			p.File, p.Line, p.Col = cmp.Or(e.Location.File, file), e.Location.Row, e.Location.Col
		}
		if e.Details != nil {
			if lines := e.Details.Lines(); len(lines) > 0 {
				p.Message += "\n\t" + strings.Join(lines, "\n\t")
			}
		}
		l.problems = append(l.problems, p)
	}
}

// inputSchema lets the compiler find a misspelt fact.
func inputSchema() *ast.SchemaSet {
	text, err := embedded.ReadFile("input.jsonschema")
	if err != nil {
		panic("BUG: the embedded policy has no input.jsonschema")
	}
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		panic("BUG: input.jsonschema is not JSON: " + err.Error())
	}
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, schema)
	// Authors whose schemas are in a directory name the file, too.
	set.Put(ast.SchemaRootRef.Extend(ast.Ref{ast.VarTerm("input")}), schema)
	return set
}
