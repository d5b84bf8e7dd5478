package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fourgate-dev/fourgate/proxy/watch"
)

// oneCaller is a listener with one connection.
type oneCaller struct {
	net.Listener
	conn net.Conn
}

func (l oneCaller) Accept() (net.Conn, error) { return l.conn, nil }

// A connection on which no handshake comes is given up after its limit, and the watch
// finds what is below TLS.
func TestSilentHandshakeEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		caller, far := net.Pipe()
		defer caller.Close()
		below := watch.Pipe(far)
		ln := &secureListener{oneCaller{conn: below}, &tls.Config{}}
		conn, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		if w, ok := watch.Of(conn); !ok || w != watch.Watched(below) {
			t.Error("the watch doesn't find the connection below TLS")
		}
		start := time.Now()
		err = conn.(*secureConn).Handshake()
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != handshakeTimeout {
			t.Errorf("%v after %v, want the limit of %v", err, time.Since(start), handshakeTimeout)
		}
	})
}

// During a drain nothing more is read of a caller with TLS, as of one without.
func TestCloseReadReachesTheSocket(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	caller, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	conn, err := (&secureListener{ln, &tls.Config{}}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(interface{ CloseRead() error }).CloseRead(); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*secureConn).Handshake(); !errors.Is(err, io.EOF) {
		t.Errorf("a read after CloseRead: %v, want the end", err)
	}
}
