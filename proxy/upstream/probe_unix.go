//go:build unix

package upstream

import "syscall"

// probe looks at a socket without reading from it or waiting.
type probe struct {
	raw   syscall.RawConn
	look  func(fd uintptr) // one closure for the connection's life
	still bool
}

func newProbe(s syscall.Conn) *probe {
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	p := &probe{raw: raw}
	p.look = func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		p.still = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
	}
	return p
}

// quiet says whether the socket is open and has nothing to read. Control is used and not
// Read, as an old read deadline would fail that.
func (p *probe) quiet() bool {
	p.still = false
	return p.raw.Control(p.look) == nil && p.still
}
