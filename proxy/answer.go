package proxy

import (
	"sync"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/gate"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
)

// answer is what came of the attempt that runs or was committed.
type answer struct {
	attempt   *upstream.Attempt
	kind      answerKind
	gate      *gate.Stream // answerStream
	first     []byte       // bytes that are held back, in order, but for a gate's
	usage     engine.Usage // answerWhole
	status    int          // with headers, once it is held
	headers   engine.Headers
	committed time.Time
	buffer    *readBuffer
}

type answerKind uint8

const (
	answerNone   answerKind = iota
	answerWhole             // all of it is in first
	answerStream            // frames that passed the gate
	answerUnread            // bytes that can't be judged: encoded, or over the buffer's cap
)

// close ends the use of the upstream's connection and gives the buffer back. It may be
// called twice.
func (a *answer) close(from *buffers) {
	if a.attempt != nil {
		a.attempt.Close()
		a.attempt = nil
	}
	if a.buffer != nil {
		from.pool.Put(a.buffer)
		a.buffer = nil
	}
}

// readBuffer is what a stream is read into. Each silent stream holds one, and one read is
// one write to the caller: most of what providers send at once fits.
type readBuffer [4 << 10]byte

// buffers spare a stream its read buffer. One is taken and put back by the goroutine
// that owns the exchange.
type buffers struct{ pool sync.Pool }

func (b *buffers) take() *readBuffer {
	if buf, ok := b.pool.Get().(*readBuffer); ok {
		return buf
	}
	return new(readBuffer)
}

// failedAnswer is the last failed attempt's own answer, in case that the caller gets it.
type failedAnswer struct {
	status  int
	headers engine.Headers
	body    []byte
	stream  bool // body is a stream's frames
}

// callerStatus gives the status for a caller. An error under the status of a success would be
// an empty success to SDKs, unless it is an event of a stream.
func (f *failedAnswer) callerStatus(success bool) int {
	switch {
	case f.status == 0, f.status >= 200 && f.status <= 299 && !f.stream && !success:
		return 502
	}
	return f.status
}
