package plugins

import "testing"

// TestMemoryIsZeroWhenReused shows that nothing of one instance's memory reaches the
// next one, however it was used and grown.
func TestMemoryIsZeroWhenReused(t *testing.T) {
	t.Parallel()
	var p memories
	for _, sizes := range [][]uint64{{0}, {100, wasmPage}, {wasmPage}, {wasmPage, 2 * wasmPage, 5 * wasmPage}, {10}} {
		m := p.Allocate(0, 5*wasmPage)
		for _, size := range sizes {
			data := m.Reallocate(size)
			if uint64(len(data)) != size {
				t.Fatalf("%d bytes; want %d", len(data), size)
			}
		}
		data := m.Reallocate(sizes[len(sizes)-1])
		for i := range data {
			data[i] = 7
		}
		if m.Reallocate(6*wasmPage) != nil {
			t.Error("it grew above its maximum")
		}
		m.Free()
		m.Free() // twice does no harm
		next := p.Allocate(0, wasmPage).Reallocate(wasmPage)
		for i, b := range next {
			if b != 0 {
				t.Fatalf("byte %d of the next memory is %d", i, b)
			}
		}
	}
}
