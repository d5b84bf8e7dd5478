package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fourgate-dev/fourgate/proxy/ledger"
	"github.com/fourgate-dev/fourgate/proxy/sim"
)

// policyVersion is a policy of two files that marks what each of them decides: the first
// failure is decided in one file, the second with a function of the other.
func policyVersion(n int) map[string]string {
	return map[string]string{
		"decision.rego": fmt.Sprintf(`package fourgate

import data.house

decision := {"action": "fallback", "reason": "v%[1]d_first"} if input.attempt.seq == 1

decision := {"action": "fallback", "reason": house.second(input.attempt.seq)} if input.attempt.seq == 2

decision := {"action": "abort", "reason": "v%[1]d_end"} if input.attempt.seq > 2
`, n),
		"second.rego": fmt.Sprintf("package house\n\nsecond(n) := \"v%d_second\" if n > 0\n", n),
	}
}

// groupWithParams has the policy of the configuration around it, with parameters of its own.
const groupWithParams = `
route_group "n" {
  models    = ["model-2"]
  endpoints = ["openai.chat"]
  channel "a" { provider = provider.a }
  channel "b" { provider = provider.b }
  channel "c" { provider = provider.c }
  budget { deadline = "300s" }
  policy {
    params = { own = true }
  }
}
`

// mounted is a directory of policies as Kubernetes mounts one: a new version takes the
// place of the old one by renaming a link.
type mounted struct {
	t    *testing.T
	dir  string
	next int
}

func mountPolicies(t *testing.T, dir string, files map[string]string) *mounted {
	t.Helper()
	m := &mounted{t: t, dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m.put(files)
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *mounted) put(files map[string]string) {
	m.t.Helper()
	m.next++
	version := fmt.Sprintf("..version-%d", m.next)
	must := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(m.dir, version), 0o700))
	for name, text := range files {
		must(os.WriteFile(filepath.Join(m.dir, version, name), []byte(text), 0o600))
	}
	must(os.Symlink(version, filepath.Join(m.dir, "..data-next")))
	must(os.Rename(filepath.Join(m.dir, "..data-next"), filepath.Join(m.dir, "..data")))
}

