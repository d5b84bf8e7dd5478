package sim

import "time"

// Seen is one request as it arrived, and what became of it. A request whose peer left
// before its body was whole is there too: without a body, with Gone, and it took no
// fault of the script.
type Seen struct {
	Channel string
	N       int       // the channel's how manieth request, from 1
	Conn    int64     // on which connection of the simulator, from 1
	At      time.Time // when it had arrived in full

	Method string
	Target string  // as it stood in the request line
	Path   string  // the target without the channel and without a query
	Header []Field // in order, as written
	Body   []byte  // after a chunked coding was taken off

	Fault Fault // what was done to it

	// Done is set when everything that the fault has was written. Gone is set when the
	// peer closed before that, or during a stall; the two exclude each other.
	Done   bool
	Gone   bool
	GoneAt time.Time
	Sent   int // bytes written, headers and framing included
}

// Get returns the first value of a header field, ignoring case; empty if there is none.
func (s Seen) Get(name string) string { return get(s.Header, name) }

// Attempt is the attempt number that a Fourgate in front has sent, empty if none has.
func (s Seen) Attempt() string { return s.Get("X-Fourgate-Attempt") }
