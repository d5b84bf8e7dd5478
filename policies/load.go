package policies

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/fourgate-dev/fourgate/engine"
)

// Load compiles a policy. Its error is a [*LoadError], or ctx's. Where several sets are
// loaded, a [Loader] compiles what they share but once.
func Load(ctx context.Context, opts Options) (*Set, error) {
	return new(Loader).Load(ctx, opts)
}

// Loader loads policies, and compiles those once that differ in nothing but params, data,
// timeout and memory: a thousand route groups with params of their own cost one compiled
// policy. What it has compiled lives as long as a set that uses it. The zero value is
// ready; it may be used from many goroutines.
type Loader struct {
	mu       sync.Mutex
	programs map[identity]weak.Pointer[program]
}

// identity is the hash of everything that a program is compiled from.
type identity [sha256.Size]byte

// Load is as the function [Load].
func (l *Loader) Load(ctx context.Context, opts Options) (*Set, error) {
	return l.compiled(ctx, gather(ctx, opts), opts)
}

// compiled loads what was gathered.
func (l *Loader) compiled(ctx context.Context, src *sources, opts Options) (*Set, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := src.problems.failed(); err != nil {
		return nil, err
	}
	p, err := l.program(src, opts)
	if err != nil {
		return nil, err
	}
	return p.set(ctx, opts)
}

// program returns the compiled policy of the sources. Only one is compiled at a time, so
// that a burst of equal ones finds the first.
func (l *Loader) program(src *sources, opts Options) (*program, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := src.identity(opts)
	if p := l.programs[id].Value(); p != nil {
		return p, nil
	}
	p, err := compile(src, opts)
	if err != nil {
		return nil, err
	}
	if l.programs == nil {
		l.programs = map[identity]weak.Pointer[program]{}
	}
	maps.DeleteFunc(l.programs, func(_ identity, p weak.Pointer[program]) bool { return p.Value() == nil })
	l.programs[id] = weak.Make(p)
	return p, nil
}

// identity hashes the files under their names, which places show, and what else changes
// the program.
func (s *sources) identity(opts Options) identity {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s.texts)) {
		fmt.Fprintf(h, "%d %s %d ", len(name), name, len(s.texts[name]))
		io.WriteString(h, s.texts[name])
	}
	fmt.Fprintf(h, "%q %q", opts.Profile, opts.Query)
	return identity(h.Sum(nil))
}

// maxParams bounds the params in bytes of JSON. They are written by hand.
const maxParams = 256 << 10

// maxData bounds the data documents in bytes of JSON: each set keeps all of them in
// memory.
const maxData = 32 << 20

// maxDatum bounds one text of params or data in bytes. Many builtins read all of a text, or
// of two of them times each other, in one step, inside which no time limit is looked at.
const maxDatum = 8 << 10

// set makes a set of the program and what is the set's own.
func (p *program) set(ctx context.Context, opts Options) (*Set, error) {
	var ps problems
	params := ps.object("params", opts.Params, maxParams)
	data := ps.object("data", opts.Data, maxData)
	if err := ps.failed(); err != nil {
		return nil, err
	}
	p.checkKnobs(&ps, params)
	documents := ast.NewObject(ast.Item(ast.StringTerm("params"), ast.NewTerm(params)))
	data.Foreach(func(k, v *ast.Term) {
		if name := string(k.Value.(ast.String)); name == "params" || name == "fourgate" {
			ps.add("", "cannot use policy data below %q: the name is Fourgate's own; use another one in the data file", name)
		}
		documents.Insert(k, v)
	})
	store := inmem.NewFromASTObject(documents)
	err := storage.Txn(ctx, store, storage.TransactionParams{}, func(txn storage.Transaction) error {
		if errs := ast.CheckPathConflicts(p.compiler, storage.NonEmpty(ctx, store, txn)); len(errs) > 0 {
			ps.fromOPA("", errs)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := ps.failed(); err != nil {
		return nil, err
	}
	set := &Set{
		program: p, store: store, params: params, timeout: cmp.Or(opts.Timeout, defaultTimeout),
		location: cmp.Or(opts.Location, time.UTC),
	}
	set.revision = set.hash(data)
	if limit := cmp.Or(opts.Memory, defaultMemory); limit > 0 {
		set.decisions = newMemory[engine.Decision](limit)
		set.routes = newMemory[engine.RouteAnswer](limit)
	}
	return set, nil
}

// object is a map as a policy sees it, {} if it is nil or a problem.
func (ps *problems) object(argument string, from map[string]any, limit int) ast.Object {
	if len(from) == 0 {
		return ast.NewObject()
	}
	text, err := json.Marshal(from)
	if err == nil && len(text) > limit {
		err = fmt.Errorf("%d bytes of JSON are too many, the limit is %d", len(text), limit)
	}
	var v ast.Value
	if err == nil {
		v, err = ast.ValueFromReader(bytes.NewReader(text))
	}
	if err == nil {
		if member, size := longText(v.(ast.Object)); size > 0 {
			err = fmt.Errorf("%q has a text of %d bytes, the limit is %d; write a list of shorter ones", member, size, maxDatum)
		}
	}
	if err != nil {
		ps.addTo(argument, "cannot use policy %s: %v", argument, err)
		return ast.NewObject()
	}
	return v.(ast.Object)
}

// longText finds a text that is too long: the member that has it and its size, 0 if there
// is none.
func longText(o ast.Object) (member string, size int) {
	o.Until(func(k, v *ast.Term) bool {
		for _, t := range []*ast.Term{k, v} {
			ast.WalkTerms(t, func(t *ast.Term) bool {
				if s, ok := t.Value.(ast.String); ok && len(s) > maxDatum {
					size = len(s)
				}
				return size > 0
			})
		}
		member = string(k.Value.(ast.String))
		return size > 0
	})
	return member[:min(len(member), maxShown)], size
}

// hash is the revision. It leaves out where files stand: the same policy has the same
// revision on every machine.
func (s *Set) hash(data ast.Object) string {
	h := sha256.New()
	h.Write(s.texts[:])
	fmt.Fprintf(h, "%s %s", s.params, data)
	if s.location != time.UTC {
		fmt.Fprintf(h, " %s", s.location)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
