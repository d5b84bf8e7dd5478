package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/proxy/sim"
	"github.com/fourgate-dev/fourgate/proxy/state/redistest"
)

// fleet is several processes over the same simulated upstreams and one backend.
type fleet struct {
	t      *testing.T
	sim    *sim.Sim
	redis  *redistest.Server
	config string
	// backend is where the members find the server.
	backend string
}

// member is one process of a fleet.
type member struct {
	t           *testing.T
	base, admin string
	log         *output
}

// sharedGroups writes a configuration of n groups g0, g1, … with channels a0 and b0, a1 and
// b1, …, of which the first ones come first.
func sharedGroups(n int, more string) string {
	var b strings.Builder
	b.WriteString(`server {
  listen       = env("LISTEN")
  admin_listen = env("ADMIN_LISTEN")
  max_body     = "1MiB"
}
policy { params = { quarantine_after = 1 } }
ledger { store = "none" }
` + more)
	for i := range n {
		for _, c := range []string{"a", "b"} {
			fmt.Fprintf(&b, `
provider "%[1]s%[2]d" {
  base_url = "${env("UPSTREAM")}/%[1]s%[2]d"
  key "main" { secret = env("KEY") }
}
`, c, i)
		}
		fmt.Fprintf(&b, `
route_group "g%[1]d" {
  models    = ["m%[1]d"]
  endpoints = ["openai.chat"]
  rpm       = 1000000
  channel "a" { provider = provider.a%[1]d }
  channel "b" { provider = provider.b%[1]d }
}
`, i)
	}
	return b.String()
}

const stateBlock = `
state {
  backend  = "redis"
  url      = env("REDIS")
  breakers = true
}
`

func newFleet(t *testing.T, config string) *fleet {
	t.Helper()
	redis := redistest.New(t)
	s, err := sim.Start(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	path := filepath.Join(t.TempDir(), "fleet.hcl")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return &fleet{t, s, redis, path, redis.URL()}
}

// vars are the environment of a member.
func (f *fleet) vars() map[string]string {
	return map[string]string{
		"LISTEN": "127.0.0.1:0", "ADMIN_LISTEN": "127.0.0.1:0", "KEY": secretOfTests, "REDIS": f.backend,
		"UPSTREAM": strings.TrimSuffix(f.sim.URL("x"), "/x"),
	}
}

// start runs the real program.
func (f *fleet) start() *member {
	f.t.Helper()
	program, m := exec.Command("fourgate", "serve", "-c", f.config), &member{t: f.t, log: newOutput()}
	program.Env = os.Environ()
	for name, value := range f.vars() {
		program.Env = append(program.Env, name+"="+value)
	}
	program.Stderr = m.log
	out, err := program.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
		if f.t.Failed() {
			f.t.Logf("a member's log:\n%s", m.log)
		}
	})
	lines := bufio.NewScanner(out)
	for _, url := range []*string{&m.base, &m.admin} {
		if !lines.Scan() {
			f.t.Fatalf("the program printed too little; its log:\n%s", m.log)
		}
		_, *url, _ = strings.Cut(lines.Text(), " on ")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return m
}

// runs runs a member within the test's process.
func (f *fleet) runs(more ...string) *member {
	f.t.Helper()
	vars := f.vars()
	for i := 0; i < len(more); i += 2 {
		vars[more[i]] = more[i+1]
	}
	c := startAt(f.t, new(movable), vars, "serve", "-c", f.config)
	m := &member{t: f.t, base: c.base(f.t), log: c.stderr}
	_, m.admin, _ = strings.Cut(c.stdout.await(f.t, "metrics and health on "), "metrics and health on ")
	m.admin = strings.TrimSpace(m.admin)
	return m
}

// ask sends one request and returns status and error code.
func (m *member) ask(model string) reply {
	m.t.Helper()
	return post(m.t, m.base+"/v1/chat/completions", chat(model, false))
}

// looks polls an admin page until it has a text in it.
func (m *member) looks(path, want string) {
	m.t.Helper()
	limit := time.Now().Add(waitLimit)
	for page := fetch(m.t, m.admin+path); !strings.Contains(page, want); page = fetch(m.t, m.admin+path) {
		if time.Now().After(limit) {
			m.t.Fatalf("%s has no %q within %v:\n%s", path, want, waitLimit, page)
		}
	}
}

func (m *member) up()   { m.t.Helper(); m.looks("/readyz?verbose", " is up for ") }
func (m *member) down() { m.t.Helper(); m.looks("/readyz?verbose", "local knowledge only") }
