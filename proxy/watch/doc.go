// Package watch tells at once that a caller has gone, so that nothing is bought for
// nobody. An HTTP server learns it only when it next reads or writes, which may be
// minutes later.
//
//	set, err := watch.New(logger)
//	listener = set.Listener(listener) // below TLS
//	…
//	if w, ok := watch.Of(ctx.Conn()); ok {
//		w.Arm(attempt.Cancel)
//		defer w.Disarm()
//	}
//
// On Linux each connection is registered once with one epoll descriptor, for nothing but
// the peer's close. So a request costs no system call, and bytes that nobody has read yet,
// be it a pipelined request or TLS's close_notify, hide nothing. On other systems nothing
// is watched: [New] says so through the logger, and a caller's leaving is found out at the
// next write.
//
// A peer that only ends its own direction (shutdown for writing, "half-close") looks the
// same as one that has gone and counts as gone, as in other proxies: HTTP clients that
// wait for an answer keep their side open.
//
// The package never reads from a socket, closes one by itself or starts a goroutine per
// connection. [Pipe] does read ahead: it stands in for a socket in tests over in-memory
// connections. Callers are the proxy's server and its tests.
package watch
