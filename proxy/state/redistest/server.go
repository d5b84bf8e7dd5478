// Package redistest runs the machine's own redis-server for tests, and treats it as badly
// as the world does: it is killed, stopped, flushed and slowed down. Tests of proxy/state
// and of cmd/fourgate use it; no program does.
//
//	server := redistest.Start(t)
//	server.Suspend()
//	server.Do("FLUSHALL")
package redistest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is a redis-server on a socket of its own, without persistence.
type Server struct {
	t      testing.TB
	socket string

	mu  sync.Mutex
	cmd *exec.Cmd // nil while it is down
}

// startLimit bounds the start of a server on a starved machine.
const startLimit = 20 * time.Second

// New prepares a server that doesn't run yet. It ends with the test. A machine without
// redis-server skips the test, and fails it in CI.
func New(t testing.TB) *Server {
	t.Helper()
	for _, program := range []string{"redis-server", "redis-cli"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is not installed; install redis-server (apt-get install redis-server)", program)
			}
			t.Skipf("%s is not installed", program)
		}
	}
	dir, err := os.MkdirTemp("", "redis") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, socket: filepath.Join(dir, "s")}
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(dir)
	})
	return s
}

// Start runs a server.
func Start(t testing.TB) *Server {
	t.Helper()
	s := New(t)
	s.Start()
	return s
}

// URL is where the server is, or will be.
func (s *Server) URL() string { return "unix://" + s.socket }

// Socket is the path of the server's socket.
func (s *Server) Socket() string { return s.socket }

// Start runs the server, which knows nothing, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = os.Remove(s.socket)
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no",
		"--dir", filepath.Dir(s.socket), "--logfile", filepath.Join(filepath.Dir(s.socket), "log"))
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for limit := time.Now().Add(startLimit); ; {
		if c, err := net.Dial("unix", s.socket); err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(limit) {
			s.t.Fatal("redis-server doesn't start")
		}
		time.Sleep(2 * time.Millisecond) // no condition to wait for but the socket itself
	}
}

// Kill ends the server at once, as a crash does.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Suspend stops the server: connections stay open, and nothing answers.
func (s *Server) Suspend() { s.signal(syscall.SIGSTOP) }

// Resume lets a suspended server go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Do runs one command and returns its answer as redis-cli prints it.
func (s *Server) Do(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "redis-cli", append([]string{"-s", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("redis-cli %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	text := strings.TrimSpace(string(out))
	if strings.HasPrefix(text, "ERR ") {
		s.t.Fatalf("redis-cli %s: %s", strings.Join(args, " "), text)
	}
	return text
}
