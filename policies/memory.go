package policies

import (
	"sync"

	"github.com/fourgate-dev/fourgate/engine"
)

const (
	// defaultMemory is how many answers a set remembers. One takes about half a
	// kilobyte, and an outage asks some tens of different questions.
	defaultMemory = 4096
	// maxKey bounds the key of a remembered answer in bytes. A policy that looks at
	// longer texts is asked every time.
	maxKey = 1024
)

// memory keeps answers by what the policy could see of their question.
type memory struct {
	mu      sync.RWMutex
	answers map[string]engine.Decision
	limit   int
}

func (m *memory) recall(key []byte) (engine.Decision, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	d, ok := m.answers[string(key)]
	return d, ok
}

// keep remembers an answer. At the limit it forgets another one that the map's own
// order picks: which answers come back is not worth a list to maintain.
func (m *memory) keep(key []byte, d engine.Decision) {
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

func newMemory(limit int) *memory {
	return &memory{answers: map[string]engine.Decision{}, limit: limit}
}
