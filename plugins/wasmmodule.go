package plugins

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// What a module may hold at most, whatever it asks for. They are far above what a
// classifier needs (the built-in ones are below 16 kB with some 60 functions) and far
// below what would be felt when it is compiled.
const (
	maxModuleBytes  = 2 << 20
	maxCodeBytes    = 512 << 10
	maxTypes        = 1000
	maxImports      = 100
	maxFunctions    = 4000
	maxGlobals      = 1000
	maxExports      = 1000
	maxSegments     = 2000
	maxTableEntries = 1000
	maxParameters   = 32
	maxLocals       = 2000 // of one function
	wasmPage        = 64 << 10
)

// The section numbers of the binary format that a classifier may have.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
)

// The kinds of imports and exports.
const (
	externFunction = 0
	externTable    = 1
	externMemory   = 2
	externGlobal   = 3
)

// signature is a function type in the notation of the ABI's table, such as
// "(i32,i32)->i64".
type signature string

// wasmImport is one imported item; the signature is set for functions.
type wasmImport struct {
	module, name string
	kind         byte
	sig          signature
}

// wasmExport is one exported item.
type wasmExport struct {
	name  string
	kind  byte
	index uint32
}

// wasmModule is what the checks need to know of a module.
type wasmModule struct {
	profile     *profile
	types       []signature
	imports     []wasmImport
	functions   []signature // imported ones first
	imported    int         // how many of functions are imported
	memories    int
	memoryMin   uint32 // pages
	tableMin    uint32
	tables      int
	exports     []wasmExport
	exportsFrom int // where the export section begins and ends in the file
	exportsTo   int
	codeBytes   int
	mutable     []uint32 // the globals that code can set
	hasStart    bool
	bodies      []wasmBody // of the functions that are not imported
	declared    uint32     // functions in the function section
	lastSection int
}

// wasmBody is one function's code: what it costs by itself and whom it calls.
type wasmBody struct {
	steps    uint64
	calls    []uint32
	indirect bool
	loops    bool
	profile  *profile
	// constant is the last i32.const, which was the instruction number constantAt.
	constant   uint32
	constantAt uint64
	stores     bool // it may write into the memory
}

var wasmMagic = []byte("\x00asm\x01\x00\x00\x00")

