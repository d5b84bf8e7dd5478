package watch

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestPipeGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		caller, far := net.Pipe()
		ours := Pipe(far)
		w, ok := Of(ours)
		if !ok {
			t.Fatal("a pipe is not found")
		}
		n := newNews()
		w.Arm(n.gone)
		synctest.Wait()
		if n.calls.Load() != 0 {
			t.Error("gone was called though the caller is there")
		}
		_ = caller.Close()
		synctest.Wait()
		w.Disarm()
		late := newNews()
		w.Arm(late.gone)
		w.Disarm()
		if n.calls.Load() != 1 || late.calls.Load() != 1 {
			t.Errorf("%d calls while armed, %d for a peer that had gone before; want 1 and 1", n.calls.Load(), late.calls.Load())
		}
		if _, err := ours.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("Read: %v", err)
		}
		_ = ours.Close()
	})
}

func TestPipeKeepsBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		caller, far := net.Pipe()
		ours := Pipe(far)
		buf := make([]byte, 10)
		read := func(want string) {
			t.Helper()
			n, err := ours.Read(buf[:3])
			if err != nil || string(buf[:n]) != want {
				t.Errorf("Read: %q, %v; want %q", buf[:n], err, want)
			}
		}
		n := newNews()
		for range 2 {
			ours.Arm(n.gone)
			_, _ = io.WriteString(caller, "abcd")
			read("abc") // while armed
			ours.Disarm()
			read("d")
			go func() { _, _ = io.WriteString(caller, "e") }()
			read("e") // from the pipe itself
		}
		ours.Arm(n.gone)
		_, _ = io.WriteString(caller, "f")
		_ = caller.Close()
		synctest.Wait()
		if n.calls.Load() != 1 {
			t.Error("pipelined bytes hide the close")
		}
		ours.Disarm()
		read("f")
		_ = ours.Close()
	})
}

func TestPipeDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		caller, far := net.Pipe()
		ours := Pipe(far)
		n := newNews()
		_ = ours.SetDeadline(time.Now().Add(time.Second))
		ours.Arm(n.gone)
		time.Sleep(time.Minute) // virtual: the deadline passes while armed
		_ = caller.Close()
		synctest.Wait()
		ours.Disarm()
		if n.calls.Load() != 1 {
			t.Error("a read deadline ended the watch")
		}

		caller, far = net.Pipe()
		ours = Pipe(far)
		ours.Arm(n.gone)
		_ = ours.SetReadDeadline(time.Now().Add(time.Second))
		ours.Disarm()
		if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read: %v, want the deadline that was set while armed", err)
		}
		_, _ = ours.Close(), caller.Close()
	})
}

func TestPipeOwnCloseIsNoNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		caller, far := net.Pipe()
		ours := Pipe(far)
		n := newNews()
		ours.Arm(n.gone)
		_ = ours.Close()
		synctest.Wait()
		ours.Disarm()
		if n.calls.Load() != 0 {
			t.Error("gone was called for a connection that we closed")
		}
		_ = caller.Close()
	})
}
