package plugins

import (
	"errors"
	"fmt"
)

// growSteps is what a memory.grow counts for, in steps: it may zero and move memory.
const growSteps = 1000

// importSteps is what a call of a host function counts for. Host functions look at the
// deadline themselves and bound their own work.
const importSteps = 200

func (m *wasmModule) readCode(r *wasmReader) {
	n := r.count("function bodies", m.profile.functions)
	for i := range n {
		body := &wasmReader{data: r.take(r.u32())}
		if r.err != nil {
			return
		}
		b, err := readBody(body, m.profile)
		if err != nil {
			r.fail(fmt.Errorf("function %d: %w", int(i)+m.imported, err))
			return
		}
		m.bodies = append(m.bodies, b)
	}
}

// readBody reads one function's locals and instructions.
func readBody(r *wasmReader, prof *profile) (wasmBody, error) {
	b := wasmBody{profile: prof}
	groups := r.count("groups of locals", prof.locals)
	var locals uint64
	for range groups {
		locals += uint64(r.u32())
		t := r.byte()
		if _, ok := valueType(t); !ok && r.err == nil {
			return b, fmt.Errorf("value type %#x is switched off", t)
		}
	}
	if r.err == nil && locals > uint64(prof.locals) {
		return b, fmt.Errorf("it has %d locals; the limit is %d", locals, prof.locals)
	}
	for r.err == nil && r.left() > 0 {
		b.instruction(r)
	}
	return b, r.err
}

// instruction passes over one instruction. It knows the instructions of version 1 of
// the core specification plus sign extension, saturating conversion and multiple
// values; those are what the runtime is configured for.
func (b *wasmBody) instruction(r *wasmReader) {
	op := r.byte()
	b.steps++
	switch {
	case op <= 0x01, op == 0x05, op == 0x0b, op == 0x0f, op == 0x1a, op == 0x1b:
		// unreachable, nop, else, end, return, drop, select
	case op >= 0x02 && op <= 0x04: // block, loop, if
		b.loops = b.loops || op == 0x03
		r.skipSigned(5)
	case op == 0x0c || op == 0x0d: // br, br_if
		_ = r.u32()
	case op == 0x0e: // br_table
		n := r.count("branches", uint32(b.profile.codeBytes))
		for range n {
			_ = r.u32()
		}
		_ = r.u32()
	case op == 0x10: // call
		f := r.u32()
		b.calls = append(b.calls, f)
	case op == 0x11: // call_indirect
		_ = r.u32()
		if r.byte() != 0 && r.err == nil {
			r.fail(errors.New("a call_indirect names a second table, which is switched off"))
		}
		b.indirect = true
	case op >= 0x20 && op <= 0x24: // local.*, global.*
		_ = r.u32()
	case op >= 0x28 && op <= 0x3e: // loads and stores
		b.stores = b.stores || op >= 0x36
		_ = r.u32()
		_ = r.u32()
	case op == 0x3f: // memory.size
		_ = r.byte()
	case op == 0x40: // memory.grow
		_ = r.byte()
		b.steps += growSteps
	case op == 0x41: // i32.const
		b.constant, b.constantAt = uint32(r.s32()), b.steps
	case op == 0x42: // i64.const
		r.skipSigned(10)
	case op == 0x43: // f32.const
		_ = r.take(4)
	case op == 0x44: // f64.const
		_ = r.take(8)
	case op >= 0x45 && op <= 0xc4: // comparisons, arithmetic, conversions, sign extension
	case op == 0xfc:
		b.stores = true
		b.prefixed(r)
	case op == 0xfd:
		r.fail(errors.New("SIMD is switched off; build without it"))
	default:
		if r.err == nil {
			r.fail(fmt.Errorf("instruction %#x is unknown or switched off", op))
		}
	}
}

// prefixed passes over an instruction that begins with 0xfc: saturating conversions, and
// memory.copy and memory.fill where the profile has them.
func (b *wasmBody) prefixed(r *wasmReader) {
	const memoryCopy, memoryFill = 10, 11
	sub := r.u32()
	switch {
	case sub <= 7:
	case b.profile.wasi && (sub == memoryCopy || sub == memoryFill):
		if sub == memoryCopy {
			_ = r.byte()
		}
		_ = r.byte()
		b.steps += b.bulkSteps()
	case r.err == nil:
		r.fail(fmt.Errorf("instruction 0xfc %d (bulk memory or tables) is switched off; build without bulk memory (C: -mcpu=mvp; Rust: the target wasm32v1-none)", sub))
	}
}

// bulkSteps is what filling or copying memory counts for, in steps of about half a
// nanosecond: 16 bytes are one. A length that is no constant may be the whole memory.
func (b *wasmBody) bulkSteps() uint64 {
	length := uint64(b.profile.memoryBytes)
	if b.constantAt+1 == b.steps {
		length = uint64(b.constant)
	}
	return length / 16
}
