package plugins

import (
	"time"

	"github.com/tetratelabs/wazero/sys"
)

// Work is counted in bytes compared; a byte takes about a nanosecond at most.
const (
	// workSlice is done between two looks at the clock. A look costs some 50 ns, which a
	// slice makes too little to be seen, and a call overruns its deadline by no more than
	// a slice: some tens of microseconds.
	workSlice = 32 << 10
	// questionWork is what every host function costs at least, with the way there.
	questionWork = 256
	// stepWork is what one step of a search or a walk costs beside its bytes.
	stepWork = 16
)

// work is the deadline of one classification and what may be done until the clock is
// looked at again. The runtime looks at the deadline in the guest's loops only, so all
// that a host function does for a guest is paid for here. A nil work has no end.
type work struct {
	deadline time.Time
	left     int
}

// spend pays for n bytes of work. It ends the classification when its time is up.
func (w *work) spend(n int) {
	if w == nil {
		return
	}
	if w.left -= n; w.left < 0 {
		w.look()
	}
}

func (w *work) look() {
	w.left = workSlice
	if w.over() {
		panic(sys.NewExitError(sys.ExitCodeDeadlineExceeded))
	}
}

// over says whether the deadline has passed.
func (w *work) over() bool { return time.Now().After(w.deadline) }
