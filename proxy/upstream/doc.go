// Package upstream makes one HTTP/1.1 call to a provider over a connection that the
// call owns.
//
// An [Attempt] can be cancelled at any moment from any goroutine, and cancelling closes
// the socket at once: while it is being dialled, while it waits for headers and in the
// middle of a body. Each phase (connect, TLS, headers, silence within a body) has a time
// limit of its own, so that a long stream is never cut by an absolute one. A cut is never
// mistaken for an orderly end.
//
//	t, err := upstream.NewTarget("https://api.example.com/v1", engine.TLSSpec{})
//	a := client.Start(t, &upstream.Request{Method: "POST", Path: "/chat/completions", Body: body}, limits, deadline)
//	defer a.Close()
//	if err := a.Open(); err != nil { // *Error: kind, operation, whether it certainly never started
//		…
//	}
//	a.Bound(gate)         // before commit: no read blocks past the gate
//	n, err := a.Read(buf) // bytes as soon as there are some
//	a.Bound(time.Time{})  // committed: only the idle limit holds
//
// # What it never does
//
// It never sends a request twice. The one exception can't be seen by an upstream: a
// connection from the idle pool that turns out dead before it has taken a single byte is
// replaced by a fresh one, once. It never follows redirects, never decompresses, never
// normalises a path, never merges headers, never reads ahead of the caller's framing and
// never logs. It decides nothing: what a failure means is the engine's to say.
//
// Callers are the proxy's attempt loop and its health checks.
//
// # Addresses
//
// A name is looked up once in 30 s, however many attempts need it, and a failed lookup
// stands for one second. The addresses are tried in the resolver's order, IPv6 and IPv4
// by turns: the next one when the last has failed or has not answered within 250 ms, or
// its even share of the connect limit if that is less. The first connection wins. An
// address that failed or lost is tried after the others for 30 s. Only connecting fails
// over like this: a host whose TLS is broken fails the attempt.
//
// # TLS
//
// Certificates are verified always, against the system's authorities and those of the
// target; there is no switch to skip it. The least version is 1.2, only HTTP/1.1 is
// offered, and sessions are resumed.
//
// # Why its own response reader
//
// Three readers were at hand. net/http's transport hides the connection, its retries and
// the time limits. fasthttp's reader accepts Content-Length beside Transfer-Encoding and
// buffers a chunk before it hands it on. net/textproto with httputil's chunked reader is
// exact enough about cuts, but lenient about framing and allocates each header twice. The
// reader here is about 300 lines of pure functions over bytes ([parseHead] and [framing])
// with a fuzz target each; it costs one read for a small answer, and three allocations.
//
// # Memory
//
// A connection has one 4 KiB buffer. The request's head is built in it before anything is
// read, a response head may grow it up to 64 KiB, and the growth is dropped as soon as
// those bytes are consumed, so that a silent stream holds 4 KiB.
package upstream
