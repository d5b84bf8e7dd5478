package plugins

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// maxStraightSteps is how many instructions a module may run between two looks at its
// deadline. Compiled code looks at every loop's head, and only there; a module without
// loops whose functions each call the next one twice would run for years in between,
// and stop the garbage collector meanwhile. 2 million simple steps are about 1 ms.
const maxStraightSteps = 2_000_000

// checked is what the check of a module found out.
type checked struct {
	// watchCalls is set when it can't be proved that the module looks at its deadline
	// often enough: it has recursion or indirect calls. Each function call then looks.
	watchCalls bool
	steps      uint64 // the most steps between two looks at the deadline, if proved
	stores     bool   // its code may write into its memory
	loops      bool
	codeBytes  int
	module     *wasmModule
}

// check refuses a binary that doesn't fit the ABI or asks for too much. All that is
// wrong with its imports and exports is in the error.
func check(binary []byte, memoryBytes int64, prof *profile) (checked, error) {
	m, err := readModule(binary, prof)
	if err != nil {
		return checked{}, err
	}
	var problems []error
	problems = append(problems, m.checkImports()...)
	problems = append(problems, m.checkExports()...)
	if m.hasStart {
		problems = append(problems, errors.New("it has a start section; export the function as _initialize instead (AssemblyScript: --exportStart _initialize)"))
	}
	if m.tableMin > m.profile.tableEntries {
		problems = append(problems, fmt.Errorf("its table has %d entries; the limit is %d", m.tableMin, m.profile.tableEntries))
	}
	if need := int64(m.memoryMin) * wasmPage; need > memoryBytes {
		problems = append(problems, fmt.Errorf("it begins with %d bytes of memory and may have %d; raise the classifier's memory or build it with less", need, memoryBytes))
	}
	if len(problems) > 0 {
		return checked{}, errors.Join(problems...)
	}
	return m.checkCalls()
}

func (m *wasmModule) checkImports() []error {
	var problems []error
	for _, im := range m.imports {
		full := im.module + "." + im.name
		switch {
		case im.module == wasiModule:
			problems = append(problems, m.checkWASI(im)...)
		case im.module != ABIModule:
			hint := ""
			if full == "env.abort" {
				hint = " (AssemblyScript: add --use abort=)"
			}
			problems = append(problems, fmt.Errorf("import %q is not ours; a classifier imports only functions of the module %q%s", full, ABIModule, hint))
		case im.kind != externFunction:
			problems = append(problems, fmt.Errorf("import %q is no function; the module %q has only functions", full, ABIModule))
		default:
			want, ok := abiSignature(im.name)
			if !ok {
				problems = append(problems, fmt.Errorf("import %q doesn't exist in version 1 of the ABI%s", full, didYouMean(im.name)))
			} else if want != im.sig {
				problems = append(problems, fmt.Errorf("import %q has the type %s; it should be %s", full, im.sig, want))
			}
		}
	}
	return problems
}

// checkWASI checks an import that only the profile "wasi" has.
func (m *wasmModule) checkWASI(im wasmImport) []error {
	full := im.module + "." + im.name
	want, known := wasiSignature(im.name)
	switch {
	case !m.profile.wasi:
		return []error{fmt.Errorf("import %q is not ours; build without WASI, or set profile = %q, which gives nothing but lets the module be loaded", full, ProfileWASI)}
	case im.kind != externFunction || !known:
		return []error{fmt.Errorf("import %q is no function of WASI preview 1 that the profile %q has", full, ProfileWASI)}
	case want != im.sig:
		return []error{fmt.Errorf("import %q has the type %s; it should be %s", full, im.sig, want)}
	}
	return nil
}

func (m *wasmModule) importsWASI() bool {
	return slices.ContainsFunc(m.imports, func(im wasmImport) bool { return im.module == wasiModule })
}

