package state

import (
	"sync"

	"github.com/redis/rueidis"
)

// changed collects the keys that others have changed. The client library calls note from
// the goroutine that reads the connection, which must not be held up.
type changed struct {
	mu    sync.Mutex
	keys  map[string]struct{}
	all   bool          // everything may have changed: the backend was flushed
	ready chan struct{} // has one when something has changed
}

func newChanged() *changed {
	return &changed{keys: map[string]struct{}{}, ready: make(chan struct{}, 1)}
}

// note takes an invalidation; none at all means that everything is invalid.
func (c *changed) note(keys []rueidis.RedisMessage) {
	c.mu.Lock()
	if keys == nil {
		c.all = true
	}
	for _, m := range keys {
		key, err := m.ToString()
		if err != nil || len(key) > maxKeyBytes {
			continue
		}
		if len(c.keys) >= maxFacts {
			c.all = true
			break
		}
		c.keys[key] = struct{}{}
	}
	c.mu.Unlock()
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

func (c *changed) take() (keys []string, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.keys {
		keys = append(keys, key)
	}
	clear(c.keys)
	all, c.all = c.all, false
	return keys, all
}