// readModule reads a module's sections. It allocates in proportion to the file, which
// is bounded by its profile.
func readModule(binary []byte, prof *profile) (*wasmModule, error) {
	if len(binary) > prof.moduleBytes {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d%s", len(binary), prof.moduleBytes, prof.hint(bytes.Contains(binary, []byte(wasiModule))))
	}
	if !bytes.HasPrefix(binary, wasmMagic) {
		return nil, errors.New("it is no WebAssembly module of version 1; a component or a text file must be compiled to a core module first")
	}
	m := &wasmModule{profile: prof}
	r := &wasmReader{data: binary, pos: len(wasmMagic)}
	for r.err == nil && r.left() > 0 {
		from := r.pos
		id := r.byte()
		body := r.take(r.u32())
		if r.err != nil {
			break
		}
		if id == sectionExport {
			m.exportsFrom, m.exportsTo = from, r.pos
		}
		if err := m.section(id, &wasmReader{data: body}); err != nil {
			return nil, fmt.Errorf("its %s section is wrong: %w", sectionName(id), err)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	if int(m.declared) != len(m.bodies) {
		return nil, fmt.Errorf("it declares %d functions and has code for %d", m.declared, len(m.bodies))
	}
	return m, nil
}

func sectionName(id byte) string {
	names := [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data", "data count"}
	if int(id) < len(names) {
		return names[id]
	}
	return fmt.Sprintf("%d.", id)
}

func (m *wasmModule) section(id byte, r *wasmReader) error {
	if id == sectionCustom {
		return nil // names and the like; never run
	}
	order := int(id) * 2
	if id == sectionDataCount { // stands between element and code
		order = sectionElement*2 + 1
	}
	if order <= m.lastSection {
		return errors.New("it stands twice or in the wrong place")
	}
	m.lastSection = order
	switch id {
	case sectionType:
		m.readTypes(r)
	case sectionImport:
		m.readImports(r)
	case sectionFunction:
		m.declared = r.count("functions", m.profile.functions)
		for range m.declared {
			m.functions = append(m.functions, m.typeAt(r, r.u32()))
		}
	case sectionTable:
		m.readTables(r)
	case sectionMemory:
		m.readMemories(r)
	case sectionGlobal:
		m.readGlobals(r)
	case sectionExport:
		m.readExports(r)
	case sectionStart:
		m.hasStart = true
		return nil
	case sectionElement:
		_ = r.count("element segments", m.profile.segments)
		return r.err
	case sectionCode:
		if most := m.profile.codeBytes; len(r.data) > most {
			return fmt.Errorf("it has %d bytes; the limit is %d%s", len(r.data), most, m.profile.hint(m.importsWASI()))
		}
		m.codeBytes = len(r.data)
		m.readCode(r)
	case sectionData:
		_ = r.count("data segments", m.profile.segments)
		return r.err
	case sectionDataCount:
		_ = r.u32()
	default:
		return errors.New("it is unknown")
	}
	if r.err == nil && r.left() > 0 {
		return errors.New("bytes are left over at its end")
	}
	return r.err
}

func valueType(b byte) (string, bool) {
	switch b {
	case 0x7f:
		return "i32", true
	case 0x7e:
		return "i64", true
	case 0x7d:
		return "f32", true
	case 0x7c:
		return "f64", true
	}
	return "", false
}

func (m *wasmModule) readTypes(r *wasmReader) {
	n := r.count("types", m.profile.types)
	for range n {
		if form := r.byte(); r.err == nil && form != 0x60 {
			r.fail(fmt.Errorf("type form %#x is not a function", form))
			return
		}
		params, results := m.valueTypes(r), m.valueTypes(r)
		if r.err != nil {
			return
		}
		m.types = append(m.types, signature("("+params+")->"+results))
	}
}

func (m *wasmModule) valueTypes(r *wasmReader) string {
	n := r.count("values in a type", maxParameters)
	var names []string
	for range n {
		b := r.byte()
		name, ok := valueType(b)
		if !ok {
			r.fail(fmt.Errorf("value type %#x is switched off; use i32, i64, f32 and f64", b))
			return ""
		}
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

func (m *wasmModule) typeAt(r *wasmReader, i uint32) signature {
	if r.err != nil {
		return ""
	}
	if int64(i) >= int64(len(m.types)) {
		r.fail(fmt.Errorf("type %d is not there", i))
		return ""
	}
	return m.types[i]
}

func (m *wasmModule) readImports(r *wasmReader) {
	n := r.count("imports", maxImports)
	for range n {
		im := wasmImport{module: r.name(), name: r.name(), kind: r.byte()}
		switch im.kind {
		case externFunction:
			im.sig = m.typeAt(r, r.u32())
		case externTable, externMemory, externGlobal:
			m.skipImport(r, im.kind)
		default:
			r.fail(fmt.Errorf("the import %q is of the kind %d, which is switched off", im.module+"."+im.name, im.kind))
		}
		if r.err != nil {
			return
		}
		m.imports = append(m.imports, im)
		if im.kind == externFunction {
			m.functions = append(m.functions, im.sig)
			m.imported++
		}
	}
}

// skipImport passes over what an import is that is no function: it is refused by its name,
// and those behind it are to be reported, too.
func (m *wasmModule) skipImport(r *wasmReader, kind byte) {
	switch kind {
	case externTable:
		_ = r.byte()
		_ = m.limits(r)
	case externMemory:
		_ = m.limits(r)
	case externGlobal:
		_, _ = r.byte(), r.byte()
	}
}

func (m *wasmModule) readTables(r *wasmReader) {
	n := r.count("tables", 1)
	for range n {
		if kind := r.byte(); r.err == nil && kind != 0x70 {
			r.fail(fmt.Errorf("table element type %#x is switched off; use funcref", kind))
		}
		m.tables++
		m.tableMin = m.limits(r)
	}
}

func (m *wasmModule) readMemories(r *wasmReader) {
	n := r.count("memories", 1)
	for range n {
		m.memories++
		m.memoryMin = m.limits(r)
	}
}

// limits reads the size limits of a table or memory and returns the minimum. The
// maximum is no promise to us: the runtime's own cap holds.
func (m *wasmModule) limits(r *wasmReader) uint32 {
	flag := r.byte()
	if r.err == nil && flag > 1 {
		r.fail(fmt.Errorf("limits flag %#x (shared or 64-bit) is switched off", flag))
		return 0
	}
	least := r.u32()
	if flag == 1 {
		_ = r.u32()
	}
	return least
}

func (m *wasmModule) readExports(r *wasmReader) {
	n := r.count("exports", maxExports)
	for range n {
		e := wasmExport{name: r.name(), kind: r.byte(), index: r.u32()}
		if r.err != nil {
			return
		}
		m.exports = append(m.exports, e)
	}
}
