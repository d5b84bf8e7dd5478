package policies

import "sync"

const (
	// defaultMemory is how many answers a set remembers. One takes about half a
	// kilobyte, and an outage asks some tens of different questions.
	defaultMemory = 4096
	// maxKey bounds the key of a remembered answer in bytes. A policy that looks at
	// longer texts is asked every time.
	maxKey = 1024
)

// memory keeps answers by what the policy could see of their question.
type memory[A any] struct {
	mu      sync.RWMutex
	answers map[string]A
	limit   int
}

func (m *memory[A]) recall(key []byte) (A, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	d, ok := m.answers[string(key)]
	return d, ok
}

// keep remembers an answer. At the limit it forgets another one that the map's own
// order picks: which answers come back is not worth a list to maintain.
func (m *memory[A]) keep(key []byte, d A) {
	if len(key) > maxKey {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.answers) >= m.limit {
		for other := range m.answers {
			delete(m.answers, other)
			break
		}
	}
	m.answers[string(key)] = d
}

func newMemory[A any](limit int) *memory[A] {
	return &memory[A]{answers: map[string]A{}, limit: limit}
}
