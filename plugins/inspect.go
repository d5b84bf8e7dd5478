package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/fourgate-dev/fourgate/plugins/oci"
)

// Inspection is what can be told of a module without asking it about a failure.
type Inspection struct {
	SHA256  string // of the file's bytes, in hexadecimal
	Profile string // that it needs: [ProfileWASI], or empty
	Imports []Extern
	Exports []Extern
	Limits  []Use
	// Problems are the reasons for which the module would be refused, each with what it
	// should be; none if it can be loaded.
	Problems []string
}

// Extern is an import or an export of a module.
type Extern struct {
	Name string // of an import with its module: "fourgate.status"
	Kind string // function, table, memory, global
	Type string // of a function, such as "(i32)->i64"; empty if unknown
}

// Use is how much of a limit a module uses.
type Use struct {
	Name  string
	Used  uint64
	Limit uint64
	Unit  string // "bytes", or empty
}

// Inspect reads a module, which needs no pin, checks it as [Host.Load] does and tries to
// load it. The error says that there was nothing to read; what is wrong with the module
// itself is in the inspection.
func (h *Host) Inspect(ctx context.Context, m Module) (*Inspection, error) {
	binary, err := m.readUnpinned(ctx, h.fetched)
	if err != nil {
		return nil, fmt.Errorf("cannot inspect module: %w", err)
	}
	sum := sha256.Sum256(binary)
	found := &Inspection{SHA256: hex.EncodeToString(sum[:])}
	m.Profile = found.describe(binary)
	m.SHA256 = found.SHA256
	if _, err := h.load(ctx, m); err != nil {
		found.Problems = problemsOf(err)
	}
	return found, nil
}

// readUnpinned reads the module's bytes and compares no digest.
func (m Module) readUnpinned(ctx context.Context, kept string) ([]byte, error) {
	if strings.HasPrefix(m.Source, BuiltinPrefix) || oci.IsReference(m.Source) {
		binary, _, err := m.read(ctx, kept)
		return binary, err
	}
	return readFile(m.Source, maxFileBytes)
}

// describe lists what a module has, as far as it can be read, and returns the profile
// that it needs.
func (i *Inspection) describe(binary []byte) string {
	m, err := readModule(binary, &profileWASI)
	prof := &profilePlain
	if err == nil && m.importsWASI() {
		prof = &profileWASI
	}
	i.Profile = prof.name
	i.use("file", uint64(len(binary)), uint64(prof.moduleBytes), "bytes")
	if err != nil {
		return prof.name // the problem is reported by whoever loads it
	}
	for _, im := range m.imports {
		i.Imports = append(i.Imports, Extern{im.module + "." + im.name, externName(im.kind), string(im.sig)})
	}
	for _, e := range m.exports {
		x := Extern{Name: e.name, Kind: externName(e.kind)}
		if e.kind == externFunction && int64(e.index) < int64(len(m.functions)) {
			x.Type = string(m.functions[e.index])
		}
		i.Exports = append(i.Exports, x)
	}
	i.use("code", uint64(m.codeBytes), uint64(prof.codeBytes), "bytes")
	i.use("functions", uint64(len(m.bodies)), uint64(prof.functions), "")
	i.use("imports", uint64(len(m.imports)), maxImports, "")
	i.use("exports", uint64(len(m.exports)), maxExports, "")
	i.use("table entries", uint64(m.tableMin), uint64(prof.tableEntries), "")
	i.use("memory at first", uint64(m.memoryMin)*wasmPage, DefaultMemoryBytes, "bytes")
	if calls, err := m.checkCalls(); err == nil && !calls.watchCalls {
		i.use("steps between two looks at the deadline", calls.steps, maxStraightSteps, "")
	}
	return prof.name
}

func (i *Inspection) use(name string, used, limit uint64, unit string) {
	i.Limits = append(i.Limits, Use{name, used, limit, unit})
}

func externName(kind byte) string {
	switch kind {
	case externFunction:
		return "function"
	case externTable:
		return "table"
	case externMemory:
		return "memory"
	case externGlobal:
		return "global"
	}
	return fmt.Sprintf("kind %d", kind)
}

// problemsOf takes an error apart that joins several.
func problemsOf(err error) []string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range joined.Unwrap() {
			all = append(all, problemsOf(e)...)
		}
		return all
	}
	return []string{err.Error()}
}
