package plugins

import (
	"sync"

	"github.com/tetratelabs/wazero/experimental"
)

// memories hands out the linear memories of instances. Most guests need one page; a
// page that was used is zeroed and used again, because 64 KiB of garbage for each
// classification would be most of its cost. Larger memories are left to the garbage
// collector.
type memories struct{ pages sync.Pool }

// Allocate implements [experimental.MemoryAllocator].
func (p *memories) Allocate(_, most uint64) experimental.LinearMemory {
	m, ok := p.pages.Get().(*linearMemory)
	if !ok {
		m = &linearMemory{owner: p, data: make([]byte, 0, wasmPage)}
	}
	m.most, m.freed = most, false
	return m
}

// linearMemory is one instance's memory. All of its capacity beyond its length is zero.
type linearMemory struct {
	owner *memories
	data  []byte
	most  uint64
	freed bool
}

// Reallocate implements [experimental.LinearMemory]. It grows by doubling, so that a
// guest that grows page by page doesn't make the host copy without end.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.most {
		return nil
	}
	if size > uint64(cap(m.data)) {
		data := make([]byte, len(m.data), min(max(size, 2*uint64(cap(m.data))), m.most))
		copy(data, m.data)
		m.data = data
	}
	m.data = m.data[:size]
	return m.data
}

// Free implements [experimental.LinearMemory].
func (m *linearMemory) Free() {
	if m.freed {
		return
	}
	m.freed = true
	if cap(m.data) != wasmPage {
		m.data = nil
		return
	}
	clear(m.data)
	m.data = m.data[:0]
	m.owner.pages.Put(m)
}
