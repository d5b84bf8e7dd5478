package plugins

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// globalPrefix begins the names under which the host exports a module's globals to
// itself.
const globalPrefix = "fourgate:global:"

// readGlobals notes which globals can be set. A module imports none, so they count from 0.
func (m *wasmModule) readGlobals(r *wasmReader) {
	n := r.count("globals", maxGlobals)
	for i := range n {
		if t := r.byte(); r.err == nil {
			if _, ok := valueType(t); !ok {
				r.fail(fmt.Errorf("value type %#x is switched off; use i32, i64, f32 and f64", t))
			}
		}
		if r.byte() == 1 {
			m.mutable = append(m.mutable, i)
		}
		switch r.byte() {
		case 0x41:
			r.skipSigned(5)
		case 0x42:
			r.skipSigned(10)
		case 0x43:
			_ = r.take(4)
		case 0x44:
			_ = r.take(8)
		default:
			r.fail(fmt.Errorf("global %d doesn't begin with a constant", i))
		}
		if end := r.byte(); r.err == nil && end != 0x0b {
			r.fail(errors.New("a global's first value is more than a constant"))
		}
		if r.err != nil {
			return
		}
	}
}

// exposeGlobals returns the module with its mutable globals exported, and their names:
// the host puts them back to their first values, and can reach exported ones only. ok is
// false if the module uses such names itself.
func (m *wasmModule) exposeGlobals(file []byte) (exposed []byte, names []string, ok bool) {
	if slices.ContainsFunc(m.exports, func(e wasmExport) bool { return strings.HasPrefix(e.name, globalPrefix) }) {
		return file, nil, false
	}
	if len(m.mutable) == 0 {
		return file, nil, true
	}
	var entries []byte
	for _, i := range m.mutable {
		name := globalPrefix + strconv.Itoa(int(i))
		names = append(names, name)
		entries = binary.AppendUvarint(entries, uint64(len(name)))
		entries = append(append(entries, name...), externGlobal)
		entries = binary.AppendUvarint(entries, uint64(i))
	}
	old := &wasmReader{data: file[m.exportsFrom:m.exportsTo], pos: 1}
	_ = old.u32() // the section's size
	_ = old.u32() // how many exports
	content := binary.AppendUvarint(nil, uint64(len(m.exports)+len(names)))
	content = append(append(content, old.data[old.pos:]...), entries...)

	exposed = append(exposed, file[:m.exportsFrom]...)
	exposed = append(exposed, sectionExport)
	exposed = binary.AppendUvarint(exposed, uint64(len(content)))
	exposed = append(exposed, content...)
	return append(exposed, file[m.exportsTo:]...), names, true
}
