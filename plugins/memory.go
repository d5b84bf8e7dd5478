package plugins

import (
	"sync"
	"weak"

	"github.com/tetratelabs/wazero/experimental"
)

// memories hands out the linear memories of instances. What was used is zeroed and used
// again: most guests need one page, and 64 KiB of garbage for each classification would be
// most of its cost. The last larger memory is used again, too, so that a guest that wants
// all it can get doesn't fill the heap with one after the other; it is held weakly, so the
// next garbage collection frees it.
type memories struct {
	pages sync.Pool // of *linearMemory with a capacity of one page

	mu    sync.Mutex
	large weak.Pointer[largeMemory]
}

// largeMemory is an empty slice of zeros with a capacity of more than a page.
type largeMemory struct{ data []byte }

// Allocate implements [experimental.MemoryAllocator].
func (p *memories) Allocate(_, most uint64) experimental.LinearMemory {
	m, ok := p.pages.Get().(*linearMemory)
	if !ok {
		m = &linearMemory{owner: p, data: make([]byte, 0, wasmPage)}
	}
	m.most, m.freed = most, false
	return m
}

// room returns an empty slice of zeros with a capacity of at least size.
func (p *memories) room(size, most uint64) []byte {
	p.mu.Lock()
	last := p.large.Value()
	p.large = weak.Pointer[largeMemory]{}
	p.mu.Unlock()
	if last != nil && uint64(cap(last.data)) >= size {
		return last.data
	}
	return make([]byte, 0, most)
}

// back takes the data of a memory that is not used any more.
func (p *memories) back(data []byte) {
	clear(data)
	data = data[:0]
	if cap(data) == wasmPage {
		p.pages.Put(&linearMemory{owner: p, data: data})
		return
	}
	p.mu.Lock()
	p.large = weak.Make(&largeMemory{data})
	p.mu.Unlock()
}

// linearMemory is one instance's memory. All of its capacity beyond its length is zero.
type linearMemory struct {
	owner *memories
	data  []byte
	most  uint64
	freed bool
}

// Reallocate implements [experimental.LinearMemory]. It grows by doubling, and beyond a
// megabyte at once to all that it may have: a guest that grows page by page must neither
// make the host copy without end nor leave a trail of halves.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.most {
		return nil
	}
	if size > uint64(cap(m.data)) {
		room := min(max(size, 2*uint64(cap(m.data))), m.most)
		if room > 1<<20 {
			room = m.most
		}
		data := append(m.owner.room(size, room), m.data...)
		m.owner.back(m.data)
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
	m.owner.back(m.data)
	m.data = nil
}
