package policies

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fourgate-dev/fourgate/engine"
)

// program is a compiled policy without its params. It never changes; any number of sets
// may share it.
type program struct {
	compiler *ast.Compiler
	decision entry[engine.Question]
	route    *entry[engine.RouteQuestion] // nil if no rule routes
	knobs    []*ast.Rule                  // the defaults of knobs.rego, nil if that was replaced
	own      bool                         // there are files of the user's own
	texts    [sha256.Size]byte            // of what it was compiled from, without the files' names
}

// entry is one entry point: its query, and what its rules can look at.
type entry[Q any] struct {
	query  ast.Body
	reads  reads[Q]
	places places
}

// compile compiles the sources together with the embedded policy below them.
func compile(src *sources, opts Options) (*program, error) {
	var ps problems
	query := cmp.Or(opts.Query, defaultQuery)
	decision, err := ast.ParseRef(query)
	if err != nil || !decision.HasPrefix(ast.DefaultRootRef) || !decision.IsGround() {
		ps.addTo("query", "cannot use query %q: write the name of a rule, such as %q", query, defaultQuery)
	}
	modules := ps.parse(src.texts, opts.Profile)
	if err := ps.failed(); err != nil {
		return nil, err
	}
	ps.checkShape(modules)
	if err := ps.failed(); err != nil {
		return nil, err
	}
	p := &program{own: len(src.texts) > 0, texts: src.digest(opts, query)}
	if m := modules[builtinPrefix+"knobs.rego"]; m != nil {
		p.knobs = slices.DeleteFunc(slices.Clone(m.Rules), func(r *ast.Rule) bool { return !r.Default })
	}
	route := ast.MustParseRef(routeQuery)
	marks := marking{modules: modules, marked: map[*ast.Rule]bool{}}
	p.decision.places = marks.entry(decision)
	routes := marks.entry(route)
	marks.with(&p.decision.places)
	marks.with(&routes)

	markable := ofOwn(capabilities())
	markable.Builtins = append(markable.Builtins, markBuiltin)
	p.compiler = ast.NewCompiler().
		WithCapabilities(markable).
		WithEnablePrintStatements(false).
		WithUseTypeCheckAnnotations(true).
		WithSchemas(inputSchemas()).
		WithStageAfterID(ps.weights()).
		SetErrorLimit(0)
	p.compiler.Compile(modules)
	if p.compiler.Failed() {
		if len(ps) == 0 {
			ps.fromOPA("", p.compiler.Errors)
		}
		return nil, ps.failed()
	}
	if len(p.compiler.GetRules(decision)) == 0 {
		p.noDecision(&ps, decision)
	} else {
		p.checkNames(&ps, decision)
		p.checkFacts(&ps, decision, route)
	}
	if err := ps.failed(); err != nil {
		return nil, err
	}
	p.decision.query = p.queryOf(&ps, decision)
	p.decision.reads = readsOf(fields(), p.pathsOf(decision))
	if len(p.compiler.GetRules(route)) > 0 {
		p.route = &entry[engine.RouteQuestion]{
			query: p.queryOf(&ps, route), reads: readsOf(routeFields(), p.pathsOf(route)), places: routes,
		}
	}
	return p, ps.failed()
}

func (p *program) queryOf(ps *problems, entry ast.Ref) ast.Body {
	body, err := p.compiler.QueryCompiler().Compile(ast.NewBody(ast.Equality.Expr(ast.VarTerm(string(answerVar)), ast.NewTerm(entry))))
	if err != nil {
		ps.fromOPA("", err)
	}
	return body
}

// digest hashes the texts, sorted, whatever their files are called.
func (s *sources) digest(opts Options, query string) [sha256.Size]byte {
	var lines []string
	for _, texts := range []map[string]string{s.texts, below(s.texts, opts.Profile)} {
		for text := range maps.Values(texts) {
			lines = append(lines, fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
		}
	}
	slices.Sort(lines)
	return sha256.Sum256([]byte(strings.Join(append(lines, query), "\n")))
}

// inputSchemas let the compiler find a misspelt fact, with an annotation or without.
func inputSchemas() *ast.SchemaSet {
	set := ast.NewSchemaSet()
	input := schemaFile("input.jsonschema")
	set.Put(ast.SchemaRootRef, input)
	// Authors whose schemas are in a directory name the file, too.
	for name, schema := range map[string]any{"input": input, "route": schemaFile("route.jsonschema")} {
		set.Put(ast.SchemaRootRef.Append(ast.StringTerm(name)), schema)
	}
	return set
}

func schemaFile(name string) any {
	text, err := embedded.ReadFile(name)
	if err != nil {
		panic("BUG: the embedded policy has no " + name)
	}
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		panic("BUG: " + name + " is not JSON: " + err.Error())
	}
	return schema
}
