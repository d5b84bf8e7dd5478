package plugins

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// errShort says that a module ends in the middle of something.
var errShort = errors.New("the file ends too early")

// errNumber says that a number is longer than its type allows.
var errNumber = errors.New("a number in it is malformed")

// wasmReader reads the primitive values of the WebAssembly binary format (core
// specification, section 5.2). The first error sticks; after it every read gives zero.
type wasmReader struct {
	data []byte
	pos  int
	err  error
}

func (r *wasmReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.pos = len(r.data)
}

func (r *wasmReader) left() int { return len(r.data) - r.pos }

func (r *wasmReader) byte() byte {
	if r.pos >= len(r.data) {
		r.fail(errShort)
		return 0
	}
	b := r.data[r.pos]
	r.pos++
	return b
}

// take returns the next n bytes without copying them.
func (r *wasmReader) take(n uint32) []byte {
	if uint64(n) > uint64(r.left()) {
		r.fail(errShort)
		return nil
	}
	b := r.data[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *wasmReader) u32() uint32 {
	var n uint64
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		n |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			if n > math.MaxUint32 {
				r.fail(errNumber)
				return 0
			}
			return uint32(n)
		}
	}
	r.fail(errNumber)
	return 0
}

// skipSigned passes over a signed LEB128 number of at most the given number of bytes.
func (r *wasmReader) skipSigned(bytes int) {
	for range bytes {
		if b := r.byte(); b&0x80 == 0 {
			return
		}
	}
	r.fail(errNumber)
}

// count reads the length of a vector. A vector has at least one byte an entry, so a
// length above what is left is refused before anything of that size is allocated.
func (r *wasmReader) count(what string, limit uint32) uint32 {
	n := r.u32()
	if r.err == nil && n > limit {
		r.fail(fmt.Errorf("it has %d %s; the limit is %d", n, what, limit))
		return 0
	}
	if int64(n) > int64(r.left()) {
		r.fail(errShort)
		return 0
	}
	return n
}

func (r *wasmReader) name() string {
	b := r.take(r.u32())
	if !utf8.Valid(b) {
		r.fail(errors.New("a name in it is not UTF-8"))
		return ""
	}
	return string(b)
}

// s32 reads a signed LEB128 number of at most 32 bits.
func (r *wasmReader) s32() int32 {
	var n int64
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		n |= int64(b&0x7f) << shift
		if b&0x80 == 0 {
			if b&0x40 != 0 {
				n |= -1 << (shift + 7)
			}
			return int32(n)
		}
	}
	r.fail(errNumber)
	return 0
}