func didYouMean(name string) string {
	best, distance := "", 4
	for _, f := range abiFunctions {
		if d := levenshtein.Distance(name, f.name, nil); d < distance {
			best, distance = f.name, d
		}
	}
	if best == "" {
		return "; see docs/plugins.md for the functions there are"
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

func (m *wasmModule) checkExports() []error {
	var problems []error
	if e := m.export("memory"); e == nil {
		problems = append(problems, errors.New(`it exports no "memory"; it should be its linear memory`))
	} else if e.kind != externMemory {
		problems = append(problems, errors.New(`its export "memory" is no memory`))
	}
	if e := m.export(ABIMarker); e == nil {
		problems = append(problems, fmt.Errorf("it exports no %q; export a function or a global of that name to say which ABI it was built for%s", ABIMarker, m.otherMarker()))
	} else if e.kind != externFunction && e.kind != externGlobal {
		problems = append(problems, fmt.Errorf("its export %q should be a function or a global", ABIMarker))
	}
	if err := m.checkEntry("classify", true); err != nil {
		problems = append(problems, err)
	}
	if err := m.checkEntry("_initialize", false); err != nil {
		problems = append(problems, err)
	}
	return problems
}

func (m *wasmModule) otherMarker() string {
	for _, e := range m.exports {
		if strings.HasPrefix(e.name, "fourgate_abi_") {
			return fmt.Sprintf("; %q is a version that this Fourgate doesn't know", e.name)
		}
	}
	return ""
}

// checkEntry checks a function that the host calls: no parameters, no results, and not
// a mere re-export of an import.
func (m *wasmModule) checkEntry(name string, needed bool) error {
	e := m.export(name)
	switch {
	case e == nil && needed:
		return fmt.Errorf("it exports no %q; it should be a function of the type ()->", name)
	case e == nil:
		return nil
	case e.kind != externFunction || int64(e.index) >= int64(len(m.functions)) || int(e.index) < m.imported:
		return fmt.Errorf("its export %q should be a function of its own of the type ()->", name)
	case m.functions[e.index] != "()->":
		return fmt.Errorf("its export %q has the type %s; it should be ()->", name, m.functions[e.index])
	}
	return nil
}

func (m *wasmModule) export(name string) *wasmExport {
	for i := range m.exports {
		if m.exports[i].name == name {
			return &m.exports[i]
		}
	}
	return nil
}

// The colours of the depth-first walk over the call graph.
const (
	unseen = iota
	open
	done
)

// checkCalls proves an upper bound for the steps between two looks at the deadline: a
// function costs its own instructions plus the cost of every call in it, each once. A
// loop only makes the way to the next look shorter. Where the proof is impossible
// (recursion, indirect calls) the runtime has to look at each call instead.
func (m *wasmModule) checkCalls() (checked, error) {
	cost := make([]uint64, len(m.bodies))
	colour := make([]uint8, len(m.bodies))
	result := checked{module: m, codeBytes: m.codeBytes}
	// A stack of our own: a chain of 4,000 functions must not be a recursion of ours.
	type visit struct{ body, next int }
	for root := range m.bodies {
		if colour[root] != unseen {
			continue
		}
		colour[root] = open
		stack := []visit{{root, 0}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			b := &m.bodies[top.body]
			if top.next == len(b.calls) {
				cost[top.body] = m.bodyCost(b, cost)
				colour[top.body] = done
				stack = stack[:len(stack)-1]
				continue
			}
			f := b.calls[top.next]
			top.next++
			if int64(f) >= int64(len(m.functions)) {
				return result, fmt.Errorf("function %d calls function %d, which is not there", top.body+m.imported, f)
			}
			callee := int(f) - m.imported
			if callee < 0 {
				continue
			}
			switch colour[callee] {
			case open:
				result.watchCalls = true
			case unseen:
				colour[callee] = open
				stack = append(stack, visit{callee, 0})
			}
		}
	}
	for i := range m.bodies {
		result.steps = max(result.steps, cost[i])
		result.watchCalls = result.watchCalls || m.bodies[i].indirect
		result.loops = result.loops || m.bodies[i].loops
		result.stores = result.stores || m.bodies[i].stores
	}
	// Memory that is filled or copied makes the sum large soon, and where WASI is needed
	// speed is not.
	result.watchCalls = result.watchCalls || m.profile.wasi && result.steps > maxStraightSteps
	if result.watchCalls {
		result.steps = 0
		return result, m.checkBodies()
	}
	if result.steps > maxStraightSteps {
		return result, fmt.Errorf("its functions call each other so often that it may run over %d instructions without passing a loop, and could not be stopped in between; call less, or loop", maxStraightSteps)
	}
	return result, nil
}

// checkBodies bounds what one function may do before it calls or loops, where a look at
// each call is all that there is. Only filling and copying memory make this more than the
// size of the code.
func (m *wasmModule) checkBodies() error {
	for i := range m.bodies {
		if steps := m.bodies[i].steps; m.profile.wasi && steps > m.profile.bodySteps {
			return fmt.Errorf("function %d may fill or copy so much memory that it could not be stopped for %d steps; the limit is %d", i+m.imported, steps, m.profile.bodySteps)
		}
	}
	return nil
}

// bodyCost adds up a function whose callees are known. It saturates.
func (m *wasmModule) bodyCost(b *wasmBody, cost []uint64) uint64 {
	const most = 1 << 40
	sum := b.steps
	for _, f := range b.calls {
		if int(f) < m.imported {
			sum += importSteps
		} else {
			sum += cost[int(f)-m.imported]
		}
		if sum > most {
			return most
		}
	}
	return sum
}