// TestReloadOfPolicies changes the policy of the real program again and again, with bad
// versions between the good ones, while callers send requests that need two decisions
// each. All are answered, and each by one version: that of its group and of its moment.
func TestReloadOfPolicies(t *testing.T) {
	t.Parallel()
	s, err := sim.Start(sim.Options{Keep: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, channel := range []string{"a", "b"} {
		faults, err := sim.ParseScript("status=503")
		if err != nil {
			t.Fatal(err)
		}
		s.Channel(channel).Script(faults...)
	}
	text, err := os.ReadFile(trio)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config, store := filepath.Join(dir, "fourgate.hcl"), filepath.Join(dir, "ledger.db")
	text = append(text, `
retry_budget {
  floor = 1000
  cap   = 1000000
}
policy {
  paths = ["policies"]
  shadow {
    params = { candidate = true }
  }
}
`+groupWithParams...)
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	policy := mountPolicies(t, filepath.Join(dir, "policies"), policyVersion(0))

	program, log := exec.Command("fourgate", "serve", "-c", config), newOutput()
	program.Env = append(os.Environ(), "LISTEN=127.0.0.1:0", "ADMIN_LISTEN=127.0.0.1:0", "LEDGER="+store, "KEY="+secretOfTests,
		"A_URL="+s.URL("a"), "B_URL="+s.URL("b"), "C_URL="+s.URL("c"))
	program.Stderr = log
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Process.Kill() }() // where the test gave up
	lines := bufio.NewScanner(out)
	value := func(before string) string {
		t.Helper()
		for lines.Scan() {
			if _, text, ok := strings.Cut(lines.Text(), before); ok {
				return text
			}
		}
		t.Fatalf("the program didn't print %q:\n%s", before, log)
		return ""
	}
	base, admin := value("serves on "), value("metrics and health on ")

	var callers sync.WaitGroup
	var done atomic.Bool
	var answered atomic.Int64
	for i := range 3 {
		callers.Go(func() {
			for !done.Load() {
				if got := post(t, base+"/v1/chat/completions", chat(fmt.Sprintf("model-%d", 1+i%2), false)); got.status != 200 || got.err != nil {
					t.Errorf("status %d, %v: %s", got.status, got.err, got.body)
					return
				}
				answered.Add(1)
			}
		})
	}
	bad := []func(n int) map[string]string{
		func(n int) map[string]string { // a syntax error
			v := policyVersion(n)
			v["decision.rego"] += "\ndecision := {\n"
			return v
		},
		func(n int) map[string]string { // a missing module
			v := policyVersion(n)
			delete(v, "second.rego")
			return v
		},
		func(n int) map[string]string { // a file that was written as far as the middle of a word
			v := policyVersion(n)
			v["second.rego"], _, _ = strings.Cut(v["second.rego"], "_second")
			return v
		},
	}
	const versions = 4
	for n := 1; n <= versions; n++ {
		step := func(files map[string]string, says string) {
			t.Helper()
			seen := strings.Count(log.String(), says)
			policy.put(files)
			if n%2 == 0 { // else the watch alone sees it
				if err := program.Process.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
			}
			log.awaitCount(t, says, seen+1)
		}
		step(bad[n%len(bad)](n), "reload refused")
		step(policyVersion(n), "msg=reloaded")
	}
	done.Store(true)
	callers.Wait()

	metrics := fetch(t, admin+"/metrics")
	revisions := map[string]bool{}
	for _, group := range []string{"m", "n"} {
		_, rest, _ := strings.Cut(metrics, fmt.Sprintf("fourgate_policy_info{group=%q,revision=\"", group))
		revision, _, _ := strings.Cut(rest, `"`)
		revisions[revision] = true
	}
	if len(revisions) != 2 || revisions[""] {
		t.Errorf("revisions of the two groups' policies: %v", slices.Collect(maps.Keys(revisions)))
	}
	if !strings.Contains(metrics, "fourgate_policy_shadow_asked_total ") || strings.Contains(metrics, "fourgate_policy_shadow_asked_total 0\n") {
		t.Error("no candidate was asked")
	}
	if strings.Contains(metrics, "\nfourgate_policy_errors_total{") {
		t.Error("a policy gave no usable answer")
	}
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
	auditVersions(t, store, int(answered.Load()))
}

// auditVersions checks that each record has decisions of one version.
func auditVersions(t *testing.T, store string, want int) {
	t.Helper()
	reader, err := ledger.OpenReader(store)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	records, err := reader.List(t.Context(), ledger.Filter{Limit: want + 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != want {
		t.Errorf("%d records of %d answers", len(records), want)
	}
	seen, revisions := map[string]int{}, map[string]string{}
	for _, rec := range records {
		var reasons []string
		for i := range rec.Attempts() {
			if d, ok := rec.Attempts()[i].Decision(); ok {
				reasons = append(reasons, d.Reason().String())
			}
		}
		version, _, _ := strings.Cut(strings.Join(reasons, " "), "_")
		if want := []string{version + "_first", version + "_second"}; !slices.Equal(reasons, want) {
			t.Errorf("%s was decided by %v", rec.RequestID(), reasons)
		}
		seen[version]++
		group := rec.Attempts()[0].Group()
		if known, ok := revisions[version+" "+group]; ok && known != rec.Policy() || rec.Policy() == "" {
			t.Errorf("%s was decided by %s under the policy %q, others under %q", rec.RequestID(), version, rec.Policy(), known)
		}
		revisions[version+" "+group] = rec.Policy()
	}
	if len(seen) < 2 {
		t.Errorf("the requests met the versions %v only", seen)
	}
	t.Logf("requests by version: %v", seen)
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
