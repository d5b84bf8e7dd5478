package engine

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"
)

// RetrySource says where the number of an SDK's retries comes from. The zero value is
// that there are none.
type RetrySource uint8

// The sources.
const (
	RetrySourceNone     RetrySource = iota
	RetrySourceHeader               // the SDK has said it
	RetrySourceInferred             // the same request failed before, and it is a replay
)

var retrySourceNames = [...]string{"", "header", "inferred"}

func (r RetrySource) String() string { return name(retrySourceNames[:], r) }

// maxReplays bounds the memory of failed requests, to some 10 MB. Past it the oldest are
// forgotten, and their replays count as new requests.
const maxReplays = 100_000

// replayGrace is how long after its end a failed request is remembered at least. A
// request that fails at its very deadline is repeated after it: the longest first wait of
// an SDK is 8 s.
const replayGrace = 10 * time.Second

// replays remembers requests that have failed, so that one which comes again is known for
// what it is although its SDK numbers nothing. It holds no body: a request is a hash over
// caller, endpoint and the body's hash. A replay pays one token of the retry budget even
// for its first attempt, so that SDKs can't multiply an outage; while there are tokens it
// is served as any request, so that a person's second try after a recovery works. It
// costs and never earns, so nobody gains by looking like one.
type replays struct {
	latest atomic.Int64 // when the last entry is over; 0: there never was one

	mu      sync.Mutex
	epoch   time.Time // of the first entry; it is there before latest and stays
	entries map[replayKey]replay
	ring    []replayKey // in the order in which they came, a circle once it is full
	next    int         // the oldest place of the full ring
}

type replayKey [16]byte

type replay struct {
	until  int64 // nanoseconds since the epoch: a wall clock that is set changes nothing
	slot   int32 // in the ring
	count  int16 // how often it has failed
	status int16 // that the caller got last
}

// replayMark is what a request carries of its own history.
type replayMark struct {
	asked  bool
	count  int // how often the same request has failed, 0 for a new one
	status int
}

// Replays says whether any failed request is remembered at all. Where none is, a driver
// needn't hash a body before the request has failed.
func (s *Standing) Replays(now time.Time) bool { return s.replays.any(now) }

// Recognise looks whether the request is a replay of one that failed within its group's
// deadline (a caller's own shorter limit doesn't end the memory: its SDK goes on), and raises req.SDKRetry to the number of its failures. It does so once for a
// request. [Begin] does it, too; a driver calls it before if a policy is to see the number
// before the first attempt.
func (s *Standing) Recognise(now time.Time, req *Request) {
	req.retrySource = req.sourceOfRetry()
	if req.replay.asked || req.BodyHash == [sha256.Size]byte{} {
		return
	}
	req.replay.asked = true
	if !s.replays.any(now) {
		return
	}
	was, known := s.replays.find(now, req.replayKey())
	if !known {
		return
	}
	req.replay.count, req.replay.status = int(was.count), int(was.status)
	if req.replay.count > req.SDKRetry {
		req.SDKRetry, req.retrySource = req.replay.count, RetrySourceInferred
	}
}

// sourceOfRetry is where the number of retries comes from. What nobody has inferred, the
// SDK has said.
func (r *Request) sourceOfRetry() RetrySource {
	if r.SDKRetry > 0 && r.retrySource == RetrySourceNone {
		return RetrySourceHeader
	}
	return r.retrySource
}

// replayKey is the request's identity. Names can't run into each other: the body's hash
// has a fixed length and the endpoint is one byte.
func (r *Request) replayKey() replayKey {
	b := make([]byte, 0, 256)
	b = append(b, r.BodyHash[:]...)
	b = append(b, byte(r.Contract.Endpoint))
	b = append(b, r.Caller.spec.Name...)
	sum := sha256.Sum256(b)
	return replayKey(sum[:16])
}

// conclude remembers how a request ended, given its complete record.
func (s *Standing) conclude(now time.Time, req *Request, deadline time.Duration, r *Record) {
	if req.BodyHash == [sha256.Size]byte{} {
		return
	}
	if r.terminal == TerminalSuccess {
		if s.replays.any(now) {
			s.replays.forget(req.replayKey())
		}
		return
	}
	if !r.repeatable() {
		return
	}
	until := req.Arrived.Add(deadline)
	if least := now.Add(replayGrace); until.Before(least) {
		until = least
	}
	s.replays.remember(now, req.replayKey(), until, req.replay.count+1, r.status)
}

// repeatable says whether an SDK may send the request again by itself, and whether that
// would hurt: an attempt was made, it failed for another reason than the request itself,
// and the status is none of those after which every SDK stops (400 to 407 and 413).
// A caller that left before output counts: its own time limit may have run out.
func (r *Record) repeatable() bool {
	if len(r.attempts) == 0 {
		return false
	}
	last := &r.attempts[len(r.attempts)-1]
	switch r.terminal {
	case TerminalExhausted, TerminalPartial:
		return true
	case TerminalCancelled:
		return !last.outputStarted
	case TerminalPolicyStop:
		switch last.class {
		case ClassBadRequest, ClassDenied, ClassRefusal, ClassOK:
			return false
		}
		return (r.status < 400 || r.status > 407) && r.status != 413
	}
	return false
}

func (m *replays) any(now time.Time) bool {
	latest := m.latest.Load()
	return latest != 0 && m.since(now) < latest
}

func (m *replays) since(t time.Time) int64 { return int64(t.Sub(m.epoch)) }

func (m *replays) find(now time.Time, k replayKey) (replay, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.entries[k]
	return e, known && m.since(now) < e.until
}

func (m *replays) forget(k replayKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, k)
}

func (m *replays) remember(now time.Time, k replayKey, until time.Time, count, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.entries[k]
	if !known {
		if m.entries == nil {
			m.entries, m.epoch = map[replayKey]replay{}, now
		}
		e.slot = m.place(k)
	}
	e.until = max(e.until, m.since(until))
	e.count, e.status = int16(min(count, maxReplayCount)), int16(status)
	m.entries[k] = e
	m.latest.Store(max(m.latest.Load(), e.until))
}

// maxReplayCount is far above what any SDK repeats.
const maxReplayCount = 1000

// place finds a place in the ring, where the oldest entry gives way if it is still there.
func (m *replays) place(k replayKey) int32 {
	if len(m.ring) < maxReplays {
		m.ring = append(m.ring, k)
		return int32(len(m.ring) - 1)
	}
	slot := m.next
	if m.next++; m.next == len(m.ring) {
		m.next = 0
	}
	if old, known := m.entries[m.ring[slot]]; known && int(old.slot) == slot {
		delete(m.entries, m.ring[slot])
	}
	m.ring[slot] = k
	return int32(slot)
}
