// Package state shares what instances learn through Redis or Valkey: which keys cool,
// which channels are quarantined, which models are evicted, which breakers are open, and
// how much of each rate is used.
//
// Nothing on a request's way waits for it. An instance tells by [Shared.Share], which
// leaves a note in a bounded box and returns; one goroutine carries the notes to the
// backend. What others tell is pushed: the connection tracks the prefix (CLIENT TRACKING,
// BCAST), the keys that change are read again, and the [engine.Standing] learns them. So
// a request reads its own memory and nothing else.
//
// The backend is a stranger. It may be absent, hung, slow, flushed or lying at any time:
// then the instance goes on with what it knows, says so by [Shared.Health] and its
// metrics, and rejoins by itself. Every answer is bounded and checked before the client
// library sees it (wire.go), and every value before the standing does (key.go).
//
// It never decides: what is told shapes chains as the standing allows, which leaves a
// request its last channel whatever others say. It holds no secret but the backend's
// address, which is never logged with its password.
//
// Read key.go and docs/state.md for the keys, session.go for what one connection does.
// cmd/fourgate opens it:
//
//	shared, err := state.Open(state.Options{URL: url, Prefix: "fg:", Standing: standing, …})
//	standing.ShareWith(shared)
//	defer shared.Close()
package state
